"""Measure one paired block: every method on every prompt of one workload, in one process.

Writes OUT/{method}/raw.jsonl and OUT/{method}/run.json for every method, when all prompts are finished. Until then each
finished prompt is kept in OUT/journal.jsonl: the same command continues after an interruption.
"""

from __future__ import annotations

import argparse

from servingbench import console
from servingbench.measure.generate import generate
from servingbench.measure.session import add_arguments


def main() -> None:
    """Parse the arguments, run the block, write its outputs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, out="folder of the results; one folder per method is made in it")
    generate(parser.parse_args())


if __name__ == "__main__":
    console.run(main)
