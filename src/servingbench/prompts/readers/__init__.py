"""Readers, one per shape of source. A new shape is one file here, one line in READERS and one entry in the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.prompts.readers import hub, jsonl, wheel_jsonl
from servingbench.prompts.row import Row
from servingbench.records.schema import suggest

# A reader takes the workload's `source` and the files that hold it, and streams their rows.
Reader = Callable[[Mapping[str, Any], Sequence[Path]], Iterator[Row]]

READERS: dict[str, Reader] = {
    "github": jsonl.read,
    "hub": hub.read,
    "jsonl": jsonl.read,
    "wheel_jsonl": wheel_jsonl.read,
}


def read_rows(source: Mapping[str, Any], paths: Sequence[Path]) -> Iterator[Row]:
    """Stream the rows of a workload's source with the reader of its kind."""
    kind = str(source.get("kind"))
    if kind not in READERS:
        raise UserError(
            "no reader for this kind of source", key="source.kind", value=kind, remedy=suggest(kind, READERS)
        )
    return READERS[kind](source, paths)
