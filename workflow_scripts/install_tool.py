"""Install a tool that runs beside the transformers revisions as an overlay of pinned packages, and describe it."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.revisions.install import install_tool


def main() -> None:
    """Parse the arguments and install."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="the tool's name")
    parser.add_argument("--pins", type=Path, required=True, help="its pinned closure, envs/NAME.txt")
    parser.add_argument("--out", type=Path, required=True, help="the folder to install into")
    args = parser.parse_args()
    install_tool(name=args.name, pins_file=args.pins, folder=args.out)


if __name__ == "__main__":
    console.run(main)
