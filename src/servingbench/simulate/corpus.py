"""Recorded outputs: one {task, prompt, out} per line, prompt and out being token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from servingbench.errors import UserError
from servingbench.records.files import read_jsonl

LOOP_REPEATS = 3
LOOP_TOKENS = 24


@dataclass(frozen=True)
class Recording:
    """One recorded output: its task, its prompt's token ids and its own."""

    task: str
    prompt: list[int]
    out: list[int]


def read_corpus(path: Path) -> list[Recording]:
    """Read and check a corpus.

    Raises:
        UserError: naming the line, for a wrong key, a task that is no text, or lists that are not of token ids.
    """
    return [_check(value, path, number) for number, value in read_jsonl(path)]


def _check(value: object, path: Path, number: int) -> Recording:
    key = f"line {number}"
    if not isinstance(value, dict) or set(value) != {"task", "prompt", "out"}:
        raise UserError("a record has exactly task, prompt and out", file=path, key=key)
    if not isinstance(value["task"], str) or not value["task"]:
        raise UserError("task must be a name", file=path, key=key, value=value["task"])
    for name in ("prompt", "out"):
        ids = value[name]
        if not isinstance(ids, list) or not ids or not all(type(token) is int and 0 <= token < 2**31 for token in ids):
            raise UserError(f"{name} must be a list of token ids, at least one", file=path, key=key)
    return Recording(value["task"], value["prompt"], value["out"])


def loops(out: Sequence[int]) -> bool:
    """Whether the output ends in a repeated cycle: three times or more, over at least 24 tokens."""
    for period in range(1, len(out) // LOOP_REPEATS + 1):
        tail = max(LOOP_TOKENS, LOOP_REPEATS * period)
        if tail <= len(out) and all(out[-k] == out[-k - period] for k in range(1, tail - period + 1)):
            return True
    return False
