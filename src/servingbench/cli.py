"""The command `servingbench`: what can be run, which files a run makes, what came out. The rest is snakemake."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from servingbench import console
from servingbench.config import tables
from servingbench.config.estimate import estimated_hours
from servingbench.config.experiment import Experiment, load_suite
from servingbench.config.paths import FIGURE_FOLDER, POSTER_FOLDER, RAW, STATISTICS, TABLES
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
    outputs.add_argument("workloads", nargs="*", metavar="workload", help="the raw records of these workloads only")
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
        sys.stdout.writelines(f"{path}\n" for path in _outputs(experiment, args.workloads, tables=args.tables))


def _outputs(experiment: Experiment, workloads: list[str], *, tables: bool) -> Iterator[str]:
    for name in workloads:
        if name not in experiment.workloads:
            remedy = suggest(name, experiment.workloads)
            raise UserError("not a workload of this configuration", key="workload", value=name, remedy=remedy)
    if tables:
        yield from experiment.expand(TABLES)
    else:
        yield from experiment.expand(RAW, workload=workloads or experiment.workloads, method=experiment.methods)


def _list(what: str | None) -> None:
    known = load_suite(CONFIG).tables
    for name in [what] if what else ["suites", *tables.TABLES]:
        table = {} if name == "suites" else getattr(known, name)
        rows = {row: str(value["label"]) for row, value in table.items()} or _suites()
        print(f"{name} (config/{name}{'/' if name == 'suites' else '.yaml'})")
        width = max(map(len, rows), default=0)
        sys.stdout.writelines(f"  {row:<{width}}  {label}\n" for row, label in rows.items())


def _suites() -> dict[str, str]:
    """Each ready suite with its size."""
    sizes = {}
    for path in sorted((CONFIG / "suites").glob("*.yaml")):
        suite = load_suite(CONFIG, path)
        runs = len(list(suite.all_keys())) * len(suite.workloads)
        hours = estimated_hours(suite)
        time = "" if hours is None else f"{hours:7.1f} h" if hours >= 1 else f"{60 * hours:7.0f} min"
        sizes[path.stem] = (
            f"{runs:3} runs of {suite.limit:2} prompts x {len(suite.methods) * suite.repeats:2} arms, at most{time} on "
            f"{', '.join(suite.gpus)}; {len(suite.workloads)} workloads, {', '.join(suite.models)}, "
            f"{', '.join(suite.revisions)}"
        )
    return sizes


def _show(experiment: Experiment) -> None:
    from servingbench.figures.data import load_results
    from servingbench.poster.terminal import result_text

    for key in experiment.all_keys():
        results = load_results(
            Path(STATISTICS.format(**key)),
            methods_table=CONFIG / "methods.yaml",
            workloads_table=CONFIG / "workloads.yaml",
        )
        figures = sorted(map(str, Path(FIGURE_FOLDER.format(**key)).glob("*.svg")))
        posters = sorted(map(str, Path(POSTER_FOLDER.format(**key)).glob("poster.*")))
        width = shutil.get_terminal_size((100, 24)).columns
        print(result_text(results, paths={"Figures": figures, "Poster": posters}, width=max(width, 60)), end="")


if __name__ == "__main__":
    entry_point()
