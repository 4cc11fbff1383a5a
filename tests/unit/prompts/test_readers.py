"""The readers, on good and on broken files."""

import gzip
import hashlib
import json
import zipfile

import pytest

from servingbench.errors import UserError
from servingbench.prompts.readers import READERS, read_rows
from servingbench.records.schema import load_schema

GOOD = b'{"id": 1, "prompt": "a"}\n{"id": 2, "prompt": "b"}'


def rows(path, kind="jsonl", **source):
    return list(read_rows({"kind": kind, **source}, [path]))


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_jsonl(tmp_path, ending):
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + ending)
    assert [(row.file, row.key, row.values["prompt"]) for row in rows(path)] == [
        (path, "line 1", "a"),
        (path, "line 2", "b"),
    ]


def test_gzipped_jsonl(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(GOOD))
    assert [row.values["id"] for row in rows(path)] == [1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (GOOD + b"\n\n", "line 3: the line is empty"),
        (b'{"a": 1}\n  \n{"a": 2}\n', "line 2: the line is empty"),
        (b'{"a": 1}\n{"a": \n', "line 2: not valid JSON"),
        (b'{"a": 1}\n[1]\n', "line 2: must be a JSON object"),
        (b'{"a": "\xff"}\n', "line 1: not UTF-8"),
        (b"[" * 200_000, "line 1: not valid JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "line 1: not valid JSON"),
    ],
)
def test_broken_jsonl(tmp_path, content, message):
    path = tmp_path / "broken.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"broken\.jsonl: .*" + message.removeprefix("line")):
        rows(path)


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(GOOD)[:-9]])
def test_damaged_gzip(tmp_path, content):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged gzip"):
        rows(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        rows(tmp_path / "absent.jsonl")
    with pytest.raises(UserError, match="cannot be read"):
        rows(tmp_path)


def test_unknown_kind(tmp_path):
    with pytest.raises(UserError, match=r"no reader .*'jsonk'.*Did you mean 'jsonl'"):
        rows(tmp_path, kind="jsonk")


def test_every_reader_has_its_schema():
    definitions = load_schema("workloads")["$defs"]
    assert set(definitions["source"]["properties"]["kind"]["enum"]) == set(READERS)
    assert set(READERS) <= set(definitions)


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "data-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/plain.jsonl", GOOD)
        archive.writestr("data/packed.jsonl.gz", gzip.compress(GOOD))
        archive.writestr("data/broken.jsonl", b"{}\n{")
        archive.writestr("data/nogzip.jsonl.gz", GOOD)
    return path


def wheel_rows(path, member, sha256=None):
    sha256 = sha256 or hashlib.sha256(path.read_bytes()).hexdigest()
    return rows(path, kind="wheel_jsonl", wheel="data==1.0", sha256=sha256, member=member)


@pytest.mark.parametrize("member", ["data/plain.jsonl", "data/packed.jsonl.gz"])
def test_wheel(wheel, member):
    assert [row.values for row in wheel_rows(wheel, member)] == [json.loads(line) for line in GOOD.splitlines()]


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("data/absent.jsonl", "no such member"),
        ("data/broken.jsonl", r"\.whl/data/broken\.jsonl: line 2"),
        ("data/nogzip.jsonl.gz", "damaged"),
    ],
)
def test_wheel_with_a_broken_member(wheel, member, message):
    with pytest.raises(UserError, match=message):
        wheel_rows(wheel, member)


def test_wheel_that_is_not_the_pinned_one(wheel, tmp_path):
    with pytest.raises(UserError, match="not the pinned one"):
        wheel_rows(wheel, "data/plain.jsonl", sha256="0" * 64)
    with pytest.raises(UserError, match="no such wheel"):
        wheel_rows(tmp_path / "absent.whl", "data/plain.jsonl", sha256="0" * 64)
    (tmp_path / "text.whl").write_text("no archive")
    with pytest.raises(UserError, match="damaged"):
        wheel_rows(tmp_path / "text.whl", "data/plain.jsonl")
