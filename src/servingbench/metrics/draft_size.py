"""Size of a draft and of what is accepted of it, per forward that carried one."""

from __future__ import annotations

from collections.abc import Sequence

from servingbench.metrics.records import Record, draft_steps


def proposed_per_step(records: Sequence[Record]) -> float:
    """sum D / sum S, in proposed tokens (tree nodes) per drafted forward."""
    drafted = draft_steps(records)
    return sum(proposed for proposed, _, _ in drafted) / len(drafted)


def accepted_per_step(records: Sequence[Record]) -> float:
    """sum A / sum S, in accepted draft tokens per drafted forward: the pooled acceptance length less one."""
    drafted = draft_steps(records)
    return sum(accepted for _, _, accepted in drafted) / len(drafted)
