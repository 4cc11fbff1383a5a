"""What the drafts cost: host time per decode step and draft-model forwards."""

from __future__ import annotations

from collections.abc import Sequence

from servingbench.metrics.records import MissingValue, Record, column


def propose_us_per_step(records: Sequence[Record]) -> float:
    """sum propose time / sum (F - 1), in µs: the drafter is asked before every target forward but the prefill.

    Forwards for which it had nothing to propose count too: asking costs time there as well.
    """
    decode_steps = sum(column(records, "forwards")) - len(records)
    propose_ns = sum(column(records, "propose_ns"))
    if decode_steps <= 0:
        raise MissingValue("no forward came after a prefill")
    return propose_ns / decode_steps / 1e3


def draft_forwards(records: Sequence[Record]) -> int:
    """Sum of the draft model's forward calls."""
    return sum(column(records, "draft_forwards"))
