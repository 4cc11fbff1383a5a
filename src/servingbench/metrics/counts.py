"""Plain sums over records."""

from __future__ import annotations

from collections.abc import Sequence

from servingbench.metrics.records import Record, column, committed


def new_tokens(records: Sequence[Record]) -> int:
    """sum N: committed new tokens."""
    return sum(map(committed, records))


def forwards(records: Sequence[Record]) -> int:
    """sum F: target forwards, prefills included."""
    return sum(column(records, "forwards"))


def overrun_tokens(records: Sequence[Record]) -> int:
    """Tokens that the method emitted beyond the cap or the first EOS, and that were cut from the records."""
    return sum(record["overrun_tokens"] for record in records)
