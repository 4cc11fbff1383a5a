"""Compare the transformers revisions of one model on one GPU: statistics.json of each -> revisions.json."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.records.files import write_json
from servingbench.records.schema import validate
from servingbench.statistics.revisions import across_revisions


def main() -> None:
    """Parse the command line, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    files = "statistics.json of every revision, oldest first; the raw records and summaries lie beside it"
    parser.add_argument("statistics", type=Path, nargs="+", metavar="FILE", help=files)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="revisions.json to write")
    arguments = parser.parse_args()
    record = across_revisions(arguments.statistics)
    validate(record, "across_revisions", file=arguments.out)
    write_json(arguments.out, record)


if __name__ == "__main__":
    console.run(main)
