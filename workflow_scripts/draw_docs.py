"""Draw the picture of docs/methods.md, which depends on no results: docs/images/tree-step.svg."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.figures.save import save_figure
from servingbench.figures.style import style
from servingbench.figures.tree_step import draw_tree_step, tree_step
from servingbench.provenance import ROOT


def main() -> None:
    """Parse the arguments, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", metavar="DIR", help="the folder to write")
    args = parser.parse_args()
    with style():
        figure = draw_tree_step(tree_step())
    for path in save_figure(figure, args.out / "tree-step", ["svg"]):
        print(path)


if __name__ == "__main__":
    console.run(main)
