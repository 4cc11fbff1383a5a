"""A copy of the repository in a folder with a space in its name, with a tiny model, for runs of the real snakemake."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.fixtures.tiny_folder import tiny_folder

Completed = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Clone:
    """A copy of the repository."""

    folder: Path

    def snakemake(self, *arguments: str, check: bool = True, **environment: str) -> Completed:
        """Run snakemake in the copy, as a user would type it; the tests' own transformers is not in its environment."""
        return self.run("snakemake", *arguments, check=check, **environment)

    def run(self, *command: str, check: bool = True, cwd: Path | None = None, **environment: str) -> Completed:
        """Run any of the environment's programs in the copy."""
        program = shutil.which(command[0], path=str(Path(sys.executable).parent)) or command[0]
        surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [program, *command[1:]],
            cwd=cwd or self.folder,
            env={**surroundings, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        if check and done.returncode:
            output = f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
            raise AssertionError(f"{command} ended with {done.returncode}\n{output}")
        return done

    def follow(self, page: str) -> Completed:
        """Run a page's shell blocks (```sh), one after the other, as its reader would; the first failure ends it."""
        blocks = re.findall(r"^```sh\n(.*?)^```", (self.folder / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        script = "\n".join(["set -eu", f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH", *blocks])
        return self.run("bash", "-c", script)

    def table(self, name: str) -> dict[str, dict[str, object]]:
        """The rows of a table."""
        rows: dict[str, dict[str, object]] = yaml.safe_load((self.folder / "config" / f"{name}.yaml").read_text())
        return rows

    def edit(self, name: str, change: Callable[[dict[str, dict[str, object]]], object]) -> None:
        """Change a table, or config.yaml, in place."""
        rows = self.table(name)
        change(rows)
        (self.folder / "config" / f"{name}.yaml").write_text(yaml.safe_dump(rows, sort_keys=False))


def make_clone(repository: Path, parent: Path) -> Clone:
    """Copy what git tracks (and what is new and not ignored); share the installed revisions."""
    folder = parent / "a clone"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        source = repository / name
        if source.is_file() or source.is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name, follow_symlinks=False)
    (folder / "resources").mkdir()
    if (repository / "resources" / "revisions").is_dir():
        (folder / "resources" / "revisions").symlink_to(repository / "resources" / "revisions")
    return Clone(folder)


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tiny models that share a tokenizer: a target and a draft."""
    folder = tmp_path_factory.mktemp("tiny models")
    tiny_folder(folder / "target", context=2048)
    tiny_folder(folder / "draft", context=2048, seed=1)
    return folder


def use_tiny_models(clone: Clone, models: Path) -> None:
    """Make the tiny models the experiment's, two short workloads, 12 new tokens."""
    row = {"label": "tiny", "source": "local", "dtype": "float32"}

    def tiny(rows: dict[str, dict[str, object]]) -> None:
        rows["tiny"] = {**row, "path": str(models / "target"), "draft_model": "tiny-draft"}
        rows["tiny-draft"] = {**row, "path": str(models / "draft")}

    clone.edit("models", tiny)
    changes = {"models": ["tiny"], "workloads": ["math", "chat"], "limit": 3, "max_new_tokens": 12}
    clone.edit("config", lambda config: config.update(changes))


@pytest.fixture
def clone(repository: Path, tmp_path: Path, tiny_models: Path) -> Clone:
    """A fresh copy that a test may spoil, with the tiny models."""
    copy = make_clone(repository, tmp_path)
    use_tiny_models(copy, tiny_models)
    return copy
