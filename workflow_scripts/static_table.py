"""Make a model's static bigram table: what it says after each token of its vocabulary.

One pass, about two minutes for a 135M model on two cores. Writes static_table.safetensors beside OUT, and last OUT
itself, which describes and hashes it.
"""

from __future__ import annotations

import argparse

from servingbench import console
from servingbench.measure.static_table import add_arguments, write_static_table


def main() -> None:
    """Parse the arguments, make the table, describe it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    write_static_table(parser.parse_args())


if __name__ == "__main__":
    console.run(main)
