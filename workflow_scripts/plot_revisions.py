"""Draw what another transformers revision did to a model: revisions.json -> SVG, PDF and PNG."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.config.tables import load_yaml
from servingbench.figures.revisions import revisions
from servingbench.figures.save import save_figure
from servingbench.figures.style import style
from servingbench.records.files import read_json
from servingbench.records.schema import validate


def main() -> None:
    """Parse, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparison", type=Path, metavar="FILE", help="revisions.json")
    parser.add_argument("--methods-table", type=Path, required=True)
    parser.add_argument("--revisions-table", type=Path, required=True)
    parser.add_argument("--out-stem", type=Path, required=True, help="path without extension")
    arguments = parser.parse_args()
    comparison = read_json(arguments.comparison)
    validate(comparison, "across_revisions", file=arguments.comparison)
    tables = load_yaml(arguments.methods_table), load_yaml(arguments.revisions_table)
    with style():
        figure = revisions(comparison, methods=tables[0], revisions_table=tables[1])
    save_figure(figure, arguments.out_stem)


if __name__ == "__main__":
    console.run(main)
