"""Write the ledger of failed and abandoned attempts (JSON and Markdown) and the score of the preflight."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from servingbench import console
from servingbench.records.files import write_json, write_text
from servingbench.serving.failures import load_failures
from servingbench.serving.ledger import ledger, load_reported_attempts, markdown
from servingbench.serving.row import read_summaries
from servingbench.serving.score import score


def main() -> None:
    """Parse, collect, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--summaries", type=Path, nargs="*", default=[], help="summary.json of every row")
    parser.add_argument("--labels", type=json.loads, default={}, help="the rows' labels, as JSON")
    parser.add_argument("--failures", type=Path, required=True, help="the table of known failures")
    parser.add_argument("--reported", type=Path, required=True, help="the published attempts")
    parser.add_argument("--out-json", type=Path, required=True)
    parser.add_argument("--out-markdown", type=Path, required=True)
    parser.add_argument("--out-score", type=Path, required=True)
    args = parser.parse_args()
    failures = load_failures(args.failures)
    summaries = read_summaries(args.summaries)
    folders = [path.parent for path in args.summaries]
    reported = load_reported_attempts(args.reported, failures)
    rows = list(zip(folders, summaries, strict=True))
    record = ledger(rows, labels=args.labels, failures=failures, reported=reported)
    write_json(args.out_json, record)
    write_text(args.out_markdown, markdown(record))
    write_json(args.out_score, score(summaries))


if __name__ == "__main__":
    console.run(main)
