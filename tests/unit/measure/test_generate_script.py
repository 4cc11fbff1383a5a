"""generate.py and audit_lossless.py as a rule runs them, on a tiny model folder."""

import argparse
import errno
import json
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import transformers
from tests.fixtures.tiny_folder import tiny_folder, tiny_model, tiny_tokenizer

from servingbench import console
from servingbench.errors import UserError
from servingbench.measure import journal as journal_module
from servingbench.measure.audit import audit_run
from servingbench.measure.generate import generate
from servingbench.measure.session import add_arguments
from servingbench.measure.static_table import add_arguments as add_table_arguments
from servingbench.measure.static_table import write_static_table
from servingbench.metrics.summary import summarize
from servingbench.models.prepare import readable_by_transformers_4
from servingbench.records.files import read_json, read_jsonl, sha256_file, write_json
from servingbench.records.schema import validate

ROOT = Path(__file__).resolve().parents[3]
METHODS = {
    "autoregressive": {"label": "Autoregressive", "kind": "loop", "draft": "none"},
    "prompt_lookup": {
        "label": "Prompt lookup",
        "kind": "loop",
        "draft": "prompt_lookup",
        "options": {"num_tokens": 4, "max_ngram": 2},
    },
}


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    return tiny_folder(tmp_path_factory.mktemp("models") / "tiny", eos_token_id=None)


class Case:
    """The arguments of one run, easily changed."""

    def __init__(self, tmp_path, model_folder, prompts=4):
        self.folder, self.model, self.draft_model, self.static_table = tmp_path, model_folder, None, None
        self.out, self.log = tmp_path / "results", tmp_path / "logs" / "run.log"
        self.prompts = tmp_path / "math.jsonl"
        self.environment = tmp_path / "environment.json"
        self.spec = {
            "key": {"revision": "r", "gpu": "cpu", "seed": 0, "limit": prompts, "model": "tiny", "workload": "math"},
            "model": {"label": "tiny", "source": "local", "path": str(model_folder), "dtype": "float32"},
            "draft_model": None,
            "workload": {"label": "Math", "max_new_tokens": 24, "rendering": {"chat_template": True}},
            "methods": METHODS,
            "gpu": {"label": "CPU", "kind": "cpu", "threads": 1},
            "timing": "forced",
            "repeats": 1,
            "unsupported": {},
            "lossless": {"prompts": 2, "max_new_tokens": 16, "epsilon": {"float32": 0.01}},
        }
        self.write_prompts([f"What is the sum of {n} and {n * n}? Say {n} words." for n in range(prompts)])
        described = {"version": transformers.__version__, "commit": None, "dirty": None, "file": transformers.__file__}
        self.environment.write_text(json.dumps({"revision": "r", "transformers": described, "pins": {}}))

    def write_prompts(self, texts):
        header = {
            "schema_version": 1, "workload": "math", "source": {"kind": "jsonl"}, "fingerprint": "0" * 64,
            "seed": 0, "limit": len(texts), "available": len(texts),
        }  # fmt: skip
        rows = [{"id": f"m/{n}", "messages": [{"role": "user", "content": text}]} for n, text in enumerate(texts)]
        self.prompts.write_text("".join(json.dumps(row) + "\n" for row in [{"header": header}, *rows]))

    def arguments(self):
        given = ["--spec", json.dumps(self.spec), "--prompts", self.prompts, "--environment", self.environment]
        given += ["--model", self.model, "--out", self.out, "--log", self.log]
        given += ["--draft-model", self.draft_model] if self.draft_model else []
        given += ["--static-table", self.static_table] if self.static_table else []
        return [str(value) for value in given]

    def parsed(self):
        parser = argparse.ArgumentParser()
        add_arguments(parser, out="")
        return parser.parse_args(self.arguments())

    def script(self, name="generate.py"):
        return [sys.executable, str(ROOT / "workflow_scripts" / name), *self.arguments()]

    def raw(self, method):
        return [row for _, row in read_jsonl(self.out / method / "raw.jsonl")]

    def rest(self):
        """What lies in the results folder beside the methods' outputs."""
        return sorted(path.name for path in self.out.iterdir() if path.name not in METHODS) if self.out.exists() else []


@pytest.fixture
def case(tmp_path, model_folder):
    return Case(tmp_path, model_folder)


