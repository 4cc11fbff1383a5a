"""Summarise one method on one workload: raw.jsonl + run.json -> summary.json."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
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
    parser.add_argument("raw", type=Path, metavar="RAW", help="raw.jsonl, one record per prompt and repeat")
    parser.add_argument("run", type=Path, metavar="RUN", help="the run.json beside it: configuration and provenance")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="summary.json to write")
    arguments = parser.parse_args()
    run = read_json(arguments.run)
    validate(run, "provenance", file=arguments.run)
    summary = summarize(read_raw(arguments.raw), run)
    validate(summary, "summary", file=arguments.out)
    write_json(arguments.out, summary)


if __name__ == "__main__":
    console.run(main)
