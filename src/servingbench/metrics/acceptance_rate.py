"""Acceptance rate: the share of the draft that was committed, by proposed token and by depth."""

from __future__ import annotations

from collections.abc import Sequence

from servingbench.metrics.records import Record, draft_steps


def acceptance_rate(records: Sequence[Record]) -> float:
    """sum A / sum D: accepted draft tokens over proposed tokens (for a tree, over all of its nodes)."""
    drafted = draft_steps(records)
    return sum(accepted for _, _, accepted in drafted) / sum(proposed for proposed, _, _ in drafted)


def acceptance_rate_depth(records: Sequence[Record]) -> float:
    """sum A / sum depth: accepted draft tokens over the longest possible; for a path equal to sum A / sum D."""
    drafted = draft_steps(records)
    return sum(accepted for _, _, accepted in drafted) / sum(depth for _, depth, _ in drafted)
