"""The two entry points as a shell runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fixtures.synthetic_records import lossless_record, raw_records, settings_record, write_raw

from servingbench.records.files import read_json, write_json

SCRIPTS = Path(__file__).resolve().parents[3] / "workflow_scripts"
METHODS = ["autoregressive", "autoregressive_aa", "tree"]


def run(script, *arguments):
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def raw(tmp_path):
    speeds = dict.fromkeys(METHODS, 1.0) | {"tree": 2.0}
    return [write_raw(tmp_path, raw_records("code", method, speed=speeds[method], noise=0.02)) for method in METHODS]


def test_summarize_writes_a_summary(tmp_path, raw):
    done = run(
        "summarize.py", "--raw", raw[2], "--run", raw[2].with_name("run.json"), "--out", tmp_path / "summary.json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    summary = read_json(tmp_path / "summary.json")
    assert (summary["method"], summary["n_prompts"]) == ("tree", 4)


def test_summarize_says_what_is_wrong_in_one_line(tmp_path, raw):
    raw[2].write_text(raw[2].read_text() + "\n")
    done = run(
        "summarize.py", "--raw", raw[2], "--run", raw[2].with_name("run.json"), "--out", tmp_path / "summary.json"
    )
    assert done.returncode == 2
    assert done.stderr == f"error: {raw[2]}: line 5: the line is empty. Delete the line.\n"
    assert not (tmp_path / "summary.json").exists()


def test_compare_writes_statistics(tmp_path, raw):
    write_json(tmp_path / "lossless.json", lossless_record("code", METHODS))
    settings = json.dumps(settings_record(METHODS, ["code"]))
    arguments = ("--raw", *raw, "--lossless", tmp_path / "lossless.json", "--settings", settings)
    done = run("compare.py", *arguments, "--out", tmp_path / "statistics.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["scope"] for row in read_json(tmp_path / "statistics.json")["comparisons"]] == ["code", "overall"] * 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{", "error: --settings: not valid JSON"),
        ("[]", "error: --settings: must be a JSON object"),
        ("{}", "error: --settings: missing key, methods"),
    ],
)
def test_compare_says_what_is_wrong_in_one_line(tmp_path, raw, settings, message):
    done = run(
        "compare.py", "--raw", raw[0], "--lossless", "x", "--settings", settings, "--out", tmp_path / "statistics.json"
    )
    assert done.returncode == 2
    assert done.stderr.startswith(message) and done.stderr.count("\n") == 1
    assert not (tmp_path / "statistics.json").exists()


@pytest.mark.parametrize("script", ["summarize.py", "compare.py"])
def test_help(script):
    done = run(script, "--help")
    assert done.returncode == 0
    assert "--out" in done.stdout
