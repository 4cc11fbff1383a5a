"""Write the poster's tables, each as CSV and Markdown."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.figures.data import load_results
from servingbench.poster.facts import fact_tables
from servingbench.poster.tables import all_tables, write_tables

COMMANDS = ("make demo", "snakemake figures/all")


def main() -> None:
    """Parse, format, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statistics", type=Path, required=True, help="summaries and gates lie beside it")
    parser.add_argument("--methods-table", type=Path, required=True)
    parser.add_argument("--workloads-table", type=Path)
    parser.add_argument("--reported", type=Path, required=True, help="the folder config/reported")
    parser.add_argument(
        "--command", action="append", dest="commands", help="a command of the reproduce box; repeatable"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the tables")
    args = parser.parse_args()
    results = load_results(
        args.statistics,
        methods_table=args.methods_table,
        workloads_table=args.workloads_table,
        reported=args.reported,
    )
    write_tables(args.out, [*all_tables(results), *fact_tables(results, commands=args.commands or COMMANDS)])


if __name__ == "__main__":
    console.run(main)
