"""figures/all: every figure, its hash, and the hashes of what it was drawn from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.records.files import read_json, sha256_file


def manifest(root: Path, figures: Iterable[Path], inputs: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The manifest of ``figures``.

    Args:
        root: the folder that paths are relative to.
        figures: files, in any order.
        inputs: what figures were made from, by path, path without extension, or folder (all relative to ``root``);
            the longest key that fits a figure counts.

    Returns:
        ``{"schema_version", "figures": [{"path", "sha256", "bytes", "inputs": [{"path", "sha256"}]}]}``, by path.

    Raises:
        UserError: for a missing file, or a figure whose inputs are not given.
    """
    hashes: dict[str, str] = {}
    rows = []
    for path in sorted({_relative(path, root) for path in figures}):
        sources = sorted(set(_inputs_of(path, inputs)))
        for source in sources:
            if source not in hashes:
                hashes[source] = _sha256(root / source)
        rows.append(
            {
                "path": path,
                "sha256": _sha256(root / path),
                "bytes": (root / path).stat().st_size,
                "inputs": [{"path": source, "sha256": hashes[source]} for source in sources],
            }
        )
    return {"schema_version": 1, "figures": rows}


def read_inputs(text: str) -> dict[str, list[str]]:
    """Inputs from JSON text, or from a file that holds it.

    Raises:
        UserError: for anything but an object of lists of paths.
    """
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise UserError(f"not valid JSON: {error.msg}", key="--inputs") from None
    else:
        value = read_json(Path(text))
    if not isinstance(value, dict) or not all(isinstance(paths, list) for paths in value.values()):
        raise UserError(
            "must be an object of lists of paths", key="--inputs", remedy='for instance {"figures/x": ["a.json"]}'
        )
    return {str(key): [str(path) for path in paths] for key, paths in value.items()}


def _inputs_of(path: str, inputs: Mapping[str, Sequence[str]]) -> Sequence[str]:
    fitting = [key for key in inputs if path == key or path.startswith((key.rstrip("/") + "/", key + "."))]
    if not fitting:
        raise UserError("no inputs are given for this figure", file=path, key="--inputs")
    return inputs[max(fitting, key=len)]


def _relative(path: Path, root: Path) -> str:
    try:
        return path.absolute().relative_to(root.absolute()).as_posix()
    except ValueError:
        raise UserError("lies outside the root", file=path, key="--root", value=str(root)) from None


def _sha256(path: Path) -> str:
    try:
        return sha256_file(path)
    except FileNotFoundError:
        raise UserError("no such file", file=path, remedy="make the figures first") from None
