"""Build Arctic Inference's suffix trees into a folder of their own, for the methods that draft with them."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.peers.arctic import FOLDER, PINS, build


def main() -> None:
    """Parse the arguments and build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pins", type=Path, default=PINS, help="what to download: name==version --hash=sha256:...")
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder to make (or make anew)")
    args = parser.parse_args()
    build(args.out, pins=args.pins)


if __name__ == "__main__":
    console.run(main)
