"""Reaching into a row: column paths such as ``turns[0]`` or ``conversation[0][content]``, and templates of them."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from servingbench.errors import UserError
from servingbench.prompts.row import Row

_PATH = re.compile(r"([^\[\]]+)((?:\[[^\[\]]+\])*)")


def columns_read(source: Mapping[str, Any]) -> list[str] | None:
    """The columns that a workload's source reads, sorted; None where it takes whatever a row brings."""
    named = dict(source.get("columns", {}))
    identity = named.pop("id", "id")
    paths = [*named.values(), *(condition["column"] for condition in source.get("filters", []))]
    if "template" in source:
        paths += [field for _, field, _, _ in string.Formatter().parse(source["template"]) if field is not None]
    elif not named:
        return None
    return sorted({path.split("[", 1)[0] for path in [*paths, identity] if path is not None})


def lookup(row: Row, path: str) -> Any:
    """The value at ``path``: a column's name, then list positions or keys in brackets.

    Raises:
        UserError: when the row has nothing there, naming the file, the line and the columns that exist.
    """
    match = _PATH.fullmatch(path)
    if match is None:
        raise UserError(
            "not a column path", key="source", value=path, remedy="write it like turns[0] or message[content]"
        )
    name, brackets = match.groups()
    if name not in row.values:
        has = ", ".join(map(str, row.values)) or "none"
        raise UserError(f"missing key {name!r}", file=row.file, key=row.key, remedy=f"the row has: {has}")
    value = row.values[name]
    for step in re.findall(r"\[([^\[\]]+)\]", brackets):
        try:
            value = value[step] if isinstance(value, Mapping) else _item(value, int(step))
        except (KeyError, IndexError, ValueError):
            raise UserError(f"nothing at {path!r}", file=row.file, key=row.key) from None
    return value


def _item(value: Any, index: int) -> Any:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError(value)
    return value[index]


class Template(string.Formatter):
    """A format string whose fields are column paths: ``"Translate: {translation[fr]}"``; braces are doubled as usual.

    Only values are reached, never Python attributes, and a missing, null or composite value is an error rather than
    the text "None" in a prompt.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            fields = [field for _, field, _, _ in self.parse(text) if field is not None]
        except ValueError as error:
            raise UserError(f"malformed template: {error}", key="source.template", value=text[:60]) from None
        if not fields or not all(_PATH.fullmatch(field) for field in fields):
            remedy = "name columns in braces, like {question} or {turns[0]}"
            raise UserError("malformed template", key="source.template", value=text[:60], remedy=remedy)

    def render(self, row: Row) -> str:
        """The text for one row."""
        return self.vformat(self.text, (), {"": row})

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        """Resolve a field as a column path (called by the base class)."""
        row: Row = kwargs[""]
        value = lookup(row, field_name)
        if not isinstance(value, str | int | float):
            problem = f"{field_name!r} must be text or a number to stand in a template"
            raise UserError(problem, file=row.file, key=row.key, value=str(value)[:60])
        return value, field_name
