"""Write serve/all: every row with its status, and every report, with their hashes."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.records.files import sha256_file, write_json
from servingbench.serving.row import read_summaries


def main() -> None:
    """Parse, hash, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--summaries", type=Path, nargs="*", default=[], help="summary.json of every row")
    parser.add_argument("--reports", type=Path, nargs="*", default=[], help="what was made from them")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    rows = [
        {**summary["key"], "row": summary["row_id"], "status": summary["status"], "summary": str(path),
         "sha256": sha256_file(path)}
        for path, summary in zip(args.summaries, read_summaries(args.summaries), strict=True)
    ]  # fmt: skip
    reports = [{"path": str(path), "sha256": sha256_file(path)} for path in args.reports]
    write_json(args.out, {"schema_version": 1, "rows": rows, "reports": reports})


if __name__ == "__main__":
    console.run(main)
