"""Throughput, the primary speed metric of one method."""

from __future__ import annotations

from collections.abc import Sequence

from servingbench.metrics.records import MissingValue, Record, column, committed


def overall_tokens_per_second(records: Sequence[Record]) -> float:
    """sum N / sum W, in tokens per second of synchronised wall time, prefill included."""
    wall_ns = sum(column(records, "wall_ns"))
    if wall_ns == 0:
        raise MissingValue("the recorded wall time is zero")
    return sum(map(committed, records)) / wall_ns * 1e9
