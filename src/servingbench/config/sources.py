"""A digest of the package's own sources, so that an edited module reruns the rules that depend on it and no others."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


@cache
def source_digest(*names: str) -> str:
    """The first 16 hex digits of a SHA-256 over the Python files of these modules and folders of the package."""
    digest = hashlib.sha256()
    for name in names:
        path = PACKAGE / name
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            digest.update(str(file.relative_to(PACKAGE)).encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
