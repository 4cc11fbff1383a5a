"""A Snakemake job as something that can be sent away: its files, its command, its key."""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_modal.plan import Placement

GROUP_ID = re.compile(r"--local-groupid \S+")


@dataclass(frozen=True)
class RemoteJob:
    """One job, ready to be sent.

    Attributes:
        name: for people.
        command: what the runner runs: Snakemake, for this job's targets alone.
        inputs: path -> SHA-256, directories as their files.
        outputs: files and folders that must appear.
        logs: log and benchmark files, which come back from a failure too.
        overlays: folders of packages that the job's image must hold: transformers revisions, tools.
        placement: where it runs.
        sources: the archive of the workflow's sources.
        requirements: the text of the image's pins.
        beside: patterns of files that come home with the outputs.
        keep: patterns of files for a continuation.
        key: identifies all of the above; equal jobs have equal results.
    """

    name: str
    command: str
    inputs: dict[str, str]
    outputs: tuple[str, ...]
    logs: tuple[str, ...]
    overlays: tuple[str, ...]
    placement: Placement
    sources: Path
    sources_sha256: str
    requirements: str
    beside: tuple[str, ...]
    keep: tuple[str, ...]
    attempt: int
    key: str = field(default="")

    def spec(self) -> str:
        """What the runner reads."""
        names = ("command", "inputs", "outputs", "logs", "overlays", "beside", "keep")
        return json.dumps({name: getattr(self, name) for name in names})

    def computed_key(self) -> str:
        """A hash of everything that the result depends on, without the group id, which is another in every run."""
        described = {
            "command": sorted(GROUP_ID.sub("", self.command).split()),  # Snakemake writes sets in any order
            "inputs": self.inputs,
            "outputs": self.outputs,
            "sources": self.sources_sha256,
            "requirements": self.requirements,
            "overlays": self.overlays,
            "gpu": self.placement.gpu,
            "attempt": self.attempt,
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:40]


def members(job: Any) -> list[Any]:
    """The jobs of a group; of a single job, itself."""
    return list(job.jobs) if job.is_group() else [job]


def outputs_of(job: Any) -> tuple[str, ...]:
    """Every output of every member: a group's own list leaves out what its members hand to each other.

    Only a temporary file that no more than the group needs is left out: Snakemake deletes it there.
    """
    all_of_them = members(job)
    handed_over = {str(path) for member in all_of_them for path in member.input}
    outputs = (path for member in all_of_them for path in member.output)
    return tuple(dict.fromkeys(str(p) for p in outputs if not (p.flags.get("temp") and str(p) in handed_over)))


def logs_of(job: Any) -> tuple[str, ...]:
    """Log and benchmark files."""
    files = [path for member in members(job) for path in (*member.log, member.benchmark) if path]
    return tuple(dict.fromkeys(map(str, files)))


def hash_inputs(job: Any, known: dict[tuple[str, int, int], str]) -> dict[str, str]:
    """Path -> SHA-256 of what must be sent; ``known`` remembers hashes by path, size and time."""
    made = {str(path) for member in members(job) for path in member.output}
    paths = dict.fromkeys(str(path) for member in members(job) for path in member.input if str(path) not in made)
    return {file.as_posix(): _hashed(file, known) for path in paths for file in _files(Path(path))}


def _files(path: Path) -> Iterable[Path]:
    return sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]


def _hashed(path: Path, known: dict[tuple[str, int, int], str]) -> str:
    about = path.stat()
    place = (path.as_posix(), about.st_size, about.st_mtime_ns)
    if place not in known:
        with path.open("rb") as handle:
            known[place] = hashlib.file_digest(handle, "sha256").hexdigest()
    return known[place]


def archive_sha256(archive: Path) -> str:
    """The hash of an archive's names and contents: its times differ from checkout to checkout."""
    digest = hashlib.sha256()
    with tarfile.open(archive) as opened:
        for entry in sorted(opened.getmembers(), key=lambda entry: entry.name):
            content = opened.extractfile(entry) if entry.isfile() else None
            digest.update(f"{entry.name}\0{entry.linkname}\0".encode())
            digest.update(hashlib.sha256(content.read() if content else b"").digest())
    return digest.hexdigest()


def overlays_of(inputs: Iterable[str]) -> tuple[str, ...]:
    """The folders of packages that a job runs with, by the environment.json among its inputs, under resources/."""
    pattern = re.compile(r"resources/((?:revisions|environments)/[^/]+)/environment\.json")
    return tuple(match[1] for name in sorted(inputs) if (match := pattern.fullmatch(name)))


def tail(text: str, *, lines: int = 30, secrets: Sequence[str] = ()) -> str:
    """The end of a log, with the values of secrets blotted out."""
    for secret in sorted(secrets, key=len, reverse=True):
        if secret:
            text = text.replace(secret, "[secret]")
    return "\n".join(text.splitlines()[-lines:])
