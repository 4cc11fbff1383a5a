"""Geometric means over tasks, paired ratios with intervals, and a reason beside every null."""

from __future__ import annotations

import numpy as np
import pytest

from servingbench.simulate.corpus import Recording
from servingbench.simulate.figures import groups, mean_log, paired_figure, scalar_figure
from servingbench.statistics.bootstrap import Resampler

RESAMPLER = Resampler(seed=0, resamples=500)


def recordings(tasks):
    return [Recording(task, [1], [2]) for task in tasks]


def test_halves_count_within_the_task():
    corpus = recordings("abaaabb")
    assert groups(corpus, half=0) == {"a": [0, 3], "b": [1, 6]}
    assert groups(corpus, half=1) == {"a": [2, 4], "b": [5]}
    left_out = [place == 4 for place in range(7)]
    assert groups(corpus, half=1, left_out=left_out) == {"a": [2], "b": [5]}


def test_tasks_weigh_the_same():
    logs = np.log([2.0, 8.0, 9.0, np.nan])
    assert np.exp(mean_log(logs, {"a": [0, 1], "b": [2, 3]})) == pytest.approx(6.0)
    assert mean_log(logs, {"b": [3]}) is None
    assert mean_log(logs, {}) is None


def test_ratios_are_paired_by_prompt():
    rng = np.random.default_rng(0)
    spread, noise = rng.normal(0, 1, 24), rng.normal(0, 0.01, 24)
    chosen = {"a": list(range(12)), "b": list(range(12, 24))}
    logs = {"ours": spread + np.log(1.2) + noise, "transformers": spread}
    figure = paired_figure("tokens_per_forward_tree", logs, chosen, absent={"arctic": "none"}, resampler=RESAMPLER)
    assert figure["n"] == 24
    assert figure["ratio_transformers"] == pytest.approx(figure["ours"] / figure["transformers"])
    low, high = figure["ratio_transformers_ci"]
    assert 1.19 < low < figure["ratio_transformers"] < high < 1.21  # the prompts' own spread cancels
    assert figure["arctic"] is figure["ratio_arctic"] is figure["ratio_arctic_ci"] is None
    assert figure["reasons"] == dict.fromkeys(("arctic", "ratio_arctic", "ratio_arctic_ci"), "none")


def test_too_few_prompts_give_a_ratio_and_the_reason_for_no_interval():
    logs = {"ours": np.log([3.0, 2.0]), "arctic": np.log([2.0, 2.0]), "transformers": np.log([1.0, 1.0])}
    figure = paired_figure("tokens_per_forward_path", logs, {"a": [0], "b": [1]}, absent={}, resampler=RESAMPLER)
    assert figure["ratio_arctic"] == pytest.approx(1.5**0.5)
    assert figure["ratio_arctic_ci"] is None
    assert "at least 3" in figure["reasons"]["ratio_arctic_ci"]


@pytest.mark.parametrize("logs", [{}, {"ours": np.array([np.nan]), "arctic": np.array([np.nan])}])
def test_nothing_measured_is_null_with_the_reason(logs):
    absent = dict.fromkeys(("ours", "arctic", "transformers"), "not timed")
    figure = paired_figure("decode_speedup_tree", logs, {"a": [0]}, absent=absent, resampler=RESAMPLER)
    nulls = {key for key, value in figure.items() if value is None}
    assert nulls == figure["reasons"].keys() and len(nulls) == 7
    assert set(figure["reasons"].values()) == {"not timed"}


def test_plain_numbers_are_ours_over_the_peers():
    figure = scalar_figure("propose_us_tree", {"ours": 10.0, "arctic": 20.0}, absent={"transformers": "no trees"})
    assert (figure["ratio_arctic"], figure["better"]) == (0.5, "lower")
    assert figure["reasons"]["transformers"] == "no trees"
    assert figure["reasons"]["ratio_arctic_ci"] == "not measured per prompt"
