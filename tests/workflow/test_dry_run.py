"""What the workflow would do, and how it refuses what it cannot do: no job is started here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from tests.workflow.conftest import Clone

from servingbench.config.experiment import load_suite


def job_counts(text: str) -> dict[str, int]:
    """The table of job counts that snakemake prints."""
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", text, flags=re.MULTILINE)}


def test_the_demo_runs_one_paired_job_per_workload(clone: Clone) -> None:
    counts = job_counts(clone.snakemake("-n", "figures/all").stdout)
    assert counts["generate"] == counts["audit_lossless"] == 2
    assert counts["compare"] == counts["figure_manifest"] == 1


def test_a_single_design_gives_each_method_a_job(clone: Clone) -> None:
    clone.edit("config", lambda config: config.update(design="single"))
    methods = len(yaml.safe_load((clone.folder / "config/config.yaml").read_text())["methods"])
    assert job_counts(clone.snakemake("-n", "figures/all").stdout)["generate"] == 2 * methods


def test_a_table_is_made_once_and_only_for_methods_that_draft_from_one(clone: Clone) -> None:
    def plan(design: str, methods: list[str], *targets: str) -> dict[str, int]:
        statistics = {"primary": methods[-1], "aa": None, "contrasts": []}
        clone.edit("config", lambda config: config.update(design=design, methods=methods))
        clone.edit("config", lambda config: config["statistics"].update(statistics))
        return job_counts(clone.snakemake("-n", "--", *targets or ["figures/all"]).stdout)

    assert "static_table" not in plan("paired", ["autoregressive", "prompt_lookup", "tree_published"])
    methods = ["autoregressive", "tree_table", "tree_speculative"]
    assert plan("paired", methods)["static_table"] == 1
    for method, tables in {"autoregressive": 0, "tree_table": 1}.items():
        file = f"results/v5.24.0/cpu/seed0-limit3/tiny/math/{method}/raw.jsonl"
        assert plan("single", methods, file).get("static_table", 0) == tables


def test_the_full_matrix_resolves(clone: Clone) -> None:
    counts = job_counts(clone.snakemake("-n", "--configfile", "config/suites/full-matrix.yaml").stdout)
    assert counts["generate"] == 10 * 3 * 2
    assert counts["static_table"] == 2  # one per revision, whatever the GPU
    assert counts["typeset_poster"] == 3 * 2


def test_every_suite_is_small_and_valid(repository: Path) -> None:
    suites = sorted((repository / "config/suites").glob("*.yaml"))
    assert len(suites) >= 12
    for suite in suites:
        assert len(suite.read_text().splitlines()) < 15, suite.name
        load_suite(repository / "config", suite)


def test_all_workloads_resolve_on_three_gpus_and_three_revisions(clone: Clone) -> None:
    """Every workload of every suite at once; `time snakemake -n` of it takes 4 to 5 s."""
    workloads = list(clone.table("workloads"))
    settings = {
        "workloads": workloads,
        "gpus": ["l40s", "h100", "h200"],
        "revisions": ["v4.57.3", "v5.12.0", "v5.24.0"],
    }
    (clone.folder / "all.yaml").write_text(yaml.safe_dump(settings))
    suites = ["config/suites/spring-2026.yaml", "all.yaml"]
    counts = job_counts(clone.snakemake("-n", "--configfile", *suites, "--", "figures/all").stdout)
    assert counts["generate"] == counts["audit_lossless"] == len(workloads) * 9
    assert counts["compare"] == 9


def test_the_serve_targets_resolve(clone: Clone) -> None:
    rows = yaml.safe_load((clone.folder / "config/config.yaml").read_text())["serve"]["rows"]
    counts = job_counts(clone.snakemake("-n", "--", "serve/all", "serve/preflight").stdout)
    assert counts["serve_row"] == len(rows) >= 8
    assert counts["preflight"] == counts["serve_matrix"] == counts["serve_ledger"] == counts["serve_manifest"] == 1


def test_a_suite_runs_with_another_limit(clone: Clone) -> None:
    suite = "config/suites/demo.yaml"
    text = clone.snakemake("-n", "--configfile", suite, "--config", "limit=2", "--", "figures/all").stdout
    assert "seed0-limit2" in text
    assert "seed0-limit3" not in text


def test_planning_imports_nothing_heavy(clone: Clone) -> None:
    """A dry run must answer at once: a poisoned torch and transformers on the path would break it."""
    for name in ("torch", "transformers", "matplotlib", "scipy", "pandas"):
        (clone.folder / "poison").mkdir(exist_ok=True)
        (clone.folder / "poison" / f"{name}.py").write_text(f"raise AssertionError('{name} was imported')\n")
    clone.snakemake("-n", PYTHONPATH=str(clone.folder / "poison"))


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("limit=-1", ["--config: limit: must be at least 1 (got -1)"]),
        ("limit=many", ["--config: limit: must be of type integer (got 'many')"]),
        ("limt=1", ["limt: unknown key", "Did you mean 'limit'?"]),
        ("methods=[tree]", ["--config: methods: unknown method", "'tree'", "tree_speculative"]),
        ("workloads=[maths]", ["unknown workload", "Did you mean 'math'?"]),
        ("gpus=[h1000]", ["unknown gpu", "Did you mean 'h100'?"]),
        ("revisions=[v9]", ["unknown revision", "v5.24.0"]),
    ],
)
def test_bad_input_is_one_line_and_starts_nothing(clone: Clone, setting: str, parts: list[str]) -> None:
    done = clone.snakemake("--config", setting, "--", "figures/all", check=False)
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert all(part in errors[0] for part in parts)
    assert "Traceback" not in done.stderr + done.stdout
    assert not (clone.folder / "results").exists()


def test_it_runs_from_another_folder(clone: Clone) -> None:
    elsewhere = clone.folder.parent / "elsewhere"
    elsewhere.mkdir()
    done = clone.run("snakemake", "-n", "-s", str(clone.folder / "Snakefile"), "--cores", "1", cwd=elsewhere)
    assert job_counts(done.stdout)["generate"] == 2
    assert not list(elsewhere.iterdir())


def test_no_module_shadows_the_modal_sdk(clone: Clone) -> None:
    """profiles/modal is reached through the root folder modal/; an __init__.py there would be imported as the SDK."""
    assert (clone.folder / "modal/profile.yaml").samefile(clone.folder / "profiles/modal/profile.yaml")
    assert not (clone.folder / "modal" / "__init__.py").exists()


def test_the_command_line_lists_what_there_is(clone: Clone) -> None:
    text = clone.run("servingbench", "list").stdout
    for table in ("methods", "workloads", "gpus", "revisions"):
        assert all(name in text for name in clone.table(table))
    assert "full-matrix" in text