def test_a_run_writes_schema_valid_outputs_and_leaves_nothing_else(case):
    generate(case.parsed())
    texts = {}
    for method in METHODS:
        rows = case.raw(method)
        for row in rows:
            validate(row, "raw", file="raw")
            assert row["method"] == method
            assert row["status"] == "ok"
        assert [row["prompt_id"] for row in rows] == ["m/0", "m/1", "m/2", "m/3"]
        texts[method] = [row["new_token_ids"] for row in rows]
        run = read_json(case.out / method / "run.json")
        validate(run, "provenance", file="run")
        assert run["key"] == case.spec["key"]
        assert run["configuration"]["method"] == {"name": method, **METHODS[method]}
        assert run["provenance"]["resumed"] == 0
        assert run["provenance"]["threads"] == 1
        assert len(run["provenance"]["device"]["samples"]) == 4
        assert run["provenance"]["transformers"]["version"] == transformers.__version__
        assert str(case.folder) not in json.dumps(run), "no folder of this machine in a record"
        assert str(ROOT) not in json.dumps(run)
    assert texts["autoregressive"] == texts["prompt_lookup"]
    assert case.rest() == []
    assert "prompt 4/4 (m/3): 8/8 arms" in case.log.read_text()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_continues_loses_nothing_and_repeats_nothing(tmp_path, model_folder):
    (tmp_path / "whole").mkdir()
    whole, killed = Case(tmp_path / "whole", model_folder, 10), Case(tmp_path, model_folder, 10)
    for one in (whole, killed):
        one.spec["workload"]["max_new_tokens"] = 64
    process = subprocess.Popen(killed.script(), stderr=subprocess.PIPE, text=True)
    journal = killed.out / "journal.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if journal.exists() and journal.read_bytes().count(b"\n") >= 3:  # the header and two prompts
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    errors = process.communicate()[1]
    assert process.returncode == -signal.SIGKILL, errors
    finished = journal.read_bytes().count(b"\n") - 1
    assert 2 <= finished < 10
    assert not list(killed.out.glob("*/raw.jsonl")), "outputs appear only when complete"
    with journal.open("ab") as handle:
        handle.write(b'{"index": 3, "prom')  # as if it had been killed in the middle of a line

    done = subprocess.run(killed.script(), capture_output=True, text=True, check=True)
    assert "dropped a torn last line" in done.stderr
    assert f"continuing after {finished} finished prompts" in done.stderr
    generate(whole.parsed())
    same = ("prompt_id", "prompt_sha256", "method", "position", "repeat", "new_token_ids", "steps", "forwards")
    for method in METHODS:
        rows = [[row[key] for key in same] for row in killed.raw(method)]
        assert rows == [[row[key] for key in same] for row in whole.raw(method)]
        assert [row[0] for row in rows] == [f"m/{n}" for n in range(10)]
        assert read_json(killed.out / method / "run.json")["provenance"]["resumed"] == 1
    assert killed.rest() == []


def test_a_kill_between_the_outputs_costs_nothing(case, monkeypatch):
    """The journal is complete, one method's outputs are there and the other's are not."""
    monkeypatch.setattr(journal_module.Journal, "remove", lambda self: None)
    generate(case.parsed())
    monkeypatch.undo()
    before = case.raw("prompt_lookup")
    (case.out / "prompt_lookup" / "raw.jsonl").unlink()
    generate(case.parsed())
    assert case.raw("prompt_lookup") == before
    assert case.rest() == []


def test_a_run_with_other_settings_does_not_continue_anothers_journal(case, monkeypatch):
    monkeypatch.setattr(journal_module.Journal, "remove", lambda self: None)
    generate(case.parsed())
    monkeypatch.undo()
    case.spec["workload"] = {**case.spec["workload"], "max_new_tokens": 8}
    generate(case.parsed())
    assert case.rest() == ["journal.stale-1.jsonl"]
    assert all(len(row["new_token_ids"]) == 8 for row in case.raw("autoregressive"))
    assert "journal.stale-1.jsonl" in case.log.read_text()


def test_a_full_disk_is_one_clear_line_and_the_rerun_continues(case, monkeypatch, capsys):
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal_module.os, "fsync", fsync)
    with pytest.raises(SystemExit) as stopped:
        console.run(lambda: generate(case.parsed()))
    assert stopped.value.code == console.EXIT_USER_ERROR
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert "the disk is full" in message
    assert "journal.jsonl" in message
    monkeypatch.undo()
    generate(case.parsed())
    assert len(case.raw("autoregressive")) == 4
    assert read_json(case.out / "autoregressive" / "run.json")["provenance"]["resumed"] == 1


