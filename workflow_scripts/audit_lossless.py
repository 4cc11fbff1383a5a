"""Audit one workload: does every method, running free, write what the model would have written greedily?

Writes OUT (lossless.json). In float32 every method must reproduce greedy decoding token for token; in lower precisions
every token of every output must be within epsilon of the best logit under float32 weights. A method that does not pass
is reported with its reason; that is a result, so the exit status is 0 all the same.
"""

from __future__ import annotations

import argparse

from servingbench import console
from servingbench.measure.audit import audit_run
from servingbench.measure.session import add_arguments


def main() -> None:
    """Parse the arguments, run the audit, write its report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, out="the lossless.json to write")
    audit_run(parser.parse_args())


if __name__ == "__main__":
    console.run(main)
