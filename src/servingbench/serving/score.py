"""What the preflight said of each row against what then happened to the row as it asks to be served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ORDER = ("pass", "risk", "degraded", "fail")
# What an outcome is in the preflight's words; a risk is no prediction of a failure.
OUTCOMES = {"ok": "pass", "degraded": "degraded", "failed": "fail", "abandoned": "fail"}


def predicted(preflight: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The worst verdict's entry, the certain one first; None without a preflight."""
    ranked = sorted(preflight, key=lambda entry: (-ORDER.index(entry["verdict"]), entry["confidence"] != "executed"))
    return ranked[0] if ranked else None


def score(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """score.json: one entry per row that was both judged and started, and how many were right."""
    rows = []
    for summary in summaries:
        worst = predicted(summary["preflight"])
        first = next((attempt for attempt in summary["attempts"] if attempt["current"]), None)
        if worst is None or first is None:
            continue
        happened = OUTCOMES[first["outcome"]]
        said = "pass" if worst["verdict"] == "risk" else worst["verdict"]
        rows.append(
            {
                "row_id": summary["row_id"],
                "predicted": worst["verdict"],
                "check": worst["check"] if worst["verdict"] != "pass" else None,
                "confidence": worst["confidence"],
                "evidence": worst["evidence"] if worst["verdict"] != "pass" else None,
                "happened": happened,
                "signature": (first["failure"] or {}).get("signature"),
                "right": said == happened,
            }
        )
    pairs = sorted({(row["predicted"], row["happened"]) for row in rows})
    counts = {
        f"{said}, {happened}": sum((row["predicted"], row["happened"]) == (said, happened) for row in rows)
        for said, happened in pairs
    }
    return {
        "schema_version": 1,
        "judged": len(rows),
        "right": sum(row["right"] for row in rows),
        "predicted_and_happened": counts,
        "rows": rows,
    }
