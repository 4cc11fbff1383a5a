"""Typeset the poster (24 x 36 in) from the tables and figures that the workflow made, as PDF and PNG."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.poster.typeset import typeset


def main() -> None:
    """Parse, typeset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="folder of the Typst sources (poster/src)")
    parser.add_argument("--tables", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--figures", type=Path, nargs="+", required=True, help="the SVG figures")
    parser.add_argument("--out-pdf", type=Path, required=True)
    parser.add_argument("--out-png", type=Path, required=True)
    parser.add_argument("--ppi", type=float, default=100.0, help="pixels per inch of the PNG")
    args = parser.parse_args()
    typeset(
        args.source, tables=args.tables, figures=args.figures, out_pdf=args.out_pdf, out_png=args.out_png, ppi=args.ppi
    )


if __name__ == "__main__":
    console.run(main)
