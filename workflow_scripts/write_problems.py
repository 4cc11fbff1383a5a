"""Write the evaluation's problems (JSONL) as the parquet files that Inspect's GSM8K task finds offline."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.serving.problems import write_problems


def main() -> None:
    """Parse and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="folder of train.jsonl and test.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    args = parser.parse_args()
    write_problems(args.source, args.out)


if __name__ == "__main__":
    console.run(main)
