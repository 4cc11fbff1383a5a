"""Jobs that go well: what is sent, what comes back, what is said before."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.plugin_modal.conftest import BIN, SECRET

MAKE = Any

WORKFLOW = """
envvars: "THE_SECRET"
localrules: all, prepare
rule all:
    input: "report.txt"
rule prepare:
    output: "prepared.txt"
    shell: "cp in.txt {output}; hostname > where.txt"
rule work:
    input: "prepared.txt"
    output: "big.bin", d=directory("folder")
    log: "logs/work.log"
    benchmark: "bench/work.tsv"
    resources: gpu=2, gpu_key="l40s", runtime=3
    shell: "mkdir -p {output.d}/deep && echo a > {output.d}/deep/a"
           " && head -c 9437184 /dev/zero | tr '\\\\0' x > {output[0]}"
           " && cat {input} > {log} && echo the secret is $THE_SECRET && pwd"
rule first:
    input: "big.bin", "folder"
    output: temp("between.txt")
    group: "both"
    resources: gpu=1, gpu_key="h100", runtime=1
    shell: "wc -c < {input[0]} > {output}"
rule second:
    input: "between.txt"
    output: "report.txt"
    group: "both"
    resources: gpu=1, gpu_key="h100", runtime=1
    shell: "cat {input} > {output}"
"""


def test_gpu_jobs_go_away_with_what_they_need_and_everything_comes_home(toy: MAKE) -> None:
    work = toy(WORKFLOW)
    text = work.run(THE_SECRET=SECRET)
    home = work.folder
    assert (home / "big.bin").stat().st_size == 9 * 2**20
    assert (home / "folder/deep/a").read_text() == "a\n"
    assert (home / "logs/work.log").read_text() == "hello\n"
    assert (home / "bench/work.tsv").read_text().startswith("s\t")
    assert (home / "report.txt").read_text().strip() == str(9 * 2**20)
    assert not list(home.rglob("*.partial"))

    created = work.standin.requests("SandboxCreate")
    assert len(created) == 2  # the group is one job; the local rules are none
    first, group = (body["definition"] for body in created)
    assert (first["resources"]["gpuConfig"]["gpuType"], first["resources"]["gpuConfig"]["count"]) == ("L40S", 2)
    assert group["resources"]["gpuConfig"]["gpuType"] == "H100!"
    assert first["timeoutSecs"] == 180
    assert {tag["tagName"]: tag["tagValue"] for tag in created[0]["tags"]}["rule"] == "work"
    assert {mount["mountPath"] for mount in first["volumeMounts"]} == {"/mnt/serving-bench", "/cache/huggingface"}
    # The stand-in refuses an image that does not name the pinned requirements.
    assert work.standin.requests("ImageGetOrCreate")
    assert "1 x work             on L40S:2      0.05 h each      0.20 USD" in text
    # The volume is empty again.
    assert not [path for path in (work.standin.folder / "volumes/serving-bench-jobs").rglob("*") if path.is_file()]

    # No secret where it does not belong: the journal of requests, Snakemake's own folder, the terminal, the products.
    (work.folder / "printed.txt").write_text(text)
    for folder in (work.folder, work.standin.folder):
        for path in folder.rglob("*"):
            if path.is_file() and "blocks" not in path.parts:
                assert SECRET.encode() not in path.read_bytes(), path

    again = work.run(THE_SECRET=SECRET)
    assert "Nothing to be done" in again
    assert work.sandboxes() == 2


def test_a_dry_run_says_the_same_estimate_without_token_or_network(toy: MAKE, tmp_path: Path) -> None:
    work = toy(WORKFLOW)
    command = [str(BIN / "snakemake"), "-n", "--executor", "modal", "--jobs", "2", "--logger", "modal"]
    (work.folder / "config").mkdir()
    (work.folder / "config/gpus.yaml").write_text((work.folder / "gpus.yaml").read_text())
    surroundings = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "THE_SECRET": SECRET}
    done = subprocess.run(command, cwd=work.folder, env=surroundings, capture_output=True, text=True, check=True)
    assert "1 x work             on L40S:2      0.05 h each      0.20 USD" in done.stderr
    assert not (work.standin.folder / "journal.jsonl").exists()


TWO = """
localrules: all
rule all:
    input: "cheap.txt", "dear.txt"
rule cheap:
    output: "cheap.txt"
    resources: gpu=1, gpu_key="l40s", runtime=1
    shell: "echo cheap > {output}"
rule dear:
    output: "dear.txt"
    resources: gpu=8, gpu_key="h100", runtime=600
    shell: "echo dear > {output}"
"""


def test_the_cost_cap_blocks_one_job_and_lets_the_others_run(toy: MAKE) -> None:
    work = toy(TWO)
    text = work.run("--keep-going", code=1)
    assert "rule dear could cost 320.00 USD (10.0 h on H100!:8), more than modal-max-cost allows (20.00)" in text
    assert (work.folder / "cheap.txt").exists()
    assert not (work.folder / "dear.txt").exists()
    assert work.sandboxes() == 1


def test_a_remote_rule_without_a_gpu_is_refused(toy: MAKE) -> None:
    work = toy('rule all:\n    output: "x.txt"\n    shell: "echo > {output}"\n')
    text = work.run(code=1)
    assert "rule all requests no GPU and would run on Modal" in text
    assert "localrules" in text
    assert not (work.standin.folder / "journal.jsonl").exists()


def test_what_is_missing_is_one_clear_message(toy: MAKE, tmp_path: Path) -> None:
    work = toy(TWO)
    text = work.run(code=1, MODAL_TOKEN_ID="", MODAL_TOKEN_SECRET="")
    assert "No Modal token: run `modal token new`" in text
    (work.folder / "new.py").write_text("")
    text = work.run("cheap.txt", "--modal-secrets", "absent", code=1)
    assert "Modal refused the sandbox: no secret 'absent'" in text
    assert "Not sent, for git does not track them: new.py" in text
    text = work.run("cheap.txt", code=1, MODAL_TOKEN_ID="ak-wrong")
    assert "Modal refused the token" in text
    text = work.run("cheap.txt", code=1, MODAL_SERVER_URL="http://127.0.0.1:9")
    assert "Modal cannot be reached" in text
    assert "Traceback" not in text
    # Without the SDK the root folder modal/ would be an empty namespace: the metadata are asked.
    script = (
        "import importlib.metadata as m, snakemake_executor_plugin_modal.errors as e\n"
        "def absent(name): raise m.PackageNotFoundError(name)\n"
        "m.version = absent\n"
        "try: e.check_sdk()\n"
        "except Exception as error: print(error)\n"
    )
    done = subprocess.run([str(BIN / "python"), "-c", script], capture_output=True, text=True, check=True)
    assert "The Modal SDK is not installed: pip install -r envs/modal.txt" in done.stdout
