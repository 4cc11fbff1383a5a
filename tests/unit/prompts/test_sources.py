"""Where sources may lie."""

import pytest

from servingbench.errors import UserError
from servingbench.prompts.sources import source_files

JSONL = {"kind": "jsonl"}


def test_file_of_the_repository(tmp_path):
    assert source_files("w", {**JSONL, "file": "config/prompts/a.jsonl"}, root=tmp_path) == [
        tmp_path / "config/prompts/a.jsonl"
    ]


def test_file_of_a_folder_that_the_user_chose(tmp_path):
    assert (
        source_files("w", {**JSONL, "file": "a/b.jsonl", "folder": "/data"}, root=tmp_path)[0].as_posix()
        == "/data/a/b.jsonl"
    )
    assert source_files("w", {**JSONL, "file": "b.jsonl", "folder": "../x"}, root=tmp_path) == [
        tmp_path / "../x/b.jsonl"
    ]


def test_wheel_names_no_file(tmp_path):
    assert source_files("w", {"kind": "wheel_jsonl", "wheel": "a==1"}, root=tmp_path) == []


@pytest.mark.parametrize("folder", [{}, {"folder": "/data"}])
@pytest.mark.parametrize("file", ["/etc/passwd", "../a.jsonl", "a/../../b.jsonl", "..", "~/a.jsonl", "."])
def test_file_that_leaves_its_folder(tmp_path, file, folder):
    with pytest.raises(UserError, match=r"config/workloads\.yaml: w\.source\.file: must stay inside"):
        source_files("w", {**JSONL, "file": file, **folder}, root=tmp_path)


def test_link_out_of_the_repository(tmp_path):
    root = tmp_path / "repository"
    root.mkdir()
    (tmp_path / "secret.jsonl").write_text("{}")
    (root / "a.jsonl").symlink_to(tmp_path / "secret.jsonl")
    with pytest.raises(UserError, match="link out of the repository"):
        source_files("w", {**JSONL, "file": "a.jsonl"}, root=root)
    assert source_files("w", {**JSONL, "file": "a.jsonl", "folder": "."}, root=root) == [root / "a.jsonl"]
