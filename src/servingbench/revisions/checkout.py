"""The source of a revision that is no release: a git repository at a commit, or a folder that somebody works in."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servingbench.errors import UserError

TABLE = "config/revisions.yaml"


def git(*arguments: str, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """The output of a git command in a folder; it never asks for a password.

    Raises:
        UserError: with git's last line.
    """
    # A hook's or a caller's own repository must not become the one that is asked.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    surroundings = {**inherited, "GIT_TERMINAL_PROMPT": "0", **(environment or {})}
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, env=surroundings, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise UserError(f"git cannot be run: {error.strerror}", file=folder, remedy="install git") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UserError(f"git {arguments[0]} failed: {said}", file=folder)
    return done.stdout.strip()


def check_out(name: str, row: Mapping[str, Any], folder: Path) -> None:
    """Have ``row["url"]`` at exactly ``row["commit"]`` in ``folder``, detached; fetch it shallowly if need be.

    Raises:
        UserError: for a folder that holds another commit or changes (it is never overwritten), and for a commit that
            cannot be fetched.
    """
    commit = str(row["commit"])
    if folder.exists():
        _verify(name, folder, commit)
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".checkout-") as temporary:
        fresh = Path(temporary) / "tree"
        fresh.mkdir()
        git("init", "--quiet", folder=fresh)
        git("remote", "add", "origin", row["url"], folder=fresh)
        _fetch(name, row, fresh)
        git("checkout", "--quiet", "--detach", commit, folder=fresh)
        _verify(name, fresh, commit)
        fresh.rename(folder)


def _fetch(name: str, row: Mapping[str, Any], folder: Path) -> None:
    commit = str(row["commit"])
    try:
        git("fetch", "--quiet", "--depth", "1", "origin", commit, folder=folder)
        return
    except UserError as refused:  # some servers give no commit by its hash
        by_commit = refused
    try:
        git("fetch", "--quiet", "origin", row["branch"], folder=folder)
        git("cat-file", "-e", f"{commit}^{{commit}}", folder=folder)
    except UserError:
        raise UserError(
            f"the commit could not be fetched, nor is it on branch {row['branch']}: {by_commit.problem}",
            file=TABLE,
            key=f"{name}.commit",
            value=commit,
            remedy="check url, branch and commit, and the network",
        ) from None


def _verify(name: str, folder: Path, commit: str) -> None:
    remedy = "move the folder away, or for a fork you work on write a row with source: path"
    if not (folder / ".git").exists():
        raise UserError(f"holds something else than the checkout of {name}", file=folder, remedy=remedy)
    found = git("rev-parse", "HEAD", folder=folder)
    if found != commit:
        raise UserError(f"is at another commit than {name}'s {commit}", file=folder, value=found, remedy=remedy)
    changed = git("status", "--porcelain", folder=folder).splitlines()
    if changed:
        raise UserError(f"{name} was changed by hand", file=folder, value=changed[0].strip(), remedy=remedy)


def working_tree(name: str, path: Path) -> dict[str, Any]:
    """A folder that somebody works in, as it is now, changes and new files included.

    Returns:
        ``commit`` it is based on, ``dirty``, and ``tree``, the hash of its content.

    Raises:
        UserError: for a folder that is missing or no git repository.
    """
    if not (path / ".git").exists():
        problem, remedy = "no git repository", "give the top folder of one; git init and a commit make one"
        raise UserError(problem, file=TABLE, key=f"{name}.path", value=str(path), remedy=remedy)
    with tempfile.TemporaryDirectory() as temporary:  # an index of our own: the user's stays as it is
        index = {"GIT_INDEX_FILE": str(Path(temporary) / "index")}
        git("read-tree", "HEAD", folder=path, environment=index)
        git("add", "--all", folder=path, environment=index)
        tree = git("write-tree", folder=path, environment=index)
    commit = git("rev-parse", "HEAD", folder=path)
    return {"commit": commit, "tree": tree, "dirty": tree != git("rev-parse", "HEAD^{tree}", folder=path)}


def export(repository: Path, tree: str, target: Path) -> None:
    """Write the files of a commit or tree into a new folder, so that building leaves no trace in the repository."""
    target.mkdir(parents=True)
    archive = target.with_suffix(".tar")
    git("archive", "--format=tar", "-o", str(archive), tree, folder=repository)
    shutil.unpack_archive(archive, target, filter="data")
    archive.unlink()
