"""Where a workload's source lies. Imports nothing heavy: the workflow asks for it while it builds its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from servingbench.errors import UserError

TABLE = "config/workloads.yaml"


def source_files(name: str, source: Mapping[str, Any], *, root: Path) -> list[Path]:
    """The files that a workload's source names in its row.

    Args:
        name: the workload, for errors.
        source: its ``source``. A ``file`` lies in the repository, or in ``folder`` where the row names one: that is a
            folder of the user's own choice, anywhere.
        root: the repository's root.

    Returns:
        Paths under ``root`` or ``folder``; empty for a source of another kind, which :mod:`.fetch` locates.

    Raises:
        UserError: for a file that would leave its folder.
    """
    if source["kind"] != "jsonl":
        return []
    path = inside(source["file"], name)
    if "folder" in source:
        # Links are followed here: mirrors of Hugging Face repositories consist of them.
        return [root / Path(source["folder"]).expanduser() / path]
    if not (root / path).resolve().is_relative_to(root.resolve()):
        remedy = "name the folder that it leads to in source.folder"
        raise UserError(
            "is a link out of the repository", file=TABLE, key=f"{name}.source.file", value=str(path), remedy=remedy
        )
    return [root / path]


def inside(file: str, workload: str) -> PurePosixPath:
    """A path of a workload's row that stays inside the folder it is relative to.

    Raises:
        UserError: for one that would leave it.
    """
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or file.startswith("~") or not path.parts:
        remedy = "give a path inside it; for data elsewhere name its folder in source.folder"
        key = f"{workload}.source.file"
        raise UserError("must stay inside its folder", file=TABLE, key=key, value=file, remedy=remedy)
    return path
