"""Simulated coverage of the 95% interval, seeded: how often does it hold the true mean?"""

from __future__ import annotations

import numpy as np
import pytest
from tests.fixtures.synthetic_records import raw_records

from servingbench.statistics.bootstrap import Resampler, estimate, resample
from servingbench.statistics.pairing import pair

REPETITIONS = 600


def coverage(draw, *, tasks, n, kind="bootstrap-t", seed=11):
    """Shares of main and percentile intervals that hold 0, the mean of ``draw``."""
    rng = np.random.default_rng(seed)
    resampler = Resampler(seed=seed, resamples=499)
    spreads = np.linspace(0.5, 1.5, tasks)
    main = percentile = 0
    for _ in range(REPETITIONS):
        samples = draw(rng, (tasks, n)) * spreads[:, None]
        found = estimate(
            [resample(d, resampler.indices(f"task{k}", n=n)) for k, d in enumerate(samples)], confidence=0.95, kind=kind
        )
        main += found.interval[0] <= 0 <= found.interval[1]
        percentile += found.percentile[0] <= 0 <= found.percentile[1]
    return main / REPETITIONS, percentile / REPETITIONS


def normal(rng, shape):
    return rng.standard_normal(shape)


def skewed(rng, shape):
    return rng.exponential(size=shape) - 1


@pytest.mark.parametrize(
    ("draw", "tasks", "n", "least"),
    [
        (normal, 1, 3, 0.93),
        (normal, 1, 4, 0.93),
        (normal, 1, 12, 0.93),
        (normal, 6, 4, 0.93),
        (skewed, 1, 4, 0.88),
        (skewed, 6, 4, 0.92),
    ],
)
def test_bootstrap_t_covers_the_mean(draw, tasks, n, least):
    main, percentile = coverage(draw, tasks=tasks, n=n)
    assert least <= main <= 0.985
    assert percentile < main  # why the percentile interval is only shown beside it


def test_bca_undercovers_at_four_prompts_which_is_why_it_is_not_the_default():
    main, _ = coverage(normal, tasks=1, n=4, kind="bca")
    assert main < 0.88


def test_the_interval_of_two_identical_arms_covers_one():
    held = 0
    for seed in range(200):
        resampler = Resampler(seed=seed, resamples=499)
        tasks = []
        for workload in ("code", "math", "chat"):
            arms = [
                raw_records(workload, method, prompts=5, noise=0.02, new_tokens=4, seed=seed)
                for method in ("autoregressive", "autoregressive_aa")
            ]
            pairs = pair(*arms)
            tasks.append(resample(pairs.log_ratios, resampler.indices(workload, n=5)))
        low, high = estimate(tasks, confidence=0.95, kind="bootstrap-t").interval
        held += low <= 0 <= high
    assert 0.91 <= held / 200 <= 0.99
