"""Tables equal their inputs; the poster is one page of 24 x 36 in; the terminal table holds the numbers."""

import csv
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures import figure_inputs as inputs

from servingbench.errors import UserError
from servingbench.figures import registry
from servingbench.figures.data import ResultSet
from servingbench.figures.reported_numbers import load_reported
from servingbench.figures.save import save_figure
from servingbench.poster.facts import fact_tables, headline, limits
from servingbench.poster.tables import (
    MODIFIED_NOTE,
    NO_VALUE,
    all_tables,
    comparison_cell,
    floor_note,
    speedup_table,
    write_tables,
)
from servingbench.poster.terminal import result_text
from servingbench.poster.typeset import typeset

SOURCE = inputs.ROOT / "poster" / "src"
REPORTED = load_reported(inputs.ROOT / "config" / "reported")
POINTS_PER_INCH = 72


def make(folder: Path, results: ResultSet) -> None:
    results = replace(results, reported=REPORTED)
    for name in registry.FIGURES:
        save_figure(registry.draw(name, results), folder / "figures" / name)
    write_tables(folder / "tables", [*all_tables(results), *fact_tables(results, commands=["make demo"])])


def free(results: ResultSet) -> ResultSet:
    results.statistics["settings"]["timing"] = "free"
    return results


def set_poster(folder: Path, name: str = "poster") -> tuple[Path, Path]:
    pdf, png = folder / f"{name}.pdf", folder / f"{name}.png"
    typeset(
        SOURCE,
        tables=folder / "tables",
        figures=sorted((folder / "figures").glob("*.svg")),
        out_pdf=pdf,
        out_png=png,
        ppi=10,
    )
    return pdf, png


@pytest.mark.parametrize(
    "results",
    [
        pytest.param(lambda: inputs.results(1), id="one workload"),
        pytest.param(lambda: inputs.results(10, inputs.ALL_METHODS), id="ten workloads, all methods"),
        pytest.param(lambda: inputs.results(4, n=2), id="too few"),
        pytest.param(lambda: free(inputs.results(2)), id="free timing"),
        pytest.param(lambda: inputs.results(2, ("autoregressive",)), id="baseline alone"),
    ],
)
def test_poster_is_one_page_of_24_by_36_inches(tmp_path: Path, results: Callable[[], ResultSet]) -> None:
    make(tmp_path, results())
    pdf, png = set_poster(tmp_path)
    box = [f"{inches * POINTS_PER_INCH}".encode() for inches in (24, 36)]
    pages = re.findall(rb"/MediaBox\s*\[\s*0\s+0\s+([\d.]+)\s+([\d.]+)\s*\]", pdf.read_bytes())
    assert [list(page) for page in pages] == [box]
    assert struct.unpack(">II", png.read_bytes()[16:24]) == (240, 360)


def test_poster_bytes_repeat(tmp_path: Path) -> None:
    make(tmp_path, inputs.results(2))
    first, second = set_poster(tmp_path, "one"), set_poster(tmp_path, "two")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_typeset_names_a_missing_figure(tmp_path: Path) -> None:
    write_tables(tmp_path / "tables", fact_tables(inputs.results(1), commands=[]))
    with pytest.raises(UserError, match=r"none\.svg: no such file"):
        typeset(
            SOURCE,
            tables=tmp_path / "tables",
            figures=[tmp_path / "none.svg"],
            out_pdf=tmp_path / "a",
            out_png=tmp_path / "b",
            ppi=10,
        )
    assert not (tmp_path / "a").exists()


def test_the_source_states_no_number() -> None:
    lines = [line for path in SOURCE.glob("*.typ") for line in path.read_text().splitlines()]
    prose = re.findall(r"\[([^\[\]]*)\]", "\n".join(line.partition("//")[0] for line in lines))
    assert len(prose) > 20
    assert [span for span in prose if re.search(r"\d+[.,]\d|\d\s*[%x]|n = \d", span)] == []


