"""The result table on a terminal: compact, aligned, with intervals, the floor and n."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from servingbench.figures.data import ResultSet, geometric_mean
from servingbench.poster.tables import comparison_cell, floor_note, interval_note, number, speedup_table


def result_text(results: ResultSet, *, paths: Mapping[str, Sequence[str]] | None = None, width: int = 100) -> str:
    """Title, speedups (methods down, scopes across, folded to ``width`` columns), floor, paths of what was made.

    Args:
        results: measured results.
        paths: headings and the paths to print beneath them.
        width: columns of the terminal.
    """
    key = results.key
    title = (
        f"{key['model']} on {results.device}, transformers {results.revision}, seed {key['seed']}, limit {key['limit']}"
    )
    blocks = [title, ""]
    for scopes in _chunks(results, width):
        blocks += [*_block(results, scopes), ""]
    blocks += [interval_note(results), floor_note(results), *(f"Note: {note}" for note in results.statistics["notes"])]
    blocks += _reasons(results)
    for heading, names in (paths or {}).items():
        if names:
            blocks += ["", f"{heading}:", *(f"  {name}" for name in names)]
    return "\n".join(blocks) + "\n"


def _block(results: ResultSet, scopes: Sequence[str]) -> list[str]:
    arms = [name for name in results.statistics["methods"] if name != results.baseline]
    head = ["", *(results.workload_label(scope) for scope in scopes)]
    rows = [
        [results.method_label(name), *(comparison_cell(results.comparison(name, scope)) for scope in scopes)]
        for name in arms
    ]
    rates = [_rate(results, scope) for scope in scopes]
    counts = {row[0]: row[1] for row in speedup_table(results).rows}
    tail = [
        ["n", *(counts[results.workload_label(scope)] for scope in scopes)],
        [f"{results.method_label(results.baseline)}, tok/s", *(number(rate, 1) for rate in rates)],
    ]
    table = [head, *rows, *tail]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in table]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return [lines[0], rule, *lines[1 : 1 + len(rows)], rule, *lines[1 + len(rows) :]]


def _rate(results: ResultSet, scope: str) -> float | None:
    """The baseline's tok/s; overall, the geometric mean over workloads."""
    names: Iterable[str] = [scope] if scope in results.workloads else results.workloads
    return geometric_mean(results.metric(name, results.baseline, "overall_tokens_per_second") for name in names)


def _reasons(results: ResultSet) -> list[str]:
    """Why comparisons are missing, each reason once."""
    rows = [row for row in results.statistics["comparisons"] if row["status"] != "ok"]
    return [
        f"No speedup for {results.method_label(row['method'])}, {results.workload_label(row['scope'])}: "
        f"{row['reason'] or row['status']}"
        for row in rows
    ]


def _chunks(results: ResultSet, width: int) -> list[list[str]]:
    """Scopes in groups whose columns fit; the first column holds the methods' labels."""
    first = max(len(results.method_label(name)) for name in results.statistics["methods"]) + 9
    chunks: list[list[str]] = [[]]
    room = width - first
    for scope in results.scopes:
        need = max(len(results.workload_label(scope)), len("1.54 [1.32, 1.81]")) + 2
        if chunks[-1] and need > room:
            chunks.append([])
            room = width - first
        chunks[-1].append(scope)
        room -= need
    return chunks
