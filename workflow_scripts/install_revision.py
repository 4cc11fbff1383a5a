"""Install one transformers revision as an overlay of pinned packages and describe it in environment.json."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from servingbench import console
from servingbench.revisions.install import install


def main() -> None:
    """Parse the arguments and install."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="the revision's name, a row of config/revisions.yaml")
    parser.add_argument("--row", type=json.loads, required=True, help="that row, as JSON")
    parser.add_argument("--pins", type=Path, required=True, help="its pinned closure, envs/NAME.txt")
    parser.add_argument("--out", type=Path, required=True, help="the folder to install into")
    args = parser.parse_args()
    install(name=args.name, row=args.row, pins_file=args.pins, folder=args.out)


if __name__ == "__main__":
    console.run(main)