def run_here(monkeypatch, name, arguments):
    """Run a script as the interpreter would, without the seconds that importing torch takes; its exit status."""
    script = str(ROOT / "workflow_scripts" / name)
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(script, run_name="__main__")
    return ended.value.code


@pytest.mark.parametrize("name", ["generate.py", "audit_lossless.py"])
def test_the_wrong_device_is_refused_in_one_line_by_both_scripts(case, monkeypatch, capsys, name):
    case.spec["gpu"] = {"label": "H100", "kind": "cuda", "device_name": "no such GPU", "compute_capability": "1.0"}
    case.spec["key"]["gpu"] = "h100"
    assert run_here(monkeypatch, name, case.arguments()) == console.EXIT_USER_ERROR
    message = capsys.readouterr().err.strip()
    assert message.startswith("error: config/gpus.yaml: h100: ")
    assert len(message.splitlines()) == 1
    assert case.rest() == []


def bad_environment(case):
    text = case.environment.read_text().replace(transformers.__version__, "4.0.0")
    case.environment.write_text(text)


def long_prompt(case):
    case.write_prompts(["short", "long " * 600])


def no_room(case):
    case.spec["workload"] = {**case.spec["workload"], "max_new_tokens": 500}


def no_template(case):
    case.model = tiny_folder(case.folder / "plain", chat_template=False)


def no_tokenizer(case):
    case.model = tiny_folder(case.folder / "bare", tokenizer=False)


def other_vocabulary(case):
    case.spec["methods"] = {"draft_speculative": {"label": "d", "kind": "transformers", "assistant": "draft_model"}}
    case.spec["draft_model"] = case.spec["model"]
    case.draft_model = tiny_folder(case.folder / "draft", vocab_size=400)


def no_draft_folder(case):
    other_vocabulary(case)
    case.draft_model = None


def incomplete_spec(case):
    del case.spec["timing"]


def no_prompt_file(case):
    case.prompts.unlink()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (bad_environment, r"the revision r is 4\.0\.0"),
        (long_prompt, r"math\.jsonl.*m/1.*context of 512"),
        (no_room, r"math\.jsonl.*m/0.*500 new ones"),
        (no_template, "chat template"),
        (no_tokenizer, "tokenizer"),
        (other_vocabulary, r"draft_model: the draft model has 400 token ids, the target 320"),
        (no_draft_folder, "--draft-model: a method needs a draft model"),
        (incomplete_spec, r"--spec: missing keys \(got \['timing'\]\)"),
        (no_prompt_file, r"math\.jsonl: no such file"),
    ],
)
def test_bad_input_is_refused_before_any_work(case, spoil, message):
    spoil(case)
    with pytest.raises(UserError, match=message):
        generate(case.parsed())
    assert case.rest() == []
    if spoil is not incomplete_spec:
        assert "stopped: " in case.log.read_text()


def test_a_draft_model_may_keep_its_own_tokenizer_where_the_row_says_so(case):
    row = {"label": "d", "kind": "transformers", "assistant": "draft_model", "assistant_tokenizer": "own"}
    case.spec["methods"] = {"universal": row}
    case.spec["draft_model"] = case.spec["model"]
    case.draft_model = tiny_folder(case.folder / "draft", vocab_size=280, tokenizer=False)
    tiny_tokenizer(vocab_size=280).save_pretrained(case.draft_model)
    readable_by_transformers_4(case.draft_model)
    generate(case.parsed())
    rows = case.raw("universal")
    assert {row["status"] for row in rows} == {"ok"}
    assert all(row["draft_forwards"] > 0 for row in rows)


def test_a_draft_tokenizer_with_other_ids_of_the_same_number_is_refused(case):
    case.spec["methods"] = {"draft_speculative": {"label": "d", "kind": "transformers", "assistant": "draft_model"}}
    case.spec["draft_model"] = case.spec["model"]
    case.draft_model = tiny_folder(case.folder / "draft")
    path = case.draft_model / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    vocabulary = tokenizer["model"]["vocab"]
    first, second = sorted(vocabulary, key=vocabulary.get)[10:12]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    path.write_text(json.dumps(tokenizer))
    with pytest.raises(UserError, match="gives 2 tokens another id than the target"):
        generate(case.parsed())


