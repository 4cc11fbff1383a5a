"""Write the serve matrix as a table (CSV and Markdown) and as a figure (SVG, PDF and PNG)."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from servingbench import console
from servingbench.figures.save import save_figure
from servingbench.figures.serve_matrix import serve_matrix
from servingbench.poster.tables import write_tables
from servingbench.serving.matrix import matrix_table
from servingbench.serving.row import read_summaries


def main() -> None:
    """Parse, format, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--summaries", type=Path, nargs="*", default=[], help="summary.json of every row")
    parser.add_argument("--labels", type=json.loads, default={}, help="the rows' labels, as JSON")
    parser.add_argument("--out", type=Path, required=True, help="folder of matrix.csv, .md, .svg, .pdf and .png")
    args = parser.parse_args()
    summaries = read_summaries(args.summaries)
    write_tables(args.out, [matrix_table(summaries, args.labels)])
    save_figure(serve_matrix(summaries, args.labels), args.out / "matrix")


if __name__ == "__main__":
    console.run(main)
