"""The entry point, as the workflow and a user call it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from servingbench.config.tables import load_yaml
from servingbench.prompts.sample import read_prompts

ROOT = Path(__file__).resolve().parents[3]
ROW = load_yaml(ROOT / "config" / "workloads.yaml")["math"]


def call(out, **options):
    options = {"workload": "math", "row": json.dumps(ROW), "seed": 0, "limit": 4, "out": out} | options
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    script = "workflow_scripts/sample_prompts.py"
    return subprocess.run([sys.executable, script, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_sample(tmp_path):
    done = call(tmp_path / "a.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("math: 4 of 12 prompts -> ")
    more = call(tmp_path / "b.jsonl", limit=30)
    assert "12 of 12 prompts (all there are; the limit is 30)" in more.stdout
    (_, few), (header, all_prompts) = read_prompts(tmp_path / "a.jsonl"), read_prompts(tmp_path / "b.jsonl")
    assert few == all_prompts[:4]
    assert (header["limit"], header["available"]) == (30, 12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "error: the limit must be at least 1 (got 0)."),
        ({"limit": -2}, "error: the limit must be at least 1 (got -2)."),
        ({"source": "absent.jsonl"}, "error: absent.jsonl: no such file."),
        ({"row": "{"}, "error: --row: character 2: not valid JSON"),
        ({"row": "{}"}, "error: --row: math: missing label"),
        ({"workload": "Math!"}, "error: --row: "),
        ({"row": json.dumps(ROW | {"source": {"kind": "jsonl", "file": "../a.jsonl"}})}, "math.source.file: must stay"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_file(tmp_path, options, message):
    out = tmp_path / "a.jsonl"
    done = call(out, **options)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
