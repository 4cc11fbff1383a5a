"""Write figures/all: every figure with its SHA-256 and its inputs."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.figures.manifest import manifest, read_inputs
from servingbench.records.files import write_json


def main() -> None:
    """Parse, hash, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figures", type=Path, nargs="+")
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--inputs", required=True, help="JSON, or a file of JSON: {figure, stem or folder: [inputs]}")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    write_json(args.out, manifest(args.root, args.figures, read_inputs(args.inputs)))


if __name__ == "__main__":
    console.run(main)
