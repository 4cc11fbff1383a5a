"""Print the result table of one model on the terminal, and where its figures and poster lie."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from servingbench import console
from servingbench.figures.data import load_results
from servingbench.poster.terminal import result_text


def main() -> None:
    """Parse, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statistics", type=Path, required=True)
    parser.add_argument("--summaries", type=Path, nargs="*", default=[])
    parser.add_argument("--methods-table", type=Path, required=True)
    parser.add_argument("--workloads-table", type=Path)
    parser.add_argument("--figures", nargs="*", default=[], help="paths to print")
    parser.add_argument("--poster", nargs="*", default=[], help="paths to print")
    args = parser.parse_args()
    results = load_results(
        args.statistics, args.summaries, methods_table=args.methods_table, workloads_table=args.workloads_table
    )
    width = shutil.get_terminal_size((100, 24)).columns
    print(result_text(results, paths={"Figures": args.figures, "Poster": args.poster}, width=max(width, 60)), end="")


if __name__ == "__main__":
    console.run(main)
