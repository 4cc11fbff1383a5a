"""A stand-in for Modal, and small workflows that send their jobs to it through real snakemake processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("modal")

from tests.fixtures.fork import git

BIN = Path(sys.executable).parent
GPUS = """\
l40s: {kind: cuda, modal: L40S, usd_per_hour: 2.0, device_name: L40S}
h100: {kind: cuda, modal: "H100!", usd_per_hour: 4.0, device_name: H100}
"""
REQUIREMENTS = "numpy==2.4.6\n"
SECRET = "hf_very-secret-value"


@dataclass
class Standin:
    """The running stand-in."""

    folder: Path
    url: str
    pid: int

    def requests(self, name: str) -> list[dict[str, Any]]:
        """The bodies of all requests of one kind."""
        journal = self.folder / "journal.jsonl"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return [line["body"] for line in map(json.loads, lines) if line["request"] == name]

    def faults(self, *faults: dict[str, Any]) -> None:
        """Faults to inject."""
        (self.folder / "faults.json").write_text(json.dumps(faults))


def start_standin(folder: Path, *, pin: str = REQUIREMENTS.strip()) -> Standin:
    """Start one; it stops by SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fixtures.modal_standin", "--folder", str(folder), "--pin", pin],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=(folder.parent / "standin.err").open("w"),
    )
    assert process.stdout
    process.stdout.readline()
    about = json.loads((folder / "standin.json").read_text())
    return Standin(folder, about["url"], about["pid"])


@pytest.fixture
def standin(tmp_path: Path) -> Iterator[Standin]:
    running = start_standin(tmp_path / "standin")
    yield running
    os.kill(running.pid, signal.SIGTERM)


@dataclass
class Toy:
    """A small workflow in a git repository of its own."""

    folder: Path
    standin: Standin
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start snakemake on it."""
        surroundings = {
            name: value for name, value in os.environ.items() if not name.startswith(("MODAL_", "PYTHONPATH"))
        }
        account = {"MODAL_SERVER_URL": self.standin.url, "MODAL_TOKEN_ID": "ak-1", "MODAL_TOKEN_SECRET": "as-1"}
        command = [str(BIN / "snakemake"), "--executor", "modal", "--jobs", "4", "--modal-gpus", "gpus.yaml"]
        return subprocess.Popen(
            [*command, "--modal-requirements", "requirements.txt", *arguments],
            cwd=self.folder,
            env={**surroundings, **account, "HOME": str(self.folder.parent), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """Run it to its end; what it printed."""
        process = self.start(*arguments, **environment)
        text, _ = process.communicate(timeout=120)
        assert process.returncode == code, text
        return text

    def sandboxes(self) -> int:
        """How many were created."""
        return len(self.standin.requests("SandboxCreate"))

    def wait_for(self, condition: Any, *, seconds: float = 30) -> None:
        """Wait until something has happened."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture
def toy(tmp_path: Path, standin: Standin) -> Iterator[Any]:
    def make(snakefile: str) -> Toy:
        folder = tmp_path / "a workflow"
        folder.mkdir()
        (folder / "Snakefile").write_text(snakefile)
        (folder / "gpus.yaml").write_text(GPUS)
        (folder / "requirements.txt").write_text(REQUIREMENTS)
        (folder / "in.txt").write_text("hello\n")
        git(folder, "init", "--quiet")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "-m", "Begin")
        return Toy(folder, standin)

    yield make
