"""The poster's words that depend on results: headline, limits, provenance, commands; and the methods' colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from servingbench.figures.data import Record, ResultSet, device_name, prompt_counts
from servingbench.figures.reported_numbers import ReportedNumber, select
from servingbench.figures.source_ablation import ablation_arms
from servingbench.figures.style import ink
from servingbench.poster.tables import NO_VALUE, STATUS_CELL, Table, floor_note, interval_note, lossless_tables, number


def fact_tables(results: ResultSet, *, commands: Sequence[str]) -> list[Table]:
    """The tables that the poster's text is made of.

    Args:
        results: measured results.
        commands: shell commands that reproduce them, in order.
    """
    return [
        Table("headline", ("name", "text"), tuple(headline(results).items())),
        Table("limits", ("text",), tuple((line,) for line in limits(results))),
        Table("provenance", ("name", "value"), tuple(provenance(results))),
        Table("commands", ("command",), tuple((line,) for line in commands)),
        Table("reported_sources", ("text",), tuple((line,) for line in reported_sources(results.reported))),
        methods_table(results),
    ]


def headline(results: ResultSet) -> dict[str, str]:
    """Named texts: model, device, dates, the primary contrast's number, notes under the tables."""
    primary = results.statistics["settings"]["primary"]
    row = results.comparison(primary, results.scopes[0])
    known = row is not None and row["status"] == "ok" and row["speedup"] is not None
    counts = prompt_counts(results)
    return {
        "model": str(results.key["model"]),
        "device": results.device,
        "revision": results.revision,
        "finished": max(_times(results, "finished"), default="")[:10],
        "baseline": results.method_label(results.baseline),
        "primary": results.method_label(primary),
        "primary_speedup": number(row["speedup"]) if row and known else NO_VALUE,
        "primary_interval": f"{row['ci'][0]:.2f} to {row['ci'][1]:.2f}" if row and known and row["ci"] else "",
        "primary_status": "" if known or row is None else STATUS_CELL.get(row["status"], str(row["status"])),
        "primary_n": str(row["n"]) if row else "0",
        "confidence": f"{100 * results.statistics['settings']['confidence']:g}%",
        "workloads": str(len(results.workloads)),
        "n": counts or "no",
        "timing": str(results.statistics["settings"]["timing"]),
        "interval_note": interval_note(results),
        "floor_note": floor_note(results),
        "has_ablation": "yes" if ablation_arms(results) else "no",
        "gate_note": " ".join(lossless_tables(results)[0].notes),
        "has_gate": "yes" if results.lossless else "no",
    }


def limits(results: ResultSet) -> list[str]:
    """What these results cannot say, most important first."""
    lines = [floor_note(results)]
    open_rows = [
        row for row in _overall(results) if row["status"] == "ok" and row["ci"] and row["ci"][0] <= 1 <= row["ci"][1]
    ]
    if open_rows:
        parts = [results.method_label(row["method"]) + _needed(row) for row in open_rows]
        lines.append(f"Overall, not told from 1: {'; '.join(parts)}.")
    counts = prompt_counts(results)
    lines.append(
        f"{counts or 'No'} paired prompts per workload, one sample (seed {results.key['seed']}): "
        "other prompts may differ by more than these intervals."
    )
    missing = [row for row in results.statistics["comparisons"] if row["status"] != "ok"]
    for status in dict.fromkeys(row["status"] for row in missing):
        own = [row for row in missing if row["status"] == status]
        names = list(dict.fromkeys(results.method_label(row["method"]) for row in own))
        share = f"{len(own)} of {len(results.statistics['comparisons'])} comparisons"
        lines.append(f"No speedup, {STATUS_CELL.get(status, status)}: {', '.join(names)} ({share}).")
    lines.append(
        f"One machine ({results.device}), one model ({results.key['model']}), one request at a time, greedy: "
        "nothing about other hardware, batches or sampling."
    )
    if results.statistics["settings"]["timing"] == "forced":
        lines.append(
            "Timed on the reference text (forced replay): a method that writes another text in low precision "
            "may run at another speed."
        )
    return [*lines, *results.statistics["notes"]]


def provenance(results: ResultSet) -> list[tuple[str, str]]:
    """Device, versions, commit, dates, settings; what was not recorded says so."""
    records = [summary["provenance"] for summary in results.summaries.values()]
    settings = results.statistics["settings"]
    torch = _each(record.get("packages", {}).get("torch") for record in records)
    counts, confidence = prompt_counts(results), f"{100 * settings['confidence']:g}%"
    commits = _each(_commit(record.get("pipeline", {})) for record in records)
    started, finished = min(_times(results, "started"), default=""), max(_times(results, "finished"), default="")
    return [
        ("Device", _each(device_name(summary) for summary in results.summaries.values())),
        ("Model", str(results.key["model"])),
        ("Revision", f"{results.key['revision']} (transformers {results.revision})"),
        ("torch", torch),
        ("Pipeline commit", commits),
        ("Prompts", f"seed {results.key['seed']}, limit {results.key['limit']}, n = {counts or 0} per workload"),
        ("Timing", str(settings["timing"])),
        (
            "Intervals",
            f"{confidence} {settings['interval']}, {settings['resamples']:,} resamples, seed {settings['seed']}",
        ),
        ("Run", f"{started[:16]} to {finished[:16]}".replace("T", " ") if started else "not recorded"),
    ]


def reported_sources(numbers: Sequence[ReportedNumber]) -> list[str]:
    """What the reported tables hold and where they come from, one sentence per experiment and per source."""
    lines = []
    for experiment in dict.fromkeys(row.experiment for row in numbers):
        first = select(numbers, experiment=experiment)[0]
        prompts = f", {first.n_prompts} prompts per workload" if first.n_prompts else ""
        lines.append(f"{first.gpu}: {first.model}, {first.date}{prompts}.")
    sources = dict.fromkeys(row.source for row in numbers)
    return list(dict.fromkeys(lines)) + [f"Source: {name}." for name in sources]


def methods_table(results: ResultSet) -> Table:
    """Every arm with its label, its colour in the figures, and that colour darkened for text."""
    rows = []
    for name in results.statistics["methods"]:
        role = "baseline" if name == results.baseline else "aa" if name == results.aa else "contender"
        color = results.look(name).color
        rows.append((name, results.method_label(name), role, color, ink(color)))
    return Table("methods", ("method", "label", "role", "color", "ink"), tuple(rows))


def _overall(results: ResultSet) -> list[Record]:
    rows = (results.comparison(name, results.scopes[0]) for name in results.contenders)
    return [row for row in rows if row is not None]


def _needed(row: Record) -> str:
    return (
        f" (about {row['n_to_resolve']:,} prompts would; n = {row['n']})"
        if row["n_to_resolve"]
        else f" (n = {row['n']})"
    )


def _times(results: ResultSet, name: str) -> list[str]:
    return [value for summary in results.summaries.values() if (value := summary["provenance"].get(name))]


def _commit(pipeline: Record) -> str | None:
    commit = pipeline.get("commit")
    return f"{commit[:12]}{', with local changes' if pipeline.get('dirty') else ''}" if commit else None


def _each(values: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(value for value in values if value)) or "not recorded"
