"""Everything that may go wrong between here and Modal, and what then happens."""

from __future__ import annotations

import re
import signal
import time
from typing import Any

import pytest
from tests.plugin_modal.conftest import git

MAKE = Any

ONE = """
localrules: all
rule all:
    input: "out.txt"
rule work:
    input: "in.txt"
    output: "out.txt"
    resources: gpu=1, gpu_key="l40s", runtime=1
    shell: "%s"
"""
FAST = "cat {input} > {output}"
SLOW = "sleep 8; cat {input} > {output}"


def test_a_preempted_job_goes_on_where_it_was(toy: MAKE) -> None:
    # A journal as measuring jobs keep one: a line per step, taken up again by the next sandbox.
    steps = (
        "mkdir -p results; for step in 1 2 3 4 5 6; do grep -qx $step results/journal.jsonl 2> /dev/null"
        " || {{ sleep 1; echo $step >> results/journal.jsonl; echo $step >> results/done.jsonl; }}; done;"
        " cat results/journal.jsonl > {output}"
    )
    work = toy(ONE % steps)
    work.standin.faults({"at": "run", "kind": "preempt", "seconds": 3.5})
    text = work.run()
    assert "its sandbox was lost before it finished; a new sandbox continues it (1 of 2)" in text
    assert (work.folder / "out.txt").read_text().split() == list("123456")
    assert work.sandboxes() == 2


def test_infrastructure_retries_and_snakemakes_retries_are_counted_apart(toy: MAKE) -> None:
    work = toy(ONE % "echo attempt {resources.tmpdir} && exit 3")
    work.standin.faults({"at": "start", "kind": "init_failure", "times": 1})
    text = work.run("--retries", "1", code=1)
    # Once a sandbox did not start, and the job failed twice by itself: two attempts of two keys.
    assert text.count("it ended with exit code 1") == 2
    assert work.sandboxes() == 3
    assert len({body["definition"]["name"] for body in work.standin.requests("SandboxCreate")}) == 2


def test_a_sandbox_that_never_starts_ends_after_so_many_tries(toy: MAKE) -> None:
    work = toy(ONE % FAST)
    work.standin.faults({"at": "start", "kind": "init_failure", "times": 9})
    text = work.run("--modal-infrastructure-retries", "1", code=1)
    assert "no sandbox could be started, 2 times" in text
    assert work.sandboxes() == 2


def test_a_failing_job_shows_its_log(toy: MAKE) -> None:
    work = toy(ONE % "echo this is why; exit 3")
    text = work.run(code=1)
    assert "it ended with exit code 1" in text
    assert "this is why" in text
    assert work.sandboxes() == 1  # a job that fails by itself is no lost sandbox
    assert not (work.folder / "out.txt").exists()


def test_a_time_limit_is_said(toy: MAKE) -> None:
    work = toy(ONE % SLOW)
    text = work.run("--modal-max-timeout", "4", code=1)
    assert "it ran into its time limit" in text
    assert work.sandboxes() == 1


@pytest.mark.parametrize(
    ("kind", "message"), [("corrupt", "came back damaged"), ("missing", "is missing on the volume")]
)
def test_a_product_that_is_not_whole_is_not_put_in_place(toy: MAKE, kind: str, message: str) -> None:
    work = toy(ONE % FAST)
    work.standin.faults({"at": "result", "kind": kind})
    text = work.run(code=1)
    assert f"out.txt {message}" in text
    assert not (work.folder / "out.txt").exists()
    assert not list(work.folder.glob(".*.partial"))
    work.run()
    assert (work.folder / "out.txt").read_text() == "hello\n"


def test_an_output_that_was_not_made_is_said(toy: MAKE) -> None:
    work = toy(ONE % "true")
    text = work.run(code=1)
    assert "out.txt" in text
    assert "MissingOutputException" in text  # the remote Snakemake's own words, from its log


@pytest.mark.parametrize("scheduled", [True, False])
def test_ctrl_c_leaves_no_sandbox(toy: MAKE, scheduled: bool) -> None:
    work = toy(ONE % SLOW.replace("8", "60"))
    if not scheduled:
        work.standin.faults({"at": "create", "kind": "unscheduled"})
    process = work.start()
    work.wait_for(work.sandboxes)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    work.wait_for(lambda: work.standin.requests("SandboxTerminate"), seconds=6)
    assert time.monotonic() - begun < 5
    process.communicate(timeout=30)
    assert process.returncode != 0


def test_after_a_kill_a_running_sandbox_is_adopted_and_a_finished_one_collected(toy: MAKE) -> None:
    work = toy(ONE % SLOW)
    for wait_s in (0.5, 12.0):  # killed while it runs; killed, and called again only when it has finished
        process = work.start()
        before = work.sandboxes()
        work.wait_for(
            lambda before=before: (work.standin.folder / "journal.jsonl").exists() and work.sandboxes() > before
        )
        process.kill()
        process.communicate()
        time.sleep(wait_s)
        work.run("--unlock")
        text = work.run()
        assert work.sandboxes() == before + 1
        assert ("is taken over" in text) == (wait_s < 1)
        assert (work.folder / "out.txt").read_text() == "hello\n"
        (work.folder / "out.txt").unlink()


def test_other_code_config_or_input_is_another_job(toy: MAKE) -> None:
    work = toy(ONE % FAST)

    def name() -> str:
        work.run("--forceall")
        return str(work.standin.requests("SandboxCreate")[-1]["definition"]["name"])

    names = [name(), name()]
    assert names[0] == names[1]
    (work.folder / "in.txt").write_text("other\n")
    names.append(name())
    snakefile = (work.folder / "Snakefile").read_text()
    (work.folder / "Snakefile").write_text(re.sub("cat", "cat -v", snakefile))
    git(work.folder, "commit", "--quiet", "-am", "Change")
    names.append(name())
    work.run("--forceall", "--config", "setting=1")
    names.append(str(work.standin.requests("SandboxCreate")[-1]["definition"]["name"]))
    assert len(set(names)) == 4
