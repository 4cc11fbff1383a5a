"""The poster's tables: every cell is read from the records or from config/reported, formatted once, here."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from servingbench.figures.data import Record, ResultSet
from servingbench.figures.reported_numbers import METHOD_LABELS, SOURCE_LABELS, ReportedNumber, select
from servingbench.records.files import write_text

NO_VALUE = "\N{EN DASH}"
MODIFIED_NOTE = "Measured with a modified transformers: a working folder with changes that no commit holds."
STATUS_CELL = {"not_lossless": "not lossless", "too_few": "too few", "failed": "failed", "unsupported": "unsupported"}


@dataclass(frozen=True)
class Table:
    """A table of text: its file name, its columns, its rows, and the lines printed beneath it."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def csv(self) -> str:
        """The table as CSV (the notes stand in notes.csv)."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return stream.getvalue()

    def markdown(self) -> str:
        """The table as GitHub Markdown, its notes beneath."""
        lines = [_line(self.columns), _line(["---"] * len(self.columns)), *map(_line, self.rows)]
        return "\n".join(lines + [f"\n{note}" for note in self.notes]) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def write_tables(folder: Path, tables: Iterable[Table]) -> list[Path]:
    """Write each table as CSV and Markdown; returns the paths."""
    paths = []
    for table in tables:
        for suffix, text in (("csv", table.csv()), ("md", table.markdown())):
            paths.append(folder / f"{table.name}.{suffix}")
            write_text(paths[-1], text)
    return paths


def number(value: float | None, digits: int = 2) -> str:
    """A number with fixed digits; a dash for a missing one."""
    return NO_VALUE if value is None else f"{value:.{digits}f}"


def comparison_cell(comparison: Record | None, *, digits: int = 2) -> str:
    """``1.54 [1.32, 1.81]``, or why there is no number."""
    if comparison is None:
        return "not run"
    if comparison["status"] != "ok" or comparison["speedup"] is None:
        return STATUS_CELL.get(comparison["status"], "no comparison")
    text = number(comparison["speedup"], digits)
    return text + f" [{comparison['ci'][0]:.{digits}f}, {comparison['ci'][1]:.{digits}f}]" if comparison["ci"] else text


def speedup_table(results: ResultSet) -> Table:
    """Scopes down, methods across, the A/A arm last; the resolution floor and n beneath."""
    arms = [*results.contenders, *([results.aa] if results.aa else [])]
    rows = []
    for scope in results.scopes:
        own = [results.comparison(name, scope) for name in arms]
        counts = sorted({row["n"] for row in own if row})
        n = NO_VALUE if not counts else str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        cells = [
            comparison_cell(row, digits=3 if name == results.aa else 2) for name, row in zip(arms, own, strict=True)
        ]
        rows.append((results.workload_label(scope), n, *cells))
    labels = [results.method_label(name) if name != results.aa else "A/A" for name in arms]
    return Table("speedup", ("Workload", "n", *labels), tuple(rows), (interval_note(results), floor_note(results)))


def interval_note(results: ResultSet) -> str:
    """What the numbers of the speedup table are."""
    settings = results.statistics["settings"]
    return (
        f"Geometric-mean speedup over {results.method_label(results.baseline).lower()}, paired per prompt, with the "
        f"{100 * settings['confidence']:g}% {settings['interval']} interval ({settings['resamples']:,} resamples); "
        "n: paired prompts."
    )


def floor_note(results: ResultSet) -> str:
    """The resolution floor: what the baseline against itself could not tell from 1."""
    floors = results.statistics["resolution_floor"]
    overall = floors.get(results.scopes[0])
    if overall is None:
        why = "the A/A arm has no interval" if results.aa else "no A/A arm was run"
        return f"Resolution floor: not known, {why}."
    text = f"Resolution floor (A/A): speedups from {1 / overall:.3f} to {overall:.3f} are within noise"
    own = [floors[name] for name in results.workloads if floors.get(name) is not None]
    if len(results.scopes) > 1 and own:
        text += f"; in single workloads up to {max(own):.3f} (and its inverse)"
    return text + "."


def comparisons_table(results: ResultSet) -> Table:
    """Every comparison and contrast, one per row, with both intervals and the secondary speedups."""
    columns = (
        "method",
        "reference",
        "scope",
        "status",
        "n",
        "speedup",
        "ci_low",
        "ci_high",
        "percentile_ci_low",
        "percentile_ci_high",
        "speedup_total",
        "speedup_mean_of_rates",
        "p_value",
        "p_holm",
        "primary",
        "n_to_resolve",
        "identical_outputs",
        "reason",
    )
    rows = []
    for row in [*results.statistics["comparisons"], *results.statistics["contrasts"]]:
        ends = [end for name in ("ci", "percentile_ci") for end in row[name] or (None, None)]
        rows.append(
            (
                row["method"],
                row["reference"],
                row["scope"],
                row["status"],
                str(row["n"]),
                number(row["speedup"], 4),
                *(number(end, 4) for end in ends),
                number(row["speedup_total"], 4),
                number(row["speedup_mean_of_rates"], 4),
                number(row["p_value"], 4),
                number(row["p_holm"], 4),
                "yes" if row["primary"] else "no",
                NO_VALUE if row["n_to_resolve"] is None else str(row["n_to_resolve"]),
                str(row["identical_outputs"]),
                row["reason"] or "",
            )
        )
    return Table("comparisons", columns, tuple(rows), (floor_note(results),))


ACCEPTANCE_COLUMNS: tuple[tuple[str, str, int], ...] = (
    ("tokens per forward", "tokens_per_forward", 2),
    ("acceptance length, pooled", "acceptance_length_pooled", 2),
    ("acceptance length, mean", "acceptance_length_mean", 2),
    ("acceptance rate", "acceptance_rate", 3),
    ("acceptance rate, depth", "acceptance_rate_depth", 3),
    ("verify utilisation", "verify_utilisation", 3),
    ("proposed/step", "proposed_per_step", 2),
    ("accepted/step", "accepted_per_step", 2),
    ("tok/s", "overall_tokens_per_second", 1),
    ("TTFT ms", "ttft_ms", 1),
    ("TPOT ms", "tpot_ms", 2),
    ("propose us/step", "propose_us_per_step", 1),
    ("peak MiB", "peak_memory_mib", 0),
)


def acceptance_table(results: ResultSet) -> Table:
    """Workload x method: tokens per forward, acceptance, throughput, latency, memory."""
    rows = [
        (
            results.workload_label(workload),
            results.method_label(method),
            *(number(results.metric(workload, method, name), digits) for _, name, digits in ACCEPTANCE_COLUMNS),
        )
        for workload in results.workloads
        for method in results.statistics["methods"]
        if (workload, method) in results.summaries
    ]
    columns = ("workload", "method", *(title for title, _, _ in ACCEPTANCE_COLUMNS))
    return Table("acceptance", columns, tuple(rows), ("A dash: not defined for the method, or not recorded.",))


def lossless_tables(results: ResultSet) -> list[Table]:
    """The gate per workload and method, and per method over all workloads."""
    methods = list(dict.fromkeys(name for gate in results.lossless.values() for name in gate["methods"]))
    single, pooled = [], []
    for method in methods:
        own = {name: gate["methods"][method] for name, gate in results.lossless.items() if method in gate["methods"]}
        for workload, row in own.items():
            gate = results.lossless[workload]
            single.append(
                (
                    results.workload_label(workload),
                    results.method_label(method),
                    "passed" if row["passed"] else "FAILED",
                    f"{row['identical_outputs']} of {row['prompts']}",
                    number(row["worst_gap"], 3),
                    f"{gate['epsilon']:g}",
                    number(gate["baseline_worst_gap"], 3),
                    row["reason"] or "",
                )
            )
        gaps = [row["worst_gap"] for row in own.values() if row["worst_gap"] is not None]
        identical, prompts = (sum(row[name] for row in own.values()) for name in ("identical_outputs", "prompts"))
        failed = [results.workload_label(name) for name, row in own.items() if not row["passed"]]
        verdict = "passed" if not failed else "FAILED: " + ", ".join(failed)
        pooled.append(
            (results.method_label(method), f"{identical} of {prompts}", number(max(gaps, default=None), 3), verdict)
        )
    gates = list(results.lossless.values())
    notes = []
    if gates:
        dtypes, epsilons = (
            ", ".join(dict.fromkeys(f"{gate[name]}" for gate in gates)) for name in ("dtype", "epsilon")
        )
        worst = max(gate["baseline_worst_gap"] for gate in gates)
        notes = [
            f"Run in {dtypes}; gap under float32 weights, allowed up to {epsilons}. "
            f"The baseline's own worst gap: {worst:.3f}."
        ]
    columns = (
        "workload",
        "method",
        "gate",
        "identical outputs",
        "worst gap",
        "epsilon",
        "baseline worst gap",
        "reason",
    )
    return [
        Table("lossless", columns, tuple(single), tuple(notes)),
        Table("lossless_methods", ("Method", "Same text", "Worst gap", "Gate"), tuple(pooled), tuple(notes)),
    ]


def reported_tables(numbers: Sequence[ReportedNumber]) -> list[Table]:
    """The published tables as published: methods or sources across or down as there, values as printed."""
    sources = dict.fromkeys(row.source for row in numbers)
    note = (f"Reported, not measured here. Source: {'; '.join(sources)}.",)
    h100 = select(numbers, gpu="H100", quantity="speedup", reference="autoregressive")
    methods = list(dict.fromkeys(row.method for row in h100))
    tables = [
        Table(
            "reported_h100",
            ("Task", *(METHOD_LABELS[name] for name in methods)),
            tuple((label, *(row.text for row in select(h100, workload_label=label))) for label in _labels(h100)),
            note
            + tuple(_contrast_note(row) for row in select(numbers, gpu="H100") if row.reference != "autoregressive"),
        )
    ]
    l40s = [row for row in select(numbers, gpu="L40S") if not row.index_source]
    groups = list(dict.fromkeys((row.quantity, row.unit, row.method) for row in l40s))
    every = tuple(dict.fromkeys(row.quantity for row in l40s))
    for name, quantities in (("reported_l40s_speedup", ("speedup",)), ("reported_l40s", every)):
        rows = tuple(
            (
                *((f"{quantity.replace('_', ' ')} ({unit})",) if len(quantities) > 1 else ()),
                METHOD_LABELS[method],
                *(row.text for row in select(l40s, quantity=quantity, method=method)),
            )
            for quantity, unit, method in groups
            if quantity in quantities
        )
        head = ("Quantity", "Method") if len(quantities) > 1 else ("Method",)
        tables.append(Table(name, (*head, *_labels(l40s)), rows, note))
    ablation = [row for row in numbers if row.index_source]
    indexes = [name for name in SOURCE_LABELS if select(ablation, index_source=name)]
    rows = tuple((SOURCE_LABELS[name], *(row.text for row in select(ablation, index_source=name))) for name in indexes)
    return [*tables, Table("reported_source_ablation", ("Index (tok/s)", *_labels(ablation)), rows, note)]


def _labels(numbers: Sequence[ReportedNumber]) -> list[str]:
    return list(dict.fromkeys(row.workload_label for row in numbers))


def _contrast_note(row: ReportedNumber) -> str:
    pair = f"{METHOD_LABELS[row.method]} against {METHOD_LABELS[row.reference].lower()}"
    return f"{pair}, paired per prompt: {row.text} (95% interval {row.ci_low} to {row.ci_high})."


def all_tables(results: ResultSet) -> list[Table]:
    """Every table of measured and of reported numbers."""
    measured = [
        speedup_table(results),
        comparisons_table(results),
        acceptance_table(results),
        *lossless_tables(results),
    ]
    if results.modified:
        measured = [replace(table, notes=(*table.notes, MODIFIED_NOTE)) for table in measured]
    return [*measured, *reported_tables(results.reported)]
