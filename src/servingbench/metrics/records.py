"""Raw records: reading them, and the few columns that every metric is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.records.files import read_jsonl
from servingbench.records.schema import validate

Record = dict[str, Any]
Step = tuple[int, int, int]


class MissingValue(Exception):
    """A metric has no value for these records; the message is the reason that goes into the summary's ``nulls``."""


def read_raw(path: Path) -> list[Record]:
    """Read and check one raw.jsonl.

    Raises:
        UserError: no records, a line that is not a raw record, more than one method or workload, or the same prompt and
            repeat twice; it names the line.
    """
    records: list[Record] = []
    seen: dict[tuple[str, int], int] = {}
    for number, record in read_jsonl(path):
        validate(_without_sound_lists(record), "raw", file=f"{path}: line {number}")
        for field in ("method", "workload", "timing"):
            if records and record[field] != records[0][field]:
                raise UserError(
                    f"a raw.jsonl holds one {field}, here {records[0][field]!r}",
                    file=path,
                    key=f"line {number}: {field}",
                    value=record[field],
                    remedy="remove the file and run the workload again",
                )
        unit = (record["prompt_id"], record["repeat"])
        if unit in seen:
            raise UserError(
                f"repeat {unit[1]} of this prompt is already on line {seen[unit]}",
                file=path,
                key=f"line {number}: prompt_id",
                value=unit[0],
                remedy="remove the file and run the workload again",
            )
        seen[unit] = number
        records.append(record)
    return records


def _without_sound_lists(record: Any) -> Any:
    """The record with its two long lists emptied where they are sound: walking them by schema is slow."""
    if not isinstance(record, dict):
        return record
    slim = dict(record)
    for field, sound in (("new_token_ids", _is_count), ("steps", _is_step)):
        items = record.get(field)
        if isinstance(items, list) and all(map(sound, items)):
            slim[field] = []
    return slim


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_step(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_count, value))


def ok(records: Sequence[Record]) -> list[Record]:
    """The records that did not fail."""
    return [record for record in records if record["status"] == "ok"]


def committed(record: Record) -> int:
    """N of one record: the number of its new token ids; nothing is re-tokenised."""
    return len(record["new_token_ids"])


def column(records: Sequence[Record], field: str) -> list[int]:
    """One nullable field of every record.

    Raises:
        MissingValue: there are no records, or the field is null somewhere.
    """
    if not records:
        raise MissingValue("no record succeeded")
    for record in records:
        if record[field] is None:
            raise MissingValue(record["nulls"].get(field, f"{field} was not recorded"))
    return [record[field] for record in records]


def steps(records: Sequence[Record]) -> Iterator[Step]:
    """(proposed, depth, accepted) of every target forward.

    Raises:
        MissingValue: there are no records, or one that lists no forward (each has a prefill, so it was not recorded).
    """
    for record in records:
        if not record["steps"]:
            raise MissingValue(record["nulls"].get("steps", "the forwards' drafts were not recorded"))
    if not records:
        raise MissingValue("no record succeeded")
    return ((proposed, depth, accepted) for record in records for proposed, depth, accepted in record["steps"])


def draft_steps(records: Sequence[Record]) -> list[Step]:
    """The S forwards that carried at least one proposed token.

    Raises:
        MissingValue: there are none, as for an autoregressive method.
    """
    found = [step for step in steps(records) if step[0] > 0]
    if not found:
        raise MissingValue("no forward carried a proposed token")
    return found
