"""What every reader yields."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One row of a source and where it stands, for error messages.

    ``values`` holds JSON values only: the fingerprint of the source is taken over its canonical JSON.
    """

    file: Path | str
    key: str  # such as "line 12"
    values: dict[str, Any]