def draft_from_a_table(case):
    """Make the tiny model's table and let a tree draft from it, sized by cost."""
    case.static_table = case.folder / "table" / "static_table.json"
    parser = argparse.ArgumentParser()
    add_table_arguments(parser)
    given = ["--model", case.model, "--row", json.dumps(case.spec["model"]), "--environment", case.environment]
    given += ["--device", "cpu", "--out", case.static_table, "--log", case.folder / "table.log"]
    write_static_table(parser.parse_args([str(value) for value in given]))
    options = {"width": 4, "num_tokens": "cost", "max_tokens": 6, "static_table": True}
    case.spec["methods"] = {**METHODS, "tree": {"label": "Tree", "kind": "loop", "draft": "suffix", "options": options}}
    return read_json(case.static_table)


def test_a_run_names_the_table_and_the_costs_of_the_method_that_drafts_by_them(case):
    described = draft_from_a_table(case)
    assert described["sha256"] == sha256_file(case.static_table.with_suffix(".safetensors"))
    assert "static table of tiny: 320/320 tokens, 0:00 left" in (case.folder / "table.log").read_text()
    generate(case.parsed())
    for method in case.spec["methods"]:
        run = read_json(case.out / method / "run.json")
        table, costs = (run["provenance"][name] for name in ("static_table_sha256", "forward_costs_ns"))
        if method == "tree":
            assert table == described["sha256"]
            assert len(costs) == 7
            assert 0 < costs[0] <= costs[-1]
        else:
            assert table is None
            assert costs is None
        assert run["configuration"]["model_files"]["static_table"] == described
    assert [row["new_token_ids"] for row in case.raw("tree")] == [r["new_token_ids"] for r in case.raw("prompt_lookup")]


@pytest.mark.parametrize("key", ["revision", "model", "model_files", "sha256"])
def test_a_table_of_another_run_is_refused(case, key):
    described = draft_from_a_table(case)
    write_json(case.static_table, described | {key: {"x": "y"} if key == "model_files" else "another"})
    with pytest.raises(UserError, match=rf"static_table\.json: {key}: the static table is not this run's"):
        generate(case.parsed())
    assert case.rest() == []


def test_a_method_without_its_table_is_refused(case):
    draft_from_a_table(case)
    case.static_table = None
    with pytest.raises(UserError, match="tree: the method drafts from a static table and there is none"):
        generate(case.parsed())
    assert case.rest() == []


def test_an_audit_writes_a_schema_valid_report(case):
    case.out = case.folder / "lossless.json"
    audit_run(case.parsed())
    report = read_json(case.out)
    validate(report, "lossless", file="lossless")
    assert report["prompts"] == 2
    assert list(report["methods"]) == list(METHODS)
    assert all(entry["passed"] and entry["identical_outputs"] == 2 for entry in report["methods"].values())
    assert report["baseline_worst_gap"] <= 0.01
    assert "prompt_lookup: passed" in case.log.read_text()


def test_an_audit_without_an_epsilon_for_the_dtype_is_refused(case):
    case.spec["lossless"]["epsilon"] = {"bfloat16": 1.0}
    with pytest.raises(UserError, match=r"lossless\.epsilon: no epsilon for this dtype \(got 'float32'\)"):
        audit_run(case.parsed())


@pytest.mark.parametrize(("name", "word"), [("generate.py", "journal.jsonl"), ("audit_lossless.py", "float32")])
def test_both_scripts_explain_themselves(monkeypatch, capsys, name, word):
    assert run_here(monkeypatch, name, ["--help"]) == 0
    text = capsys.readouterr().out
    assert word in text
    assert "--draft-model" in text


@pytest.mark.parametrize(("given", "used"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_threads_sleep_unless_the_user_says_otherwise(monkeypatch, given, used):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    code = "import servingbench.measure, sys, os; print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", used]


def test_the_tiny_model_is_the_same_every_time():
    weights = [tiny_model().lm_head.weight for _ in range(2)]
    assert weights[0].equal(weights[1])


def test_a_method_that_the_revision_lacks_is_not_run_and_says_so(case):
    case.spec["unsupported"] = {"prompt_lookup": "transformers 1.0 does not support it"}
    generate(case.parsed())
    rows = case.raw("prompt_lookup")
    for row in rows:
        validate(row, "raw", file="raw")
        assert (row["status"], row["error"]) == ("unsupported", "transformers 1.0 does not support it")
    assert [row["prompt_id"] for row in rows] == [row["prompt_id"] for row in case.raw("autoregressive")]
    assert summarize(rows, read_json(case.out / "prompt_lookup/run.json"))["status"] == "unsupported"
