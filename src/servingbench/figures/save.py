"""Writing a figure as SVG, PDF and PNG with the same bytes on every run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib.figure import Figure

from servingbench.figures.style import style
from servingbench.records.files import atomic_writer

PNG_DPI = 200
# Dates, versions and random ids would change the bytes, and with them the manifest's hashes.
METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


def save_figure(figure: Figure, stem: Path, suffixes: Iterable[str] = tuple(METADATA)) -> list[Path]:
    """Write ``stem``.svg, .pdf and .png, each whole or not at all; returns their paths."""
    paths = []
    for suffix in suffixes:
        path = stem.parent / f"{stem.name}.{suffix}"
        with style(), atomic_writer(path, binary=True) as handle:
            figure.savefig(handle, format=suffix, dpi=PNG_DPI, metadata=METADATA[suffix])
        paths.append(path)
    return paths
