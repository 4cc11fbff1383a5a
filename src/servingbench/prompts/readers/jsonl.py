"""JSONL files, plain or gzipped, streamed line by line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from servingbench.errors import UserError
from servingbench.prompts.row import Row


def read(source: Mapping[str, Any], paths: Sequence[Path]) -> Iterator[Row]:
    """Stream the objects of JSONL files; names ending in .gz are unpacked on the way.

    Raises:
        UserError: for a file that is missing, unreadable or empty, and for an empty or malformed line, with its number.
    """
    for path in paths:
        try:
            with _open(path) as handle:
                yield from parse_lines(handle, path)
        except FileNotFoundError:
            raise UserError("no such file", file=path, remedy="check source.file of the workload") from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UserError(f"damaged gzip file: {error}", file=path, remedy="fetch it again") from None
        except OSError as error:
            raise UserError(f"cannot be read: {error.strerror}", file=path) from None


def parse_lines(lines: Iterable[bytes], file: Path | str) -> Iterator[Row]:
    """Parse lines of JSON objects; ``file`` names their origin in errors."""
    number = 0
    for number, line in enumerate(lines, start=1):
        key = f"line {number}"
        if not line.strip():
            raise UserError("the line is empty", file=file, key=key, remedy="delete the line")
        try:
            values = json.loads(line)
        except UnicodeDecodeError as error:
            raise UserError(f"not UTF-8 text: {error.reason}", file=file, key=key) from None
        except (ValueError, RecursionError) as error:
            problem = f"not valid JSON: {getattr(error, 'msg', error)}"
            raise UserError(problem, file=file, key=key, value=line[:60].decode(errors="replace").rstrip()) from None
        if not isinstance(values, dict):
            raise UserError("must be a JSON object", file=file, key=key, value=str(values)[:60])
        yield Row(file, key, values)
    if number == 0:
        raise UserError("the file is empty", file=file, remedy="give it at least one row")


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
