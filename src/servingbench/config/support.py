"""Which methods a transformers revision has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.specifiers import SpecifierSet


def unsupported(method: Mapping[str, Any], revision: str, row: Mapping[str, Any]) -> str | None:
    """Why a revision does not have a method; None where it does.

    Args:
        method: a row of config/methods.yaml.
        revision: the revision's name.
        row: its row in config/revisions.yaml; a fork has what the release has that it is based on.
    """
    supports = method.get("supports")
    if supports is None:
        return None
    if isinstance(supports, str):
        has = SpecifierSet(supports).contains(row["version"], prereleases=True)
        return None if has else f"transformers {row['version']} does not support it (it needs {supports})"
    return None if revision in supports else f"{revision} does not support it (it needs {' or '.join(supports)})"
