"""The user's own command on the demo's configuration, with tiny models, through the stand-in."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.fork import git
from tests.plugin_modal.conftest import Standin, start_standin
from tests.workflow.conftest import Clone, make_clone, tiny_models, use_tiny_models

__all__ = ["tiny_models"]


@pytest.fixture
def standin(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    monkeypatch.setenv("SERVING_BENCH_RESOURCES", str(repository / "resources"))  # in the image's place
    running = start_standin(tmp_path / "standin", pin="torch==2.13.0")
    yield running
    os.kill(running.pid, signal.SIGTERM)


@pytest.mark.slow
def test_the_literal_command_makes_the_same_files_as_a_local_run(
    repository: Path, tmp_path: Path, tiny_models: Path, standin: Standin
) -> None:
    clone: Clone = make_clone(repository, tmp_path)
    use_tiny_models(clone, tiny_models)
    clone.edit("config", lambda config: config.update(limit=2, max_new_tokens=6))
    git(clone.folder, "init", "--quiet")
    git(clone.folder, "add", "--all")
    git(clone.folder, "commit", "--quiet", "-m", "Begin")
    account = {"MODAL_SERVER_URL": standin.url, "MODAL_TOKEN_ID": "ak-1", "MODAL_TOKEN_SECRET": "as-1"}

    planned = clone.snakemake("-n", "--profile", "modal", "figures/all")
    assert "4 x" not in planned.stderr
    assert "2 x generate         on CPU         4.00 h each" in planned.stderr
    standin.faults({"at": "run", "kind": "preempt", "rule": "generate", "seconds": 6})
    done = clone.snakemake("--profile", "modal", "figures/all", **account)
    assert "its sandbox was lost before it finished; a new sandbox continues it" in done.stderr
    rules = Counter(
        tag["tagValue"]
        for body in standin.requests("SandboxCreate")
        for tag in body["tags"]
        if tag["tagName"] == "rule"
    )
    assert rules == {"static_table": 1, "generate": 2 + 1, "audit_lossless": 2}
    assert "On Modal, at most:" in done.stderr

    # A local run has nothing left to do: these are its files. So has the same command again.
    for profile in ([], ["--profile", "modal"]):
        again = clone.snakemake(*profile, "figures/all", **account)
        assert "Nothing to be done" in again.stderr + again.stdout
    manifest = json.loads((clone.folder / "figures/all").read_text())
    for figure in manifest["figures"]:
        content = (clone.folder / figure["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == figure["sha256"]
    key = clone.folder / "results/v5.24.0/cpu/seed0-limit2/tiny"
    statistics = json.loads((key / "statistics.json").read_text())
    assert {row["status"] for row in statistics["comparisons"]} <= {"ok", "too_few"}
    for workload in statistics["workloads"]:
        for method in statistics["methods"]:
            records = [json.loads(line) for line in (key / workload / method / "raw.jsonl").open()]
            assert [record["status"] for record in records] == ["ok", "ok"]
            assert len({record["prompt_id"] for record in records}) == 2  # none twice, none missing
    tables = {path.name for path in (clone.folder / "logs/generate").rglob("*.log")}
    assert tables == {"math.log", "chat.log"}
