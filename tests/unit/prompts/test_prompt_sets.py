"""The workloads table and the data behind it: the prompts of this project, and real ones where at hand."""

import ast
import json
import re
from pathlib import Path

import pytest

from servingbench.config.tables import load_yaml
from servingbench.errors import UserError
from servingbench.prompts.sample import sample_workload
from servingbench.prompts.sources import source_files
from servingbench.records.schema import validate

ROOT = Path(__file__).resolve().parents[3]
TABLE = load_yaml(ROOT / "config" / "workloads.yaml")
OWN = {name: row for name, row in TABLE.items() if row["source"].get("file", "").startswith("config/prompts/")}
REAL = ROOT.parent / "shared" / "data"
needs_real_data = pytest.mark.skipif(not REAL.is_dir(), reason=f"real data sets are not at hand: no folder {REAL.name}")


def text_of(prompt):
    return "\n".join(message["content"] for message in prompt["messages"])


def everything(name, row):
    return sample_workload(name, row, source_files(name, row["source"], root=ROOT), seed=0, limit=10_000)[1]


def test_the_table_is_valid_and_complete():
    validate(TABLE, "workloads", file="workloads.yaml")
    assert len(OWN) == 9
    assert "humaneval" in TABLE
    assert {row["source"]["file"] for row in OWN.values()} == {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "config" / "prompts").iterdir()
    }


@pytest.mark.parametrize("name", OWN)
def test_prompts_written_for_this_project(name):
    prompts = everything(name, OWN[name])
    assert len(prompts) >= 12
    assert sorted(prompt["id"] for prompt in prompts) == [f"{name}-{n:02d}" for n in range(1, len(prompts) + 1)]
    texts = [text_of(prompt) for prompt in prompts]
    assert len(set(texts)) == len(texts)
    assert all(60 <= len(text) <= 1600 for text in texts)
    assert all(text == text.strip() for text in texts)


def test_code_to_edit_is_python_of_15_to_30_lines():
    for prompt in everything("code-editing", TABLE["code-editing"]):
        (code,) = re.findall(r"```python\n(.*?)```", text_of(prompt), re.DOTALL)
        ast.parse(code)
        assert 15 <= len(code.splitlines()) <= 30


def test_texts_to_summarise_have_120_to_200_words():
    for prompt in everything("summarization", TABLE["summarization"]):
        _, text = text_of(prompt).split("\n\n", 1)
        assert 120 <= len(text.split()) <= 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sourc": {}}, "math.sourc: unknown key.*'source'"),
        ({"max_new_tokens": 0}, "max_new_tokens: must be at least 1"),
        ({"source": {"kind": "jsonl"}}, "math.source: missing file"),
        ({"source": {"kind": "jsonl", "file": "a", "member": "b"}}, "math.source.member: unknown key"),
        ({"source": {"kind": "json", "file": "a"}}, "math.source.kind: not allowed.*'jsonl'"),
        (
            {"source": {"kind": "jsonl", "file": "a", "filters": [{"column": "x", "min_char": 3}]}},
            "min_char: unknown key",
        ),
        ({"source": {"kind": "jsonl", "file": "a", "columns": {"text": "x"}}}, "columns.text: unknown key"),
        (
            {"source": {"kind": "wheel_jsonl", "wheel": "a", "sha256": "0" * 64, "member": "b"}},
            "source.wheel: does not",
        ),
        ({"rendering": {"chat_template": False, "system": "x"}}, "rendering.system: must be"),
        ({"rendering": {"chat_template": True, "enable_thinkin": True}}, "unknown key.*enable_thinking"),
    ],
)
def test_typos_in_the_table(change, message):
    with pytest.raises(UserError, match=f"(?s)w.yaml: .*{message}"):
        validate({"math": TABLE["math"] | change}, "workloads", file="w.yaml")


@needs_real_data
def test_real_gsm8k():
    source = {
        "kind": "jsonl",
        "file": "test.jsonl",
        "folder": str(REAL / "gsm8k"),
        "columns": {"id": None, "prompt": "question"},
    }
    row = TABLE["math"] | {"source": source}
    validate({"gsm8k": row}, "workloads", file="w.yaml")
    paths = source_files("gsm8k", source, root=ROOT)
    header, prompts = sample_workload("gsm8k", row, paths, seed=1, limit=30)
    questions = {json.loads(line)["question"] for line in paths[0].read_text(encoding="utf-8").splitlines()}
    assert header["available"] == len(questions) == 200
    assert {text_of(prompt) for prompt in prompts} < questions
    assert len({prompt["id"] for prompt in prompts}) == 30


@needs_real_data
def test_real_spec_bench(tmp_path):
    source = {
        "kind": "jsonl",
        "file": "question.jsonl",
        "folder": str(REAL / "spec_bench"),
        "columns": {"id": "question_id", "prompt": "turns[0]"},
    }
    row = TABLE["chat"] | {"source": source}
    paths = source_files("spec-bench", source, root=ROOT)
    header, prompts = sample_workload("spec-bench", row, paths, seed=1, limit=30)
    assert header["available"] == 240
    lines = paths[0].read_text(encoding="utf-8").splitlines()
    turns = {str(json.loads(line)["question_id"]): json.loads(line)["turns"][0] for line in lines}
    assert all(text_of(prompt) == turns[prompt["id"]] for prompt in prompts)
    shuffled = tmp_path / "shuffled.jsonl"
    shuffled.write_text("\n".join(sorted(lines)), encoding="utf-8")
    assert sample_workload("spec-bench", row, [shuffled], seed=1, limit=30) == (header, prompts)
    only = row | {"source": source | {"filters": [{"column": "category", "equals": "coding"}]}}
    header, _ = sample_workload("spec-bench", only, paths, seed=1, limit=30)
    assert header["available"] == sum(json.loads(line)["category"] == "coding" for line in lines) > 0
