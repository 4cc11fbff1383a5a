"""Files are written whole or not at all, and a malformed one is named with its line."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from servingbench import console
from servingbench.errors import UserError
from servingbench.records.files import atomic_writer, read_json, read_jsonl, sha256_json, write_json, write_jsonl


def test_a_failing_writer_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"old": 1})
    with pytest.raises(RuntimeError), atomic_writer(path) as handle:
        handle.write("half")
        raise RuntimeError("killed in the middle")
    assert read_json(path) == {"old": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_nan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n\n{"a": 2}\n', "line 2: the line is empty"),
        ('{"a": 1}\n{"a": \n', "line 2: not valid JSON"),
        ('{"a": 1}\n\n', "line 2: the line is empty"),
        ("", "line 1: the line is empty"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        list(read_jsonl(path))


def test_jsonl_round_trip(tmp_path: Path) -> None:
    rows = [{"a": 1, "ü": "é"}, {"b": [1, 2]}]
    write_jsonl(tmp_path / "x.jsonl", rows)
    assert [row for _, row in read_jsonl(tmp_path / "x.jsonl")] == rows


def test_the_hash_ignores_the_order_of_keys() -> None:
    assert sha256_json({"a": 1, "b": 2}) == sha256_json({"b": 2, "a": 1}) != sha256_json({"a": 2, "b": 1})


def test_a_full_disk_is_one_line_and_a_status(capsys: pytest.CaptureFixture[str]) -> None:
    def fill() -> None:
        with Path("/dev/full").open("w") as handle:
            handle.write("x")

    with pytest.raises(SystemExit) as caught:
        console.run(fill)
    assert caught.value.code == console.EXIT_USER_ERROR
    assert capsys.readouterr().err.startswith("error: the disk is full")


def test_other_os_errors_keep_their_traceback() -> None:
    def denied() -> None:
        raise OSError(errno.EACCES, "no")

    with pytest.raises(OSError, match="no"):
        console.run(denied)


def test_a_user_error_and_an_interrupt_end_with_their_status(capsys: pytest.CaptureFixture[str]) -> None:
    def wrong() -> None:
        raise UserError("is wrong", file="a.yaml", key="limit", value=-1, remedy="use 1 or more")

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as caught:
        console.run(wrong)
    assert caught.value.code == 2
    assert capsys.readouterr().err == "error: a.yaml: limit: is wrong (got -1). Use 1 or more.\n"
    with pytest.raises(SystemExit) as caught:
        console.run(interrupted)
    assert caught.value.code == 130
