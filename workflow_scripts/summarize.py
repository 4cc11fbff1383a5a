"""Summarise methods on a workload: each raw.jsonl with its run.json -> summary.json."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.errors import UserError
from servingbench.metrics.records import read_raw
from servingbench.metrics.summary import summarize
from servingbench.records.files import read_json, write_json
from servingbench.records.schema import validate


def main() -> None:
    """Parse the command line, summarise, write."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Failed records are counted and left out. A metric without a value is null; `nulls` says why. "
        "Definitions: src/servingbench/metrics.",
    )
    add = parser.add_argument
    add("--raw", type=Path, nargs="+", required=True, metavar="FILE", help="raw.jsonl of each method")
    add("--run", type=Path, nargs="+", required=True, metavar="FILE", help="run.json of each, in the same order")
    add("--out", type=Path, nargs="+", required=True, metavar="FILE", help="summary.json of each, in the same order")
    arguments = parser.parse_args()
    if not len(arguments.raw) == len(arguments.run) == len(arguments.out):
        raise UserError("give as many --run and --out as --raw", value=[len(arguments.run), len(arguments.out)])
    for raw, run_file, out in zip(arguments.raw, arguments.run, arguments.out, strict=True):
        run = read_json(run_file)
        validate(run, "provenance", file=run_file)
        summary = summarize(read_raw(raw), run)
        validate(summary, "summary", file=out)
        write_json(out, summary)


if __name__ == "__main__":
    console.run(main)
