"""A wrong configuration ends with one line that names the file, the key, the value and what is allowed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from servingbench.config.experiment import load_experiment, load_suite
from servingbench.errors import UserError


@pytest.fixture
def folder(repository: Path, tmp_path: Path) -> Path:
    """A copy of config/ that a test may spoil."""
    return Path(shutil.copytree(repository / "config", tmp_path / "config"))


def error_of(folder: Path, **changes: object) -> str:
    """What the user reads when a suite with ``changes`` is run."""
    suite = folder / "suites" / "mine.yaml"
    suite.write_text(yaml.safe_dump(changes))
    with pytest.raises(UserError) as caught:
        load_suite(folder, suite)
    text = str(caught.value)
    assert "\n" not in text
    return text


def edit(folder: Path, table: str, row: str, **changes: object) -> None:
    path = folder / f"{table}.yaml"
    rows = yaml.safe_load(path.read_text())
    rows.setdefault(row, {}).update(changes)
    path.write_text(yaml.safe_dump(rows))


@pytest.mark.parametrize("table", ["workloads", "methods", "gpus", "revisions", "models"])
def test_an_unknown_name_is_answered_with_the_known_ones(folder: Path, table: str) -> None:
    text = error_of(folder, **{table: ["no-such-thing"]})
    assert f"mine.yaml: {table}" in text
    assert "'no-such-thing'" in text
    known = list(yaml.safe_load((folder / f"{table}.yaml").read_text()))
    assert all(name in text for name in known)


def test_a_close_name_is_suggested(folder: Path) -> None:
    assert "Did you mean 'code-editing'?" in error_of(folder, workloads=["code-editng"])


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"limit": -1}, ["mine.yaml: limit", "at least 1", "-1"]),
        ({"limit": 0}, ["mine.yaml: limit", "at least 1"]),
        ({"limit": "ten"}, ["mine.yaml: limit", "integer", "'ten'"]),
        ({"limt": 3}, ["mine.yaml: limt", "unknown key", "Did you mean 'limit'?"]),
        ({"timing": "warped"}, ["mine.yaml: timing", "forced, free", "'warped'"]),
        ({"statistics": {"resample": 10}}, ["mine.yaml: statistics.resample", "unknown key", "'resamples'"]),
        ({"statistics": {"primary": "tree_published"}}, ["mine.yaml: statistics.primary", "not among the methods"]),
        ({"workloads": []}, ["mine.yaml: workloads"]),
        ({"limit": 3.0}, ["mine.yaml: limit", "integer", "3.0"]),
        ({"statistics": {"aa": "autoregressive"}}, ["statistics.aa", "compared with itself"]),
        ({"statistics": {"primary": "autoregressive_aa"}}, ["statistics.primary", "compared with itself"]),
        ({"statistics": {"confidence": float("nan")}}, ["statistics.confidence", "between 0 and 1"]),
    ],
)
def test_wrong_values_name_file_key_and_remedy(folder: Path, changes: dict[str, object], parts: list[str]) -> None:
    text = error_of(folder, **changes)
    for part in parts:
        assert part in text


def test_a_value_from_the_command_line_is_not_blamed_on_a_file(folder: Path) -> None:
    config = yaml.safe_load((folder / "config.yaml").read_text()) | {"limit": -3}
    with pytest.raises(UserError, match=r"--config: limit: must be at least 1 \(got -3\)"):
        load_experiment(folder, config, [folder / "config.yaml"])


@pytest.mark.parametrize("table", ["models", "methods", "workloads", "revisions", "gpus"])
def test_a_typo_in_any_table_is_refused(folder: Path, table: str) -> None:
    row = next(iter(yaml.safe_load((folder / f"{table}.yaml").read_text())))
    edit(folder, table, row, lable="x")
    assert f"{table}.yaml: {row}.lable: unknown key" in error_of(folder)


@pytest.mark.parametrize(
    ("method", "options", "part"),
    [
        ("tree_speculative", {"widht": 8}, "tree_speculative.options.widht: unknown key. Did you mean 'width'?"),
        ("tree_speculative", {"width": -3}, "tree_speculative.options.width: must be at least 1 (got -3)"),
        ("suffix_global", {"source": "globl"}, "suffix_global.options.source: not allowed (got 'globl')"),
        ("prompt_lookup", {"max_ngramx": 2}, "prompt_lookup.options.max_ngramx: unknown key"),
        ("prompt_lookup_hf", {"do_sample": True}, "prompt_lookup_hf.options.do_sample: unknown key"),
        ("autoregressive", {"num_tokens": 2}, "autoregressive.options.num_tokens: unknown key"),
        ("tree_published", {"min_prob": 2}, "tree_published.options.min_prob: must be at most 1"),
        ("arctic_suffix_tree", {"max_depth": 64}, "arctic_suffix_tree.options.max_depth: unknown key"),
        ("arctic_suffix_tree", {"source": "global"}, "arctic_suffix_tree.options.source: not allowed (got 'global')"),
        ("early_exit", {"assistant_early_exit": 0}, "early_exit.options.assistant_early_exit: must be at least 1"),
        ("dflash", {"speculation_type": "eagle"}, "dflash.options.speculation_type: not allowed (got 'eagle')"),
    ],
)
def test_a_method_takes_its_own_options_only(folder: Path, method: str, options: dict[str, object], part: str) -> None:
    edit(folder, "methods", method, options=options)
    assert part in error_of(folder)


def test_models_cut_from_each_other_are_refused(folder: Path) -> None:
    row = {"label": "x", "source": "truncated", "layers": 1, "prepared_with": "v5.24.0", "dtype": "float32"}
    edit(folder, "models", "one", of="two", **row)
    edit(folder, "models", "two", of="one", **row)
    assert "models.yaml: one: a model cannot refer to itself" in error_of(folder)


@pytest.mark.parametrize("content", [b"a: \xff\xfe", b"a: \x01", b"? [a]\n: 1\n", b"[1, 2]"])
def test_a_table_that_is_no_table_is_one_line(folder: Path, content: bytes) -> None:
    (folder / "gpus.yaml").write_bytes(content)
    assert "gpus.yaml" in error_of(folder)


def test_a_repeated_row_is_refused(folder: Path) -> None:
    path = folder / "gpus.yaml"
    path.write_text(path.read_text() + "cpu: {label: again, kind: cpu, threads: 1}\n")
    assert "the key 'cpu' stands twice" in error_of(folder)


def test_broken_yaml_is_named_with_its_line(folder: Path) -> None:
    (folder / "gpus.yaml").write_text("cpu:\n  label: [\n")
    text = error_of(folder)
    assert "gpus.yaml: line" in text
    assert "not valid YAML" in text


def test_a_missing_prompt_file_is_named(folder: Path) -> None:
    (folder / "prompts" / "math.jsonl").unlink()
    text = error_of(folder, workloads=["math"])
    assert "workloads.yaml: math.source.file: no such file" in text


def test_a_model_without_the_draft_model_that_a_method_needs(folder: Path) -> None:
    edit(folder, "models", "lonely", label="x", source="local", path="/nowhere", dtype="float32")
    text = error_of(folder, models=["lonely"])
    assert "models.yaml: lonely.draft_model: draft_speculative needs a draft model" in text


def test_a_hub_model_must_be_pinned_by_a_full_commit(folder: Path) -> None:
    edit(folder, "models", "qwen3-8b", revision="main")
    assert "models.yaml: qwen3-8b.revision" in error_of(folder)


def test_every_suite_is_valid(repository: Path) -> None:
    suites = sorted((repository / "config" / "suites").glob("*.yaml"))
    assert suites
    for suite in suites:
        assert load_suite(repository / "config", suite).config["methods"]


def test_the_spec_holds_only_what_the_run_depends_on(repository: Path) -> None:
    experiment = load_suite(repository / "config")
    key = {"revision": "v5.24.0", "gpu": "cpu", "seed": "7", "limit": "2", "model": "smollm2-135m", "workload": "math"}
    spec = json.loads(experiment.generation_spec(**key))
    assert spec["key"] == {**key, "seed": 7, "limit": 2}
    assert list(spec["methods"]) == experiment.config["methods"]
    assert spec["workload"]["max_new_tokens"] == experiment.config["max_new_tokens"]
    assert "lossless" not in spec
    single = json.loads(experiment.generation_spec(**key, method="prompt_lookup"))
    assert list(single["methods"]) == ["prompt_lookup"]


@pytest.mark.parametrize(
    ("supports", "revision", "reason"),
    [
        (">=5.14", "v5.24.0", None),
        (">=5.14", "v5.12.0", "transformers 5.12.0 does not support it (it needs >=5.14)"),
        ("!=5.0.*, !=5.1.*", "v5.0.0", "transformers 5.0.0 does not support it (it needs !=5.0.*, !=5.1.*)"),
        (["suffix-76d60fa"], "v5.0.0", "v5.0.0 does not support it (it needs suffix-76d60fa)"),
        (["suffix-76d60fa"], "suffix-76d60fa", None),
    ],
)
def test_a_method_runs_where_its_revision_has_it(
    folder: Path, supports: object, revision: str, reason: str | None
) -> None:
    edit(folder, "methods", "prompt_lookup", supports=supports)
    config = yaml.safe_load((folder / "config.yaml").read_text())
    experiment = load_experiment(folder, config | {"revisions": ["v5.24.0", "suffix-76d60fa"]})
    assert experiment.unsupported("prompt_lookup", revision) == reason
    key = {"revision": revision, "gpu": "cpu", "seed": "0", "limit": "1", "model": "smollm2-135m", "workload": "math"}
    spec = json.loads(experiment.generation_spec(**key))
    assert spec["unsupported"] == ({} if reason is None else {"prompt_lookup": reason})
    assert "prompt_lookup" in spec["methods"]


def test_a_method_that_no_revision_has_and_a_baseline_that_one_lacks_are_refused(folder: Path) -> None:
    edit(folder, "methods", "prompt_lookup", supports=["suffix-76d60fa"])
    assert "it needs suffix-76d60fa" in error_of(folder)
    edit(folder, "methods", "prompt_lookup", supports=">=4")
    edit(folder, "methods", "autoregressive", supports=">=5.0")
    assert "methods: transformers 4.57.3 does not support it" in error_of(folder, revisions=["v4.57.3", "v5.24.0"])
