"""The command `servingbench`: what can be run, which files a run makes, and what came out. Everything else is snakemake."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from servingbench import console
from servingbench.config import tables
from servingbench.config.experiment import Experiment, load_suite
from servingbench.config.paths import FIGURE_FOLDER, MODEL_FOLDER, POSTER_FOLDER, RAW, TABLES
from servingbench.errors import UserError
from servingbench.records.schema import suggest

CONFIG = Path("config")


def entry_point() -> None:
    """Run the command."""
    console.run(main)


def main() -> None:
    """Parse the arguments and do what they say."""
    parser = argparse.ArgumentParser(prog="servingbench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="list the suites, methods, workloads, models, GPUs and revisions")
    listing.add_argument("what", nargs="?", choices=["suites", *tables.TABLES], help="only these")
    outputs = commands.add_parser("outputs", help="the files that a configuration makes, one per line, for snakemake")
    outputs.add_argument("workload", nargs="?", help="the raw records of this workload")
    outputs.add_argument("--tables", action="store_true", help="the poster's tables")
    show = commands.add_parser("show", help="print the result table and the paths of the figures and the poster")
    for command in (outputs, show):
        command.add_argument("--configfile", type=Path, help="a suite; config/config.yaml alone without one")
    args = parser.parse_args()
    if not CONFIG.is_dir():
        raise UserError("no config/ here", file=Path.cwd(), remedy="run servingbench in the repository's root")
    if args.command == "list":
        _list(args.what)
        return
    experiment = load_suite(CONFIG, args.configfile)
    if args.command == "show":
        _show(experiment)
    else:
        sys.stdout.writelines(f"{path}\n" for path in _outputs(experiment, args.workload, tables=args.tables))


def _outputs(experiment: Experiment, workload: str | None, *, tables: bool) -> Iterator[str]:
    if workload is not None and workload not in experiment.workloads:
        remedy = suggest(workload, experiment.workloads)
        raise UserError("not a workload of this configuration", key="workload", value=workload, remedy=remedy)
    if tables:
        yield from experiment.expand(TABLES)
    else:
        yield from experiment.expand(RAW, workload=[workload] if workload else experiment.workloads, method=experiment.methods)


def _list(what: str | None) -> None:
    known = load_suite(CONFIG).tables
    for name in [what] if what else ["suites", *tables.TABLES]:
        rows = _suites() if name == "suites" else {row: str(value["label"]) for row, value in getattr(known, name).items()}
        print(f"{name} (config/{name}{'/' if name == 'suites' else '.yaml'})")
        width = max(map(len, rows), default=0)
        sys.stdout.writelines(f"  {row:<{width}}  {label}\n" for row, label in rows.items())


def _suites() -> dict[str, str]:
    """Each ready suite with its size."""
    sizes = {}
    for path in sorted((CONFIG / "suites").glob("*.yaml")):
        suite = load_suite(CONFIG, path)
        runs = len(list(suite.keys())) * len(suite.workloads)
        arms = len(suite.methods) * suite.repeats
        sizes[path.stem] = (
            f"{runs} runs: {len(suite.models)} model x {len(suite.workloads)} workloads x {len(suite.gpus)} GPU x "
            f"{len(suite.revisions)} revision, {suite.limit} prompts x {arms} arms each"
        )
    return sizes


def _show(experiment: Experiment) -> None:
    from servingbench.figures.terminal import print_results

    for key in experiment.keys():
        print_results(Path(MODEL_FOLDER.format(**key)), Path(FIGURE_FOLDER.format(**key)), Path(POSTER_FOLDER.format(**key)), experiment)


if __name__ == "__main__":
    entry_point()
