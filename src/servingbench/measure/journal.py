"""The journal of a run: every finished prompt is on disk before the next one starts.

``journal.jsonl`` lies beside the run's outputs. Its first line names the run by its identity; then each finished prompt
is one line, appended and fsynced, with all of its arms' records. A killed run continues after the last whole line.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from servingbench.errors import UserError

VERSION = 1
Entry = dict[str, Any]


def now() -> str:
    """The time in UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold ``folder`` for this process alone; a :class:`UserError` when another process holds it.

    The kernel drops the lock when its holder dies, so a killed run never leaves one behind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "journal.lock"
    while True:
        handle = path.open("a+")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            owner = handle.read().strip()
            handle.close()
            raise UserError(
                "another run is writing into this folder",
                file=folder,
                key="process" if owner else None,
                value=owner or None,
                remedy="wait for it to end, or stop it and run the same command again; it continues",
            ) from None
        # The holder before us deletes the file as it leaves: a lock on a deleted file protects nothing.
        if path.exists() and os.fstat(handle.fileno()).st_ino == path.stat().st_ino:
            break
        handle.close()
    try:
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        yield
    finally:
        path.unlink(missing_ok=True)
        handle.close()


class Journal:
    """An open journal: what earlier processes finished, and where this one appends.

    Attributes:
        entries: the finished prompts, in order, those of earlier processes first.
        started: when the first process started.
        resumed: how often a later process took the run up again.
    """

    def __init__(self, folder: Path, *, identity: str, notice: Callable[[str], None]) -> None:
        """Open ``folder``'s journal, continuing it when it is this run's and setting it aside when it is another's.

        Args:
            folder: where the run's outputs will be; locked by the caller (:func:`folder_lock`).
            identity: hash of everything that the records depend on.
            notice: told in one line what became of an existing journal.
        """
        self.path = folder / "journal.jsonl"
        self.entries: list[Entry] = []
        self.started = now()
        self.resumed = 0
        if self.path.exists():
            self._take_up(identity, notice)
        if not self.path.exists():
            self._append({"journal": VERSION, "identity": identity, "started": self.started})
            _sync_folder(folder)

    def append(self, entry: Entry) -> None:
        """Add one finished prompt; it survives a kill from here on."""
        self._append(entry)
        self.entries.append(entry)

    def remove(self) -> None:
        """Delete the journal, once the outputs are in place."""
        self.path.unlink()

    def _append(self, line: Entry) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            error.filename = error.filename or str(self.path)
            raise

    def _take_up(self, identity: str, notice: Callable[[str], None]) -> None:
        content = self.path.read_bytes()
        lines, whole = _whole_lines(content)
        header = lines[0] if lines and _is_header(lines[0]) else {}
        if not lines and whole == 0 and b"\n" not in content:
            self.path.unlink()  # killed while writing the very first line: nothing in it
        elif header.get("identity") != identity or not _in_sequence(lines[1:]):
            aside = self._set_aside()
            what = "the journal of another run (other settings, prompts, code or machine)"
            notice(f"{self.path}: {what}; kept as {aside}, starting anew")
        else:
            if whole < len(content):
                os.truncate(self.path, whole)
                notice(f"{self.path}: dropped a torn last line")
            self.started = header["started"]
            self.entries = [line for line in lines[1:] if "index" in line]
            self.resumed = sum("resumed" in line for line in lines[1:]) + 1
            self._append({"resumed": now()})
            notice(f"{self.path}: continuing after {len(self.entries)} finished prompts")

    def _set_aside(self) -> str:
        number = 1
        while (aside := self.path.with_name(f"journal.stale-{number}.jsonl")).exists():
            number += 1
        self.path.rename(aside)
        _sync_folder(aside.parent)
        return aside.name


def _whole_lines(content: bytes) -> tuple[list[Any], int]:
    """The leading lines that are whole JSON, and how many bytes they take."""
    lines, whole = [], 0
    for line in content.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
        whole += len(line)
    # Only the last line can be torn. Anything after it means that the file was damaged: no prefix can be trusted.
    return (lines, whole) if b"\n" not in content[whole:].rstrip(b"\n") else ([], whole)


def _is_header(line: Any) -> bool:
    return isinstance(line, dict) and line.get("journal") == VERSION and {"identity", "started"} <= line.keys()


def _in_sequence(lines: list[Any]) -> bool:
    indices = [line["index"] for line in lines if "index" in line]
    return indices == list(range(len(indices)))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
