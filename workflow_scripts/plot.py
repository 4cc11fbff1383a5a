"""Draw one figure of one model's results as SVG, PDF and PNG."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.figures.data import load_results
from servingbench.figures.registry import FIGURES, draw
from servingbench.figures.save import save_figure


def main() -> None:
    """Parse, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help=f"one of: {', '.join(FIGURES)}")
    parser.add_argument("--statistics", type=Path, required=True, help="the summaries lie beside it")
    parser.add_argument("--methods-table", type=Path, required=True)
    parser.add_argument("--workloads-table", type=Path)
    parser.add_argument(
        "--reported", type=Path, help="the folder config/reported, for the figures of published numbers"
    )
    parser.add_argument("--out-stem", type=Path, required=True, help="path without extension")
    args = parser.parse_args()
    results = load_results(
        args.statistics,
        methods_table=args.methods_table,
        workloads_table=args.workloads_table,
        reported=args.reported,
    )
    save_figure(draw(args.name, results), args.out_stem)


if __name__ == "__main__":
    console.run(main)
