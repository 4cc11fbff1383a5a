"""Compare the methods of one model at one key: raw.jsonl and lossless.json files -> statistics.json."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from servingbench import console
from servingbench.errors import UserError
from servingbench.records.files import write_json
from servingbench.records.schema import validate
from servingbench.statistics.audits import read_verdicts
from servingbench.statistics.report import read_arms, statistics
from servingbench.statistics.settings import Settings


def main() -> None:
    """Parse the command line, compare, write."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Paired speedups with intervals, on each workload and over all of them. An arm that failed the lossless "
        "gate, or all of whose records failed, gets no numbers, and the reason why.",
    )
    files: dict[str, Any] = {"type": Path, "nargs": "+", "required": True, "metavar": "FILE"}
    parser.add_argument("--raw", **files, help="raw.jsonl of every workload and method")
    parser.add_argument("--lossless", **files, help="lossless.json of every workload")
    parser.add_argument(
        "--settings",
        required=True,
        metavar="JSON",
        help="an object with key {revision, gpu, seed, limit, model}, methods (in table order), workloads, baseline, "
        "aa (or null), primary, contrasts [[method, reference], ...], resamples, confidence, seed, interval "
        "(bootstrap-t or bca), timing (forced or free)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="statistics.json to write")
    arguments = parser.parse_args()
    settings = Settings.from_json(_parse(arguments.settings), file="--settings")
    record = statistics(read_arms(arguments.raw, settings), read_verdicts(arguments.lossless, settings), settings)
    validate(record, "statistics", file=arguments.out)
    write_json(arguments.out, record)


def _parse(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"not valid JSON: {error.msg}", file="--settings", value=text[:60]) from None
    if not isinstance(value, dict):
        raise UserError("must be a JSON object", file="--settings", value=text[:60])
    return value


if __name__ == "__main__":
    console.run(main)
