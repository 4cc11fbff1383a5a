"""The serve matrix as a table: a row's status, accuracy, speed and latency at each concurrency, and why it failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servingbench.poster.tables import NO_VALUE, Table, number

STATUS_WORDS = {"ok": "ok", "degraded": "degraded", "failed": "failed", "abandoned": "abandoned",
                "predicted_fail": "predicted to fail"}  # fmt: skip


def matrix_table(summaries: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> Table:
    """One line per row; a dash where a row did not come so far."""
    levels = sorted({level["concurrency"] for summary in summaries for level in summary["load"]})
    heads = [f"{name} @{level}" for level in levels for name in ("tok/s", "TTFT ms", "TPOT ms")]
    columns = ("Row", "Model", "Engine", "Hardware", "Status", "Attention", "Batching", "Accuracy", "Ready s", *heads)
    rows = tuple(_row(summary, levels, labels) for summary in summaries)
    return Table("matrix", (*columns, "Failure"), rows, notes(summaries))


def _row(summary: Mapping[str, Any], levels: Sequence[int], labels: Mapping[str, str]) -> tuple[str, ...]:
    load = {level["concurrency"]: level for level in summary["load"]}
    cells: list[str] = []
    for level in levels:
        own = load.get(level)
        values = (own["tok_s"], own["ttft_ms"]["p50"], own["tpot_ms"]["p50"]) if own else (None, None, None)
        cells += [number(value, 1) for value in values]
    used = summary["effective"]["cb_used"]
    return (
        labels.get(summary["row_id"], summary["row_id"]),
        summary["model"]["id"],
        f"{summary['engine']['name']} {summary['engine']['version']}",
        summary["hardware"]["flavor"],
        STATUS_WORDS[summary["status"]],
        summary["effective"]["attn_implementation"] or NO_VALUE,
        NO_VALUE if used is None else "continuous" if used else "sequential",
        accuracy(summary),
        number(summary["launch"]["ready_s"], 1),
        *cells,
        (summary["failure"] or {}).get("signature") or "",
    )


def accuracy(summary: Mapping[str, Any]) -> str:
    """``0.33 ± 0.33 (n = 3)``, or a dash."""
    evaluation = summary["eval"] or {}
    if evaluation.get("accuracy") is None:
        return NO_VALUE
    return f"{evaluation['accuracy']:.2f} ± {number(evaluation['stderr'])} (n = {evaluation['completed']})"


def notes(summaries: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What the numbers are."""
    requests = sorted({level["requests"] for summary in summaries for level in summary["load"]})
    per = f"{requests[0]} to {requests[-1]}" if len(requests) > 1 else str(requests[0]) if requests else "no"
    return (
        "Accuracy on the evaluation's problems with its standard error; TTFT and TPOT are medians; @N: N requests at "
        f"once, {per} requests each. A degraded row serves, but not as it asks.",
    )
