"""Run one row of the serve matrix: serve, prove, evaluate, load-test, record, stop. A failed row is a result too."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from servingbench import console
from servingbench.records.files import read_json
from servingbench.serving.row import run_row, write_summary
from servingbench.serving.surroundings import check_hardware, surround


def main() -> None:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--spec", type=json.loads, required=True, help="the row, as JSON")
    add("--model", required=True, help="folder or file of the model, or its Hugging Face id")
    add("--tokenizer", required=True, help="folder or id of the tokenizer that the load test makes prompts with")
    add("--problems", type=Path, required=True, help="folder of the evaluation's data")
    add("--environment", type=Path, required=True, help="environment.json of the engine")
    add("--server-overlays", type=Path, nargs="+", required=True, help="package folders of the server, first wins")
    add("--inspect-overlay", type=Path, required=True)
    add("--aiperf-overlay", type=Path, required=True)
    add("--failures", type=Path, required=True, help="the table of known failures")
    add("--preflight", type=Path, nargs="?", help="preflight.json")
    add("--skip-predicted", action="store_true", help="do not start a row that the preflight saw fail")
    add("--out", type=Path, required=True, help="summary.json; attempts/ is kept beside it")
    args = parser.parse_args()
    check_hardware(args.spec)
    environment = read_json(args.environment)
    summary = run_row(
        args.spec,
        folder=args.out.parent,
        surroundings=surround(args),
        environment=environment,
        preflight=read_json(args.preflight)["rows"].get(args.spec["id"], []) if args.preflight else [],
        skip_predicted=args.skip_predicted,
    )
    write_summary(summary, args.out)


if __name__ == "__main__":
    console.run(main)
