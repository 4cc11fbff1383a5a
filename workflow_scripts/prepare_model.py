"""Bring one model into resources/models/ and write model.json, which says where its weights are."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from servingbench import console
from servingbench.models.prepare import prepare
from servingbench.revisions.environment import check


def main() -> None:
    """Parse the arguments and prepare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="the model's name, a row of config/models.yaml")
    parser.add_argument("--row", type=json.loads, required=True, help="that row, as JSON")
    parser.add_argument("--environment", type=Path, nargs="?", help="environment.json of the revision that converts it")
    parser.add_argument("--source", type=Path, nargs="?", help="prepared folder of the model that this one is cut from")
    parser.add_argument("--downloads", type=Path, default=Path("resources/downloads"), help="where wheels are kept")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    args = parser.parse_args()
    if args.environment:
        check(args.environment)
    prepare(name=args.name, row=args.row, folder=args.out, source_folder=args.source, downloads=args.downloads)


if __name__ == "__main__":
    console.run(main)
