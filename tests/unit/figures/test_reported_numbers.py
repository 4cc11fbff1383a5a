"""config/reported: complete, labelled, refused otherwise."""

import re
from pathlib import Path

import pytest
from tests.fixtures.figure_inputs import ROOT

from servingbench.errors import UserError
from servingbench.figures.reported_numbers import load_reported

FOLDER = ROOT / "config" / "reported"
PUBLISHED = ROOT.parent / "shared" / "reported.md"
HEADER = "experiment,gpu,model,workload,method,quantity,value,unit,source,status\n"


def test_every_row_is_reported_and_names_its_source() -> None:
    numbers = load_reported(FOLDER)
    assert {number.source for number in numbers} == {"README of the LLM Serving Benchmark project (stormckey/sd-bench)"}
    assert {number.gpu for number in numbers} == {"H100", "L40S"}


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published tables lie outside the repository and are not here")
def test_every_published_number_is_there() -> None:
    sections = re.split(r"^## ", PUBLISHED.read_text(), flags=re.M)[1:4]
    published = []
    for section in sections:
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("|"):
                published += [cell for cell in cells[1:] if re.fullmatch(r"\d+\.\d+", cell)]
    assert len(published) == 5 * 3 + 18 * 6 + 3 * 6
    loaded = [number.text for number in load_reported(FOLDER) if number.reference in ("", "autoregressive")]
    assert sorted(loaded) == sorted(published)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("e,H100,m,w,x,speedup,1.5,ratio,README,measured", r"line 2, status.*got 'measured'"),
        ("e,H100,m,w,x,speedup,1.5,ratio,README,", r"line 2, status"),
        ("e,H100,m,w,x,speedup,1.5,ratio,,reported", r"line 2, source"),
        ("e,H100,m,w,x,speedup,fast,ratio,README,reported", r"line 2, value.*not a number"),
    ],
)
def test_a_row_that_is_not_reported_is_refused(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(HEADER + row + "\n")
    with pytest.raises(UserError, match=message):
        load_reported(tmp_path)


def test_missing_column_and_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no CSV"):
        load_reported(tmp_path)
    (tmp_path / "a.csv").write_text("experiment,value\n")
    with pytest.raises(UserError, match="missing column gpu"):
        load_reported(tmp_path)