def test_speedup_table_equals_the_statistics() -> None:
    results = inputs.results(4, status={("tree_speculative", "chat"): "not_lossless"})
    table = speedup_table(results)
    assert table.columns == ("Workload", "n", "Draft model", "Prompt lookup", "Suffix", "Tree", "A/A")
    for row, scope in zip(table.rows, ("overall", *results.workloads), strict=True):
        for cell, method in zip(row[2:6], results.contenders, strict=True):
            found = results.comparison(method, scope)
            expected = (
                f"{found['speedup']:.2f} [{found['ci'][0]:.2f}, {found['ci'][1]:.2f}]"
                if found["status"] == "ok"
                else "not lossless"
            )
            assert cell == expected
    assert table.rows[4][5] == "not lossless"
    floor = results.statistics["resolution_floor"]["overall"]
    assert f"from {1 / floor:.3f} to {floor:.3f}" in table.markdown()


def test_written_csv_holds_every_comparison(tmp_path: Path) -> None:
    results = replace(inputs.results(3), reported=REPORTED)
    write_tables(tmp_path, all_tables(results))
    with (tmp_path / "comparisons.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    expected = [*results.statistics["comparisons"], *results.statistics["contrasts"]]
    assert [(r["method"], r["scope"], r["n"]) for r in rows] == [
        (r["method"], r["scope"], str(r["n"])) for r in expected
    ]
    assert [float(r["speedup"]) for r in rows] == pytest.approx([r["speedup"] for r in expected], abs=1e-4)
    with (tmp_path / "acceptance.csv").open(newline="") as handle:
        first = next(csv.DictReader(handle))
    assert first["tokens per forward"] == "1.00"
    assert first["acceptance rate"] == NO_VALUE


def test_reported_tables_print_as_published() -> None:
    tables = {table.name: table for table in all_tables(replace(inputs.results(1), reported=REPORTED))}
    assert {len(row) for row in tables["reported_h100"].rows} == {4}
    cells = [
        cell
        for name in ("reported_h100", "reported_l40s", "reported_source_ablation")
        for row in tables[name].rows
        for cell in row
    ]
    for number in REPORTED:
        assert number.text in cells or number.reference == "suffix"
    for name, table in tables.items():
        assert ("Reported, not measured here" in table.markdown()) == name.startswith("reported")


def test_limits_say_what_is_missing() -> None:
    results = inputs.results(
        2, status={("tree_speculative", "chat"): "not_lossless", ("tree_speculative", "math"): "failed"}, n=2
    )
    assert "Resolution floor: not known, the A/A arm has no interval." in limits(results)
    assert any(line.startswith("No speedup, too few") for line in limits(results))
    assert headline(results)["primary_speedup"] == NO_VALUE
    assert "no A/A arm was run" in floor_note(inputs.results(1, ("autoregressive", "prompt_lookup")))
    assert comparison_cell(None) == "not run"


@pytest.mark.parametrize("width", [60, 100, 200])
def test_terminal_table_fits_and_holds_the_numbers(width: int) -> None:
    results = inputs.results(6)
    text = result_text(results, paths={"Figures": ["figures/a.svg"], "Poster": ["poster/p.pdf"]}, width=width)
    for row in results.statistics["comparisons"]:
        assert comparison_cell(row) in text
    table = [line for line in text.splitlines() if line.startswith(("  ", "Tree", "---"))]
    assert all(len(line) <= width for line in table)
    assert floor_note(results) in text
    assert "  figures/a.svg" in text and "  poster/p.pdf" in text


def test_every_measured_table_marks_a_modified_revision() -> None:
    results = inputs.results(2)
    assert all(MODIFIED_NOTE not in table.notes for table in all_tables(results))
    arm, summary = next(iter(results.summaries.items()))
    transformers = {**summary["provenance"]["transformers"], "dirty": True}
    results.summaries[arm] = {**summary, "provenance": {**summary["provenance"], "transformers": transformers}}
    marked = [table.name for table in all_tables(results) if MODIFIED_NOTE in table.notes]
    assert marked == [table.name for table in all_tables(results) if not table.name.startswith("reported")]
    assert "modified" in results.footer
