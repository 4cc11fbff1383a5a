"""Memory."""

from __future__ import annotations

from collections.abc import Sequence

from servingbench.metrics.records import Record, column


def peak_memory_mib(records: Sequence[Record]) -> float:
    """Largest peak memory of any record, in MiB."""
    return max(column(records, "peak_memory_bytes")) / 2**20
