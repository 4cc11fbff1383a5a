"""docs/workloads.md, followed word for word; and the real data through the whole workflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.workflow.conftest import Clone

MODEL = Path(__file__).parents[2] / "resources/models/smollm2-135m"
SHARED = Path(__file__).parents[3] / "shared/data"
README = "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: test\n    path: main/test-*\n---\n"


def test_following_the_page_adds_a_workload(clone: Clone) -> None:
    done = clone.follow("docs/workloads.md")
    assert "tickets" in done.stdout
    header, *prompts = map(json.loads, (clone.folder / "results/prompts/seed0-limit2/tickets.jsonl").open())
    assert header["header"]["available"] == 3
    assert all(prompt["messages"][0]["content"].startswith("Answer this ticket") for prompt in prompts)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the real data is not beside this repository")
@pytest.mark.skipif(not MODEL.is_dir(), reason="the model is not there: snakemake resources/models/smollm2-135m")
def test_real_data_runs_with_the_real_model(clone: Clone, tmp_path: Path) -> None:
    """Every Spec-Bench sub-task and GSM8K, read from copies of their repositories, limit 2."""
    bench = tmp_path / "hemingkx/Spec-Bench/data/spec_bench"
    bench.mkdir(parents=True)
    (bench / "question.jsonl").symlink_to(SHARED / "spec_bench/question.jsonl")
    gsm8k = tmp_path / "openai/gsm8k"
    (gsm8k / "main").mkdir(parents=True)
    (gsm8k / "README.md").write_text(README)
    (gsm8k / "main/test-00000.jsonl").symlink_to(SHARED / "gsm8k/test.jsonl")
    suite = yaml.safe_load((clone.folder / "config/suites/spec-bench.yaml").read_text())
    workloads = [*suite["workloads"], "gsm8k"]
    row = {"label": "SmolLM2", "source": "local", "path": str(MODEL), "dtype": "bfloat16"}
    clone.edit("models", lambda rows: rows.update(smollm2=row))
    settings = {
        "models": ["smollm2"],
        "workloads": workloads,
        "methods": ["autoregressive", "prompt_lookup"],
        "limit": 2,
        "max_new_tokens": 6,
        "datasets_root": str(tmp_path),
        "statistics": {"primary": "prompt_lookup", "aa": None, "contrasts": []},
    }
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    folder = clone.folder / "results/v5.24.0/cpu/seed0-limit2/smollm2"
    raw = [f"{folder.relative_to(clone.folder)}/{name}/prompt_lookup/raw.jsonl" for name in workloads]
    clone.snakemake("--configfile", str(tmp_path / "settings.yaml"), "--", *raw)
    for name in workloads:
        records = [json.loads(line) for line in (folder / name / "prompt_lookup/raw.jsonl").open()]
        assert [record["status"] for record in records] == ["ok", "ok"], name
    second = json.loads((folder / "specbench-second-turn/prompt_lookup/run.json").read_text())
    first = json.loads((folder / "specbench-conversation/prompt_lookup/run.json").read_text())
    prompts = [run["provenance"]["prompts"] for run in (first, second)]
    assert prompts[0]["fingerprint"] == prompts[1]["fingerprint"]
    assert prompts[0]["rendered_sha256"] != prompts[1]["rendered_sha256"]
