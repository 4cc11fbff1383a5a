"""Typesetting the poster with Typst: one page of 24 x 36 in, from the tables and figures that the workflow made."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import matplotlib as mpl
import typst
from PIL import Image

from servingbench.errors import UserError
from servingbench.records.files import atomic_writer

SCALES = tuple(percent / 100 for percent in range(100, 40, -3))  # the first at which everything fits on the page
COUNTING_PPI = 8


def typeset(source: Path, *, tables: Path, figures: Iterable[Path], out_pdf: Path, out_png: Path, ppi: float) -> float:
    """Compile ``source``/poster.typ and write the PDF and the PNG; returns the scale at which it fitted.

    The sources, tables and figures are copied side by side first, so that they may lie anywhere.

    Args:
        source: folder of the Typst files.
        tables: folder of the CSV tables.
        figures: SVG figures, referred to by file name.
        out_pdf: the PDF to write.
        out_png: the PNG to write.
        ppi: pixels per inch of the PNG.

    Raises:
        UserError: where Typst refuses the source, or the poster does not fit on one page at the smallest scale.
    """
    with tempfile.TemporaryDirectory(prefix="poster-") as name:
        stage = Path(name)
        _copy(sorted(source.glob("*.typ")), stage)
        _copy(sorted(tables.glob("*.csv")), stage / "tables")
        _copy(figures, stage / "figures")
        scale, compiler = _fit(stage, source)
        stamp = _timestamp(tables / "provenance.csv")
        _write(out_pdf, _one_page(compiler.compile(format="pdf", timestamp=stamp), source))
        _write(out_png, _halved(_one_page(compiler.compile(format="png", ppi=2 * ppi), source)))
    return scale


def _one_page(document: bytes | list[bytes] | None, source: Path) -> bytes:
    if not isinstance(document, bytes):
        raise UserError("the poster has more than one page", file=source / "poster.typ")
    return document


def _halved(png: bytes) -> bytes:
    """The PNG at half its size; Typst places figures on whole pixels and drops a row of some, which this evens out."""
    stream = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").reduce(2).save(stream, format="PNG", optimize=True)
    return stream.getvalue()


def _write(path: Path, content: bytes) -> None:
    with atomic_writer(path, binary=True) as handle:
        handle.write(content)


def _copy(paths: Iterable[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        try:
            shutil.copyfile(path, folder / path.name)
        except FileNotFoundError:
            raise UserError("no such file", file=path, remedy="make the figures and tables first") from None


def _fit(stage: Path, source: Path) -> tuple[float, typst.Compiler]:
    """The compiler at the largest scale that gives one page."""
    fonts = [Path(mpl.get_data_path()) / "fonts" / "ttf"]
    for scale in SCALES:
        compiler = typst.Compiler(
            stage / "poster.typ",
            root=stage,
            font_paths=list(fonts),
            ignore_system_fonts=True,
            sys_inputs={"scale": str(scale)},
        )
        try:
            pages = compiler.compile(format="png", ppi=COUNTING_PPI)
        except typst.TypstError as error:
            hints = "; ".join(error.hints)
            raise UserError(f"Typst: {error.message}", file=source / "poster.typ", remedy=hints or None) from error
        if isinstance(pages, bytes):
            return scale, compiler
    raise UserError(
        "the poster does not fit on one page",
        file=source / "poster.typ",
        remedy="run fewer workloads or methods at once",
    )


def _timestamp(provenance: Path) -> datetime:
    """When the run ended, so that the same results give the same bytes; the epoch where that was not recorded."""
    with provenance.open(encoding="utf-8", newline="") as handle:
        run = {row["name"]: row["value"] for row in csv.DictReader(handle)}.get("Run", "")
    try:
        return datetime.fromisoformat(run.rpartition(" to ")[2]).replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, tz=UTC)
