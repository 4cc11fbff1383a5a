"""Latency of one request: time to the first token, and time per token after it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from servingbench.metrics.records import MissingValue, Record, column, committed


def ttft_ms(records: Sequence[Record]) -> float:
    """Median over records of TTFT, the time from the start to the first new token, in ms."""
    return median(column(records, "ttft_ns")) / 1e6


def tpot_ms(records: Sequence[Record]) -> float:
    """Median over records of (t_N - t_1) / (N - 1), in ms; a record of a single token has none."""
    values = [
        decode_ns / (committed(record) - 1) / 1e6
        for record, decode_ns in zip(records, column(records, "decode_ns"), strict=True)
        if committed(record) > 1
    ]
    if not values:
        raise MissingValue("no output has more than one token")
    return median(values)
