"""Reading and writing the project's files: JSON and JSONL, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from servingbench.errors import UserError


@contextmanager
def atomic_writer(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a temporary neighbour of ``path`` and move it into place only when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb" if binary else "w", encoding=None if binary else "utf-8") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` atomically."""
    with atomic_writer(path) as handle:
        handle.write(text)


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as indented JSON (NaN and infinity refused: a missing value is null)."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_jsonl(path: Path, rows: Iterable[object]) -> None:
    """Write one compact JSON object per line."""
    with atomic_writer(path) as handle:
        for row in rows:
            handle.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read one JSON document; a missing or malformed file is a :class:`UserError`."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise UserError(f"not valid JSON: {error.msg}", file=path, key=f"line {error.lineno}") from None


def read_jsonl(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield ``(line number, object)``; an empty or malformed line is a :class:`UserError` that names the line."""
    for number, line in enumerate(read_text(path).removesuffix("\n").split("\n"), start=1):
        if not line.strip():
            raise UserError("the line is empty", file=path, key=f"line {number}", remedy="delete the line")
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"not valid JSON: {error.msg}", file=path, key=f"line {number}", value=line[:60]) from None


def read_text(path: Path) -> str:
    """Read a UTF-8 file; a missing one is a :class:`UserError`."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError("no such file", file=path, remedy="check the path") from None
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 text: {error.reason}", file=path, key=f"byte {error.start}") from None


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sha256_json(value: object) -> str:
    """The SHA-256 of a value's canonical JSON (sorted keys, no spaces), in hex."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sha256_token_ids(token_ids: Iterable[int]) -> str:
    """The SHA-256 of token ids, as the text of their decimal numbers joined by commas."""
    return hashlib.sha256(",".join(map(str, token_ids)).encode()).hexdigest()
