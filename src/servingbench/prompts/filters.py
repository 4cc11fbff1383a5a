"""Which rows of a source a workload takes: conditions on columns, written as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from servingbench.errors import UserError
from servingbench.prompts.columns import lookup
from servingbench.prompts.row import Row
from servingbench.records.schema import suggest

# One line per condition; words are looked for without regard to case, anywhere in the text.
CONDITIONS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": lambda value, wanted: bool(value == wanted),
    "min_chars": lambda text, least: len(text) >= least,
    "max_chars": lambda text, most: len(text) <= most,
    "min_items": lambda items, least: len(items) >= least,
    "max_items": lambda items, most: len(items) <= most,
    "any_of": lambda text, words: any(word.lower() in text.lower() for word in words),
    "none_of": lambda text, words: not any(word.lower() in text.lower() for word in words),
}
_TAKES: dict[str, type] = {"min_items": list, "max_items": list} | dict.fromkeys(
    ("min_chars", "max_chars", "any_of", "none_of"), str
)


def passes(row: Row, filters: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every condition of every filter holds, such as ``{column: question, min_chars: 30, none_of: [poem]}``.

    Raises:
        UserError: for an unknown condition, a missing column, or a value that a condition cannot be asked of.
    """
    return all(
        _holds(row, spec["column"], name, argument)
        for spec in filters
        for name, argument in spec.items()
        if name != "column"
    )


def _holds(row: Row, column: str, name: str, argument: Any) -> bool:
    if name not in CONDITIONS:
        raise UserError("unknown condition", key="source.filters", value=name, remedy=suggest(name, CONDITIONS))
    value = lookup(row, column)
    wanted = _TAKES.get(name)
    if wanted is not None and not isinstance(value, wanted):
        kind = "a list" if wanted is list else "text"
        raise UserError(f"{column!r} must be {kind} for {name}", file=row.file, key=row.key, value=str(value)[:60])
    return CONDITIONS[name](value, argument)
