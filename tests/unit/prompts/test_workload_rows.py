"""Every row of config/workloads.yaml that comes from the network, on small copies with the real columns' names."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from servingbench.config.tables import load_yaml
from servingbench.errors import UserError
from servingbench.prompts import fetch
from servingbench.prompts.fetch import locate
from servingbench.prompts.sample import sample_workload

ROOT = Path(__file__).parents[3]
WORKLOADS: dict[str, Any] = load_yaml(ROOT / "config/workloads.yaml")
SHARED = ROOT.parent / "shared/data"
CONFIGS = "---\nconfigs:\n- config_name: {name}\n  data_files:\n  - split: {split}\n    path: {name}/{split}-*\n---\n"


def _wildchat(n: int) -> dict[str, Any]:
    text = (
        f"Please translate sentence number {n} and write a function"
        if n % 2
        else f"Write python code number {n}, please"
    )
    turns = [{"content": text, "role": "user"}, {"content": "Yes.", "role": "assistant"}]
    return {"conversation_id": f"c{n}", "conversation": turns, "language": "English", "redacted": n == 3}


# Per repository: the folder and name of its file, and its row number n.
COPIES: dict[str, tuple[str, Any]] = {
    "wmt/wmt14": ("fr-en/test", lambda n: {"translation": {"fr": f"Bonjour {n} " * 8, "en": f"Hello {n}"}}),
    "allenai/WildChat": ("data/train", _wildchat),
    "princeton-nlp/SWE-bench": ("data/test", lambda n: {"instance_id": f"a__b-{n}", "problem_statement": f"Fails {n}"}),
    "lamini/spider_text_to_sql": ("data/validation", lambda n: {"input": f"Question {n}", "output": "SELECT 1"}),
    "ia03/terminal-bench": (
        "data/test",
        lambda n: {"task_id": f"t{n}", "base_description": f"Do {n}", "archive": b"\x1f\x8b"},
    ),
    "nuprl/CanItEdit": (
        "data/test",
        lambda n: {"full_name": f"{n}_x", "before": f"x = {n}", "instruction_descriptive": f"Add {n}."},
    ),
    "openai/openai_humaneval": ("openai_humaneval/test", lambda n: {"task_id": f"HumanEval/{n}", "prompt": "def f():"}),
    "openai/gsm8k": ("main/test", lambda n: {"question": f"How many is {n}?", "answer": f"#### {n}"}),
    "HuggingFaceH4/mt_bench_prompts": (
        "data/train",
        lambda n: {"prompt_id": n, "prompt": [f"Write {n}.", "Shorter."], "category": "writing"},
    ),
    "tatsu-lab/alpaca": ("data/train", lambda n: {"instruction": f"List {n}.", "input": "", "output": "..."}),
    "EdinburghNLP/xsum": ("data/test", lambda n: {"id": str(n), "document": f"News {n}.", "summary": "News."}),
}


def make_copy(root: Path, repo: str, *, rows: int = 12, shuffled: int | None = None, parts: int = 1) -> None:
    """A repository as `hf download` leaves it: Parquet files, and a README that names the configs where it has any."""
    stem, row = COPIES[repo]
    values = [row(n) for n in range(rows)]
    if shuffled is not None:
        random.Random(shuffled).shuffle(values)
    folder = root / repo
    for part in range(parts):
        path = folder / f"{stem}-{part:05d}-of-{parts:05d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(values[part::parts]), path)
    name, split = stem.split("/")
    if name != "data":
        (folder / "README.md").write_text(CONFIGS.format(name=name, split=split))


def sample(name: str, root: Path, *, seed: int = 0, limit: int = 3) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    row = WORKLOADS[name]
    paths = locate(name, row["source"], root=ROOT, downloads=root / "downloads", datasets_root=root)
    return sample_workload(name, row, paths, seed=seed, limit=limit)


def of_kind(kind: str) -> list[str]:
    return [name for name, row in WORKLOADS.items() if row["source"]["kind"] == kind]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("datasets root")
    for repo in COPIES:
        make_copy(root, repo)
    return root


@pytest.mark.parametrize("name", of_kind("hub"))
def test_a_row_reads_a_copy_of_its_repository(copies: Path, name: str) -> None:
    header, prompts = sample(name, copies)
    assert len(prompts) == 3
    assert header["available"] >= 5
    assert all(prompt["messages"][0]["content"].strip() for prompt in prompts)


def test_every_repository_of_the_table_has_a_copy_here() -> None:
    assert {WORKLOADS[name]["source"]["repo"] for name in of_kind("hub")} == set(COPIES)


def test_filters_and_templates_make_the_published_prompts(copies: Path) -> None:
    _, prompts = sample("wildchat-code", copies, limit=12)
    assert all("python code" in prompt["messages"][0]["content"] for prompt in prompts)
    assert "c3" not in {prompt["id"] for prompt in sample("wildchat-translate", copies, limit=12)[1]}
    assert sample("wmt14", copies)[1][0]["messages"][0]["content"].startswith("Translate the following French text")


@pytest.mark.parametrize("repo", ["openai/gsm8k", "princeton-nlp/SWE-bench"])
def test_shuffled_and_split_copies_give_the_same_nested_sample(tmp_path: Path, repo: str) -> None:
    name = next(name for name in of_kind("hub") if WORKLOADS[name]["source"]["repo"] == repo)
    found = []
    for number, (seed, parts) in enumerate([(None, 1), (1, 1), (2, 3)]):
        make_copy(tmp_path / str(number), repo, rows=60, shuffled=seed, parts=parts)
        header, prompts = sample(name, tmp_path / str(number), limit=9)
        assert sample(name, tmp_path / str(number), limit=4)[1] == prompts[:4]
        found.append((header["fingerprint"], prompts))
    assert found[0] == found[1] == found[2]
    assert sample(name, tmp_path / "0", seed=1, limit=9)[1] != found[0][1]


def test_jsonl_copies_are_read_too(tmp_path: Path) -> None:
    folder = tmp_path / "princeton-nlp/SWE-bench/data"
    folder.mkdir(parents=True)
    rows = [COPIES["princeton-nlp/SWE-bench"][1](n) for n in range(4)]
    (folder / "test-00000-of-00001.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sample("swebench", tmp_path)[0]["available"] == 4


def test_a_copy_that_is_not_there_or_not_right(tmp_path: Path, copies: Path) -> None:
    with pytest.raises(UserError, match=r"gsm8k: datasets_root: datasets_root has no such copy.*huggingface\.co"):
        sample("gsm8k", tmp_path)
    make_copy(tmp_path, "openai/gsm8k")
    (tmp_path / "openai/gsm8k/README.md").write_text(CONFIGS.format(name="other", split="test"))
    with pytest.raises(UserError, match=r"cannot read the dataset: .*Compare the copy"):
        sample("gsm8k", tmp_path)
    row = {
        **WORKLOADS["swebench"],
        "source": {**WORKLOADS["swebench"]["source"], "columns": {"id": None, "prompt": "x"}},
    }
    with pytest.raises(UserError, match=r"cannot read the dataset: .*x"):
        sample_workload("swebench", row, [copies / "princeton-nlp/SWE-bench"], seed=0, limit=1)


@pytest.mark.parametrize("name", ["wmt14", "swebench"])  # a pinned commit, and one that has to be looked up
def test_without_a_network_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"cannot read the dataset: .*hf download --repo-type dataset .*datasets_root"):
        sample_workload(name, WORKLOADS[name], [], seed=0, limit=1)


def test_a_github_file_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = WORKLOADS["specbench-qa"]["source"]
    kept = tmp_path / source["repo"] / source["commit"] / source["file"]
    monkeypatch.setattr(fetch, "RAW_FILES", "http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(UserError, match=r"could not fetch http.*put the file at"):
        locate("specbench-qa", source, root=ROOT, downloads=tmp_path)
    assert not kept.exists()
    kept.parent.mkdir(parents=True)
    kept.write_text("{}\n")
    assert locate("specbench-qa", source, root=ROOT, downloads=tmp_path) == [kept]
    with pytest.raises(UserError, match="must stay inside its folder"):
        locate("specbench-qa", {**source, "file": "../x"}, root=ROOT, downloads=tmp_path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real data is not beside this repository")
def test_the_rows_read_the_real_spec_bench_and_gsm8k(tmp_path: Path) -> None:
    source = WORKLOADS["specbench-qa"]["source"]
    copy = tmp_path / source["repo"] / source["file"]
    copy.parent.mkdir(parents=True)
    copy.symlink_to(SHARED / "spec_bench/question.jsonl")
    counts = {name: sample(name, tmp_path)[0]["available"] for name in of_kind("github")}
    assert counts == dict.fromkeys(of_kind("github"), 40)  # half of 80 each
    _, prompts = sample("specbench-second-turn", tmp_path)
    assert all(len(prompt["followups"]) == 1 for prompt in prompts)
    rows = [json.loads(line) for line in (SHARED / "gsm8k/test.jsonl").read_text().splitlines()]
    path = tmp_path / "openai/gsm8k/main/test-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    (tmp_path / "openai/gsm8k/README.md").write_text(CONFIGS.format(name="main", split="test"))
    assert sample("gsm8k", tmp_path)[0]["available"] == 200
