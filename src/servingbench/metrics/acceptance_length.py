"""Acceptance length: tokens committed by a forward that carried a draft, pooled and per prompt."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from servingbench.metrics.records import MissingValue, Record, draft_steps


def acceptance_length_pooled(records: Sequence[Record]) -> float:
    """1 + sum A / sum S, in tokens per drafted forward: the pooled acceptance length."""
    drafted = draft_steps(records)
    return 1 + sum(accepted for _, _, accepted in drafted) / len(drafted)


def acceptance_length_mean(records: Sequence[Record]) -> float:
    """Mean over prompts of 1 + A/S (a prompt's repeats pooled); prompts on which nothing was proposed have no value."""
    by_prompt: dict[str, list[Record]] = {}
    for record in records:
        by_prompt.setdefault(record["prompt_id"], []).append(record)
    draft_steps(records)  # raises for a reason that holds for all prompts together
    values = []
    for group in by_prompt.values():
        try:
            values.append(acceptance_length_pooled(group))
        except MissingValue:
            continue
    return fmean(values)
