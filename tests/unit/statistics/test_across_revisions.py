"""Revisions of known speed, compared; and the picture of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.synthetic_records import lossless_record, raw_records, run_record, settings_record, write_raw

from servingbench.errors import UserError
from servingbench.figures.revisions import revisions
from servingbench.metrics.summary import summarize
from servingbench.records.files import write_json
from servingbench.records.schema import validate
from servingbench.statistics.audits import read_verdicts
from servingbench.statistics.report import read_arms, statistics
from servingbench.statistics.revisions import across_revisions
from servingbench.statistics.settings import Settings

WORKLOADS = ("code", "math")
METHODS = ("autoregressive", "lookup", "tree")


def measure(
    root: Path, revision: str, speeds: dict[str, float], *, seed: int = 0, unsupported: str | None = None
) -> Path:
    """A revision's results folder with arms of known speed; returns its statistics.json."""
    settings = settings_record(list(METHODS), WORKLOADS, primary="lookup", aa=None)
    settings["key"] = {**settings["key"], "revision": revision}
    raw, gates = [], []
    for workload in WORKLOADS:
        for method in METHODS:
            proposed = 0 if method == METHODS[0] else 3
            arm = raw_records(workload, method, prompts=8, speed=speeds[method], proposed=proposed)
            for number, record in enumerate(arm):
                # A thousandth of noise between arms: enough for intervals, too little for verdicts.
                place = number * int(revision[1:]) + len(method)
                record["wall_ns"] += record["wall_ns"] * (place % 3) // 1000
                if method == unsupported:
                    nulls = [key for key in record if key.endswith("_ns")] + ["forwards", "draft_forwards"]
                    record |= {"status": "unsupported", "error": "needs another", "steps": [], "new_token_ids": []}
                    record |= dict.fromkeys([*nulls, "finish_reason", "peak_memory_bytes"])
                elif seed and number == 0:  # another chat template: the same prompt has other ids
                    record["prompt_sha256"] = f"{seed:064x}"
            raw.append(write_raw(root / revision, arm))
            run = run_record(workload, METHODS)
            write_json(raw[-1].with_name("summary.json"), summarize(arm, run))
        gate = lossless_record(workload, list(METHODS))
        gate["key"]["revision"] = revision
        gates.append(root / revision / workload / "lossless.json")
        write_json(gates[-1], gate)
    checked = Settings.from_json(settings, file="test")
    record = statistics(read_arms(raw, checked), read_verdicts(gates, checked), checked)
    write_json(root / revision / "statistics.json", record)
    return root / revision / "statistics.json"


def change(record: dict[str, Any], method: str, old: str, new: str) -> dict[str, Any]:
    [row] = [row for row in record["changes"] if (row["method"], row["old"], row["new"]) == (method, old, new)]
    return row


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("revisions")
    files = [
        measure(root, "v1", {"autoregressive": 1.0, "lookup": 2.0, "tree": 3.0}),
        measure(root, "v2", {"autoregressive": 1.0, "lookup": 1.8, "tree": 3.0}, seed=7),
        measure(root, "v3", {"autoregressive": 1.2, "lookup": 2.4, "tree": 3.6}, unsupported="tree"),
    ]
    record = across_revisions(files)
    validate(record, "across_revisions", file="test")
    return record


def test_verdicts_on_the_baseline_and_on_the_speedups(compared: dict[str, Any]) -> None:
    assert change(compared, "autoregressive", "v1", "v2")["verdict"] == "equivalent"
    assert change(compared, "lookup", "v1", "v2")["verdict"] == "regression"
    assert change(compared, "lookup", "v1", "v2")["ratio"] == pytest.approx(0.9, rel=0.01)
    assert change(compared, "tree", "v1", "v2")["verdict"] == "equivalent"
    assert change(compared, "autoregressive", "v2", "v3")["verdict"] == "improvement"
    # From v1 to v3 everything became a fifth faster: speedups, over each revision's own baseline, stayed.
    assert change(compared, "lookup", "v1", "v3")["verdict"] == "equivalent"


def test_unequal_prompts_are_left_out_and_said(compared: dict[str, Any]) -> None:
    for method in ("autoregressive", "lookup"):
        row = change(compared, method, "v1", "v2")
        assert row["excluded"] == {"the rendered prompts differ": 2}
        assert row["n"] == 2 * 8 - 2
        assert change(compared, method, "v1", "v3")["excluded"] == {}


def test_what_a_revision_does_not_support_has_no_verdict(compared: dict[str, Any]) -> None:
    [row] = [row for row in compared["reached"] if (row["method"], row["revision"]) == ("tree", "v3")]
    assert (row["status"], row["speedup"], row["tokens_per_forward"]) == ("unsupported", None, None)
    last = change(compared, "tree", "v2", "v3")
    assert (last["verdict"], last["ratio"], last["n"]) == ("undecided", None, 0)


def test_the_figure_draws_what_was_reached(compared: dict[str, Any]) -> None:
    figure = revisions(compared, methods={"tree": {"label": "Tree"}}, revisions_table={})
    figure.canvas.draw()
    drawn = {line.get_gid(): list(line.get_ydata()) for axes in figure.axes for line in axes.lines if line.get_gid()}
    for row in compared["reached"]:
        for metric in ("tokens_per_second", "tokens_per_forward", "speedup"):
            if row[metric] is not None and f"{metric}/{row['method']}" in drawn:
                assert row[metric] in drawn[f"{metric}/{row['method']}"]
    words = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert words.count("not compared") == 2  # tree: v2 and v1 against v3
    assert "regression" in words


def test_bad_input(tmp_path: Path) -> None:
    one = measure(tmp_path, "v1", dict.fromkeys(METHODS, 1.0))
    with pytest.raises(UserError, match="needs two revisions"):
        across_revisions([one])
    other = measure(tmp_path / "other", "v2", dict.fromkeys(METHODS, 1.0))
    record = json.loads(other.read_text())
    write_json(other, {**record, "key": {**record["key"], "limit": 99}})
    with pytest.raises(UserError, match="is of another key"):
        across_revisions([one, other])
