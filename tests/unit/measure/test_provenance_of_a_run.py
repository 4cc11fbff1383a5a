"""Where a result comes from, without a folder of the machine in it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from servingbench import provenance
from servingbench.provenance import (
    ROOT,
    cpu_description,
    package_versions,
    pipeline_state,
    relative_path,
    source_digest,
    without_absolute_paths,
)


def test_paths_are_relative_to_the_repository_or_lose_their_folder():
    assert relative_path(ROOT / "config" / "models.yaml") == "config/models.yaml"
    outside = "/somebody/env/lib/python3.11/site-packages/transformers/__init__.py"
    assert relative_path(outside) == "site-packages/transformers/__init__.py"
    assert relative_path("/home/somebody/model") == "model"
    assert relative_path("results/raw.jsonl", root=Path.cwd()) == "results/raw.jsonl"


def test_every_absolute_path_in_a_value_is_made_relative():
    value = {"a": [str(ROOT / "x"), {"b": "/home/me/y"}], "c": ("z", 1, None), "url": "https://host/path"}
    assert without_absolute_paths(value) == {"a": ["x", {"b": "y"}], "c": ["z", 1, None], "url": "https://host/path"}


def test_packages_and_processor():
    versions = package_versions()
    assert {"python", "torch", "numpy", "serving-bench", "transformers"} <= versions.keys()
    cpu = cpu_description()
    assert cpu["name"]
    assert 1 <= cpu["usable_cores"] <= cpu["logical_cores"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_pipelines_commit_and_whether_it_is_dirty(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    state = pipeline_state(tmp_path)
    assert state["commit"] is None
    assert state["reason"]
    (tmp_path / "file").write_text("1")
    assert pipeline_state(tmp_path)["dirty"] is True
    git("add", "file")
    git("commit", "-q", "-m", "first")
    assert pipeline_state(tmp_path) == {"commit": git("rev-parse", "HEAD").strip(), "dirty": False}
    (tmp_path / "file").write_text("2")
    assert pipeline_state(tmp_path)["dirty"] is True


def test_outside_of_git_nothing_is_invented(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pipeline_state(tmp_path) == {
        "commit": None,
        "dirty": None,
        "reason": "no git repository, no git, or no commit yet",
    }


def test_the_source_digest_follows_names_and_contents(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    seen = {source_digest(["a"])}
    (tmp_path / "a" / "x.py").write_text("1")
    seen.add(source_digest(["a"]))
    (tmp_path / "a" / "x.py").write_text("2")
    seen.add(source_digest(["a"]))
    (tmp_path / "a" / "x.py").rename(tmp_path / "a" / "y.py")
    seen.add(source_digest(["a"]))
    assert len(seen) == 4
    (tmp_path / "b" / "z.py").write_text("1")
    (tmp_path / "a" / "notes.txt").write_text("1")
    assert source_digest(["a"]) in seen
