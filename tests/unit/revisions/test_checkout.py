"""Checkouts: exactly one commit, never over something else; and working folders as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.fork import git

from servingbench.errors import UserError
from servingbench.revisions import checkout
from servingbench.revisions.checkout import check_out, export, working_tree


@pytest.fixture
def upstream(tmp_path: Path) -> tuple[Path, list[str]]:
    folder = tmp_path / "up stream"
    folder.mkdir()
    git(folder, "init", "--quiet")
    commits = []
    for number in range(3):
        (folder / "file.txt").write_text(f"{number}\n")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "-m", f"Commit {number}")
        commits.append(git(folder, "rev-parse", "HEAD"))
    return folder, commits


def row(folder: Path, commit: str, **more: str) -> dict[str, str]:
    return {"url": str(folder), "branch": "main", "commit": commit, **more}


def test_one_commit_is_fetched_and_nothing_else(tmp_path: Path, upstream: tuple[Path, list[str]]) -> None:
    folder, commits = upstream
    target = tmp_path / "deep/checkout"
    shallow = {"url": f"file://{folder}", "branch": "main", "commit": commits[2]}
    check_out("fork", shallow, target)
    assert (target / "file.txt").read_text() == "2\n"
    assert git(target, "rev-list", "--count", "--all") == "1"
    assert git(target, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"  # detached
    check_out("fork", {**shallow, "url": "/nowhere"}, target)  # it is there: nothing is fetched
    assert sorted(path.name for path in target.parent.iterdir()) == ["checkout"]


def test_a_server_that_gives_no_commit_gives_the_branch(
    tmp_path: Path, upstream: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, commits = upstream
    real = checkout.git

    def no_commits(*arguments: str, **more: object) -> str:
        if arguments[0] == "fetch" and arguments[-1] in commits:
            raise UserError("not our ref")
        return real(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(checkout, "git", no_commits)
    check_out("fork", row(folder, commits[1]), tmp_path / "checkout")
    assert git(tmp_path / "checkout", "rev-parse", "HEAD") == commits[1]
    with pytest.raises(UserError, match=r"revisions\.yaml: fork\.commit: .*nor is it on branch main: .*not our ref"):
        check_out("fork", row(folder, "0" * 40), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_nothing_is_overwritten(tmp_path: Path, upstream: tuple[Path, list[str]]) -> None:
    folder, commits = upstream
    target = tmp_path / "checkout"
    check_out("fork", row(folder, commits[0]), target)
    with pytest.raises(UserError, match=r"checkout: is at another commit .*Move the folder away"):
        check_out("fork", row(folder, commits[1]), target)
    (target / "file.txt").write_text("mine\n")
    with pytest.raises(UserError, match=r"was changed by hand \(got 'M file\.txt'\)"):
        check_out("fork", row(folder, commits[0]), target)
    assert (target / "file.txt").read_text() == "mine\n"
    (tmp_path / "something").mkdir()
    with pytest.raises(UserError, match="holds something else"):
        check_out("fork", row(folder, commits[0]), tmp_path / "something")


def test_a_working_folder_is_known_by_its_content(tmp_path: Path, upstream: tuple[Path, list[str]]) -> None:
    folder, commits = upstream
    clean = working_tree("mine", folder)
    assert clean == {"commit": commits[2], "tree": git(folder, "rev-parse", "HEAD^{tree}"), "dirty": False}
    (folder / "new.txt").write_text("new\n")
    changed = working_tree("mine", folder)
    assert changed["dirty"]
    assert changed["commit"] == clean["commit"]
    assert changed["tree"] != clean["tree"]
    assert git(folder, "status", "--porcelain") == "?? new.txt"  # the user's index stays as it was
    export(folder, changed["tree"], tmp_path / "out")
    assert (tmp_path / "out/new.txt").read_text() == "new\n"
    with pytest.raises(UserError, match=r"mine\.path: no git repository"):
        working_tree("mine", tmp_path)
