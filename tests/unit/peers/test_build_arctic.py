"""What stops the build of Arctic Inference is said in one line, and leaves what was there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from servingbench.errors import UserError
from servingbench.peers import arctic


def test_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match=r"no C.. compiler.*no-such-compiler.*CXX"):
        arctic.build(tmp_path / "out")


def test_without_pythons_headers(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "python")  # found, and never called
    monkeypatch.setattr(arctic.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(UserError, match=r"no Python headers.*python3-dev"):
        arctic.build(tmp_path / "out")


@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler here")
def test_a_compiler_that_fails_is_quoted_and_the_old_build_stays(tmp_path, monkeypatch):
    def downloaded(into: Path, *, pins: Path) -> tuple[Path, Path]:
        """A release with sources that no compiler takes."""
        package = into / "arctic_inference-0"
        for name in ("__init__.py", "suffix_decoding/__init__.py", "suffix_decoding/cache.py"):
            (package / "arctic_inference" / name).parent.mkdir(parents=True, exist_ok=True)
            (package / "arctic_inference" / name).touch()
        for name in ("LICENSE", "PKG-INFO"):
            (package / name).touch()
        (package / "csrc/suffix_decoding").mkdir(parents=True)
        (package / "csrc/suffix_decoding/broken.cc").write_text("this is no C++", encoding="utf-8")
        return package.with_name("arctic_inference-0.tar.gz"), into / "nanobind.whl"

    monkeypatch.setattr(arctic, "download", downloaded)
    monkeypatch.setattr(arctic.shutil, "unpack_archive", lambda *arguments: None)
    out = tmp_path / "out"
    out.mkdir()
    (out / "old").touch()
    with pytest.raises(UserError, match=r"compiler failed: .*broken\.cc.*error"):
        arctic.build(out)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "old"]
