"""Tokens per forward, the reduction in target forwards that a method buys."""

from __future__ import annotations

from collections.abc import Sequence

from servingbench.metrics.records import MissingValue, Record, column, committed


def tokens_per_forward(records: Sequence[Record]) -> float:
    """sum N / sum F, in tokens per target forward (prefill included); exactly 1.0 for an autoregressive method."""
    forwards = sum(column(records, "forwards"))
    if forwards == 0:
        raise MissingValue("no target forward was counted")
    return sum(map(committed, records)) / forwards
