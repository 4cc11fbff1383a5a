"""Reading raw.jsonl: one clear error per fault, with its line."""

from __future__ import annotations

import pytest
from tests.fixtures.synthetic_records import raw_records, write_raw

from servingbench.errors import UserError
from servingbench.metrics.records import read_raw
from servingbench.records.files import write_jsonl


def test_reads_what_was_written(tmp_path):
    records = raw_records("code", "tree", proposed=8, depth=3, repeats=2, failed=["code/1"])
    assert read_raw(write_raw(tmp_path, records)) == records


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "other"}, "line 2: method.*one method.*'other'"),
        ({"workload": "math"}, "line 2: workload.*one workload"),
        ({"timing": "free"}, "line 2: timing.*one timing"),
        ({"prompt_id": "code/0"}, "line 2: prompt_id.*already on line 1"),
        ({"wall_ns": -1}, "line 2: wall_ns.*at least 0"),
        ({"extra": 1}, "line 2: extra.*unknown key"),
        ({"new_token_ids": [1, -2]}, r"line 2: new_token_ids.1.*at least 0"),
        ({"new_token_ids": [1, True]}, r"line 2: new_token_ids.1.*of type integer"),
        ({"new_token_ids": None}, r"line 2: new_token_ids.*of type array"),
        ({"steps": [[0, 0, 0], [4, 4, -1]]}, r"line 2: steps.1.2.*at least 0"),
        ({"steps": [[0, 0, 0], [4, 4]]}, r"line 2: steps.1"),
        ({"steps": [[0, 0, 0], [4, 4, 1, 1]]}, r"line 2: steps.1"),
    ],
)
def test_a_bad_record_is_refused_with_its_line(tmp_path, change, message):
    records = raw_records("code", "tree", prompts=2)
    records[1] |= change
    write_jsonl(tmp_path / "raw.jsonl", records)
    with pytest.raises(UserError, match=message):
        read_raw(tmp_path / "raw.jsonl")


def test_a_cut_line_is_refused_with_its_line(tmp_path):
    path = write_raw(tmp_path, raw_records("code", "tree", prompts=2))
    path.write_text(path.read_text()[:-40])
    with pytest.raises(UserError, match="line 2: not valid JSON"):
        read_raw(path)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "raw.jsonl").write_text("")
    with pytest.raises(UserError, match="line 1: the line is empty"):
        read_raw(tmp_path / "raw.jsonl")
