"""The whole chain through a real snakemake on tiny models: two revisions side by side, reruns, refusals."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from tests.fixtures.tiny_folder import tiny_folder
from tests.workflow.conftest import Clone, make_clone, use_tiny_models

from servingbench.figures.names import FIGURE_NAMES
from servingbench.records.files import read_json, read_jsonl
from servingbench.records.schema import validate

pytestmark = pytest.mark.slow
REVISIONS = {"v4.57.3": "4.57.3", "v5.24.0": "5.24.0"}


@pytest.fixture(scope="module")
def finished(repository: Path, tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> Clone:
    """A copy in which figures and posters of two revisions were made in one call."""
    clone = make_clone(repository, tmp_path_factory.mktemp("finished"))
    use_tiny_models(clone, tiny_models)
    clone.edit("config", lambda config: config.update(revisions=list(REVISIONS)))
    clone.snakemake()
    return clone


def results(clone: Clone, revision: str) -> Path:
    return clone.folder / "results" / revision / "cpu" / "seed0-limit3" / "tiny"


def test_each_revision_ran_under_itself(finished: Clone) -> None:
    for revision, version in REVISIONS.items():
        runs = list(results(finished, revision).glob("*/*/run.json"))
        assert len(runs) == 2 * len(finished.table("config")["methods"])
        for run in runs:
            described = read_json(run)["provenance"]
            assert described["transformers"]["version"] == version
            assert f"resources/revisions/{revision}/" in described["transformers"]["file"]
            assert described["packages"]["transformers"] == version


def test_every_record_passes_its_schema(finished: Clone) -> None:
    checked = 0
    for pattern, schema in [
        ("*/*/summary.json", "summary"),
        ("*/*/run.json", "provenance"),
        ("*/lossless.json", "lossless"),
        ("statistics.json", "statistics"),
    ]:
        for revision in REVISIONS:
            for path in results(finished, revision).glob(pattern):
                validate(read_json(path), schema, file=path)
                checked += 1
    for path in (finished.folder / "results").glob("*/*/*/*/*/*/raw.jsonl"):
        for line, record in read_jsonl(path):
            validate(record, "raw", file=f"{path}:{line}")
            checked += 1
    assert checked > 200


def test_all_arms_wrote_the_same_text(finished: Clone) -> None:
    for revision in REVISIONS:
        for workload in ("math", "chat"):
            texts = [
                [record["new_token_ids"] for _, record in read_jsonl(path)]
                for path in results(finished, revision).glob(f"{workload}/*/raw.jsonl")
            ]
            assert texts
            assert all(text == texts[0] for text in texts)


def test_the_gate_passes_every_method_in_float32(finished: Clone) -> None:
    for path in (finished.folder / "results").glob("*/*/*/*/*/lossless.json"):
        for name, method in read_json(path)["methods"].items():
            assert method["passed"], (path, name, method["reason"])


def test_the_manifest_tells_the_truth(finished: Clone) -> None:
    figures = read_json(finished.folder / "figures" / "all")["figures"]
    assert len(figures) == len(FIGURE_NAMES) * 3 * len(REVISIONS)
    for figure in figures:
        assert hashlib.sha256((finished.folder / figure["path"]).read_bytes()).hexdigest() == figure["sha256"]


def test_a_second_run_does_nothing(finished: Clone) -> None:
    assert "Nothing to be done" in finished.snakemake().stderr


def test_one_workload_is_measured_again_and_the_rest_is_untouched(finished: Clone) -> None:
    def stamps(workload: str) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in results(finished, "v5.24.0").glob(f"{workload}/*/raw.jsonl")}

    statistics = results(finished, "v5.24.0") / "statistics.json"
    before = stamps("math"), stamps("chat"), statistics.stat().st_mtime_ns
    files = finished.run("servingbench", "outputs", "math").stdout.split()
    finished.snakemake("--forcerun", *[file for file in files if "v5.24.0" in file], "--", "figures/all")
    assert all(now > before[0][path] for path, now in stamps("math").items())
    assert stamps("chat") == before[1]
    assert statistics.stat().st_mtime_ns > before[2]


def test_the_poster_tables_alone(finished: Clone) -> None:
    targets = finished.run("servingbench", "outputs", "--tables").stdout.split()
    stale = finished.folder / targets[0]
    for file in stale.iterdir():
        file.unlink()
    stale.rmdir()
    done = finished.snakemake("--", *targets)
    assert "poster_tables" in done.stderr
    assert "generate" not in done.stderr
    assert list(stale.glob("*.csv"))


def test_the_report_holds_every_figure_and_table(finished: Clone) -> None:
    tables = finished.run("servingbench", "outputs", "--tables").stdout.split()
    finished.snakemake("--report", "report.zip", "--", "figures/all", *tables)
    with zipfile.ZipFile(finished.folder / "report.zip") as archive:
        names = archive.namelist()
    assert sum(name.endswith("speedup.png") for name in names) >= 2
    assert any(name.endswith(".csv") for name in names)


def test_the_result_table_is_printed(finished: Clone) -> None:
    text = finished.run("servingbench", "show").stdout
    assert "Tree" in text
    assert "poster.pdf" in text


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ("malformed line", "math.jsonl: line 3: not valid JSON"),
        ("no device", "h100"),
        ("other vocabulary", "the draft model has 300 token ids, the target 320"),
        ("no tokenizer", "has no tokenizer"),
        ("long prompt", "context"),
        ("offline hub model", "cannot get the model"),
    ],
)
def test_a_bad_run_is_one_line_and_leaves_nothing(clone: Clone, tmp_path: Path, spoil: str, message: str) -> None:
    row = {"label": "x", "source": "local", "dtype": "float32"}
    environment = {}
    if spoil == "malformed line":
        path = clone.folder / "config" / "prompts" / "math.jsonl"
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines[:2], '{"id": "broken', *lines[3:]]) + "\n")
    elif spoil == "no device":
        clone.edit("config", lambda config: config.update(gpus=["h100"]))
    elif spoil == "other vocabulary":
        other = tiny_folder(tmp_path / "other", vocab_size=300, context=2048)
        clone.edit("models", lambda rows: rows.update({"tiny-draft": {**row, "path": str(other)}}))
    elif spoil == "no tokenizer":
        bare = tiny_folder(tmp_path / "bare", tokenizer=False)
        clone.edit("models", lambda rows: rows["tiny"].update(path=str(bare)))
    elif spoil == "long prompt":
        short = tiny_folder(tmp_path / "short", context=64)
        clone.edit("models", lambda rows: rows["tiny"].update(path=str(short)))
    else:
        hub = {**row, "source": "hub", "id": "no/such", "revision": "0" * 40, "draft_model": "tiny-draft"}
        clone.edit("models", lambda rows: rows.update(tiny=hub))
        environment = {"HF_HUB_OFFLINE": "1"}
    targets = clone.run("servingbench", "outputs", "math").stdout.split()
    done = clone.snakemake("--", *targets, check=False, **environment)
    text = done.stderr + done.stdout
    assert done.returncode != 0
    assert message in text
    assert "Traceback" not in text
    assert sum(line.strip().startswith("error:") for line in text.splitlines()) == 1
    assert not list((clone.folder / "results").glob("v*/**/*.jsonl"))


def test_settings_reach_the_records(finished: Clone) -> None:
    summary = read_json(next(results(finished, "v5.24.0").glob("math/tree_speculative/summary.json")))
    assert summary["key"]["limit"] == 3
    assert json.dumps(summary["configuration"]).count("tree_speculative") or summary["method"] == "tree_speculative"
