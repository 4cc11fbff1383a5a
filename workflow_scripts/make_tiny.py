"""Make one tiny checkpoint with random weights from its config."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from servingbench import console
from servingbench.revisions.environment import check
from servingbench.serving.tiny import make_tiny


def main() -> None:
    """Parse and make."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=json.loads, required=True, help="the model's row of config/serve.yaml, as JSON")
    parser.add_argument("--texts", type=Path, required=True, help="JSONL whose strings the tokenizer is trained on")
    parser.add_argument("--environment", type=Path, required=True, help="environment.json of the revision")
    parser.add_argument("--out", type=Path, required=True, help="the folder to make")
    args = parser.parse_args()
    check(args.environment)
    row = args.model
    make_tiny(config=row["config"], processor=row.get("processor"), texts=args.texts, folder=args.out)


if __name__ == "__main__":
    console.run(main)
