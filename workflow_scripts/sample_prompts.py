"""Sample the prompts of one workload into a prompt file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from servingbench import console
from servingbench.errors import UserError
from servingbench.prompts.fetch import locate
from servingbench.prompts.sample import sample_workload, write_prompts
from servingbench.records.schema import validate

EXAMPLE = """\
example:
  python workflow_scripts/sample_prompts.py --workload math --seed 0 --limit 4 --out math.jsonl --row \\
    '{"label": "Math", "description": "word problems", "license": "Apache-2.0", "max_new_tokens": 256,
      "source": {"kind": "jsonl", "file": "config/prompts/math.jsonl"}, "rendering": {"chat_template": true}}'

The sample depends on the seed and on the prompts' ids alone, not on their order, and the sample for a smaller limit
is the beginning of the sample for a larger one.
"""


def main() -> None:
    """Parse the command line, sample, write the prompt file."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", required=True, metavar="NAME", help="the workload in config/workloads.yaml")
    parser.add_argument("--row", required=True, metavar="JSON", help="its row there, as JSON")
    parser.add_argument("--seed", required=True, type=int, help="chooses the prompts; 0 or more")
    parser.add_argument("--limit", required=True, type=int, help="largest number of prompts; 1 or more")
    parser.add_argument(
        "--source", nargs="+", type=Path, metavar="PATH", help="the source's files (default: the row's)"
    )
    parser.add_argument(
        "--downloads",
        type=Path,
        default=Path("resources/downloads"),
        metavar="DIR",
        help="where fetched wheels and files are kept (default: %(default)s)",
    )
    parser.add_argument(
        "--datasets-root",
        type=Path,
        nargs="?",
        metavar="DIR",
        help="copies of hub and GitHub repositories (DIR/owner/name/...), read in the network's place",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the prompt file to write")
    arguments = parser.parse_args()

    try:
        row = json.loads(arguments.row)
    except json.JSONDecodeError as error:
        raise UserError(f"not valid JSON: {error.msg}", file="--row", key=f"character {error.pos + 1}") from None
    validate({arguments.workload: row}, "workloads", file="--row")
    paths = arguments.source or locate(
        arguments.workload,
        row["source"],
        root=Path(),
        downloads=arguments.downloads,
        datasets_root=arguments.datasets_root,
    )
    header, prompts = sample_workload(arguments.workload, row, paths, seed=arguments.seed, limit=arguments.limit)
    write_prompts(arguments.out, header, prompts)
    short = f" (all there are; the limit is {arguments.limit})" if len(prompts) < arguments.limit else ""
    print(f"{arguments.workload}: {len(prompts)} of {header['available']} prompts{short} -> {arguments.out}")


if __name__ == "__main__":
    console.run(main)
