"""Verify utilisation: how much of the rows that the target verified ended up in the text."""

from __future__ import annotations

from collections.abc import Sequence

from servingbench.metrics.records import Record, draft_steps


def verify_utilisation(records: Sequence[Record]) -> float:
    """sum(A + 1) / sum(D + 1) over the S forwards that carried a draft: rows committed over rows computed."""
    drafted = draft_steps(records)
    return sum(accepted + 1 for _, _, accepted in drafted) / sum(proposed + 1 for proposed, _, _ in drafted)
