"""The bootstrap: against scipy, against a plain loop, and where there can be no interval."""

from __future__ import annotations

import math
import statistics
import zlib

import numpy as np
import pytest
from scipy import stats

from servingbench.statistics.bootstrap import Resampler, acceleration, bca, estimate, resample

D = np.array([0.31, 0.12, 0.55, 0.27, 0.40, 0.09, 0.36, 0.22])
RESAMPLES, SEED = 1999, 5


def tasks_of(*samples, resamples=RESAMPLES, seed=SEED):
    resampler = Resampler(seed=seed, resamples=resamples)
    return [
        resample(np.asarray(d, dtype=float), resampler.indices(f"task{k}", n=len(d))) for k, d in enumerate(samples)
    ]


def scipy_bootstrap(samples, method, rng):
    def mean_of_means(*data, axis=-1):
        return np.mean([sample.mean(axis=axis) for sample in data], axis=0)

    return stats.bootstrap(samples, mean_of_means, n_resamples=RESAMPLES, method=method, rng=rng)


@pytest.mark.parametrize(
    ("kind", "field", "method"), [("bootstrap-t", "percentile", "percentile"), ("bca", "interval", "BCa")]
)
def test_one_stratum_equals_scipy_on_the_same_resamples(kind, field, method):
    found = estimate(tasks_of(D), confidence=0.95, kind=kind)
    expected = scipy_bootstrap((D,), method, np.random.default_rng([SEED, zlib.crc32(b"task0")]))
    assert getattr(found, field) == pytest.approx(tuple(expected.confidence_interval), rel=1e-9)
    assert found.standard_error == pytest.approx(stats.sem(D))


def test_bca_of_several_strata_equals_scipy():
    samples = (D, np.array([0.9, -0.2, 0.1, 0.0]), np.array([0.5, 0.4, 0.45]))
    expected = scipy_bootstrap(samples, "BCa", np.random.default_rng(0))
    mean = float(np.mean([sample.mean() for sample in samples]))
    interval, _ = bca(expected.bootstrap_distribution, mean, acceleration(samples), tail=0.025)
    assert interval == pytest.approx(tuple(expected.confidence_interval), rel=1e-9)


def test_bootstrap_t_equals_a_plain_loop():
    samples = [[0.31, 0.12, 0.55, 0.27], [0.9, -0.2, 0.1, 0.0, 0.3]]
    resampler = Resampler(seed=SEED, resamples=199)
    draws = [resampler.indices(f"task{k}", n=len(sample)).tolist() for k, sample in enumerate(samples)]

    def mean_and_error(groups, floors):
        squares = [
            (1 - share) * statistics.variance(g) / len(g) + share * own
            for g, (share, own) in zip(groups, floors, strict=True)
        ]
        return statistics.fmean(map(statistics.fmean, groups)), math.sqrt(sum(squares)) / len(groups)

    own = [(len(s) ** (1 - len(s)), statistics.variance(s) / len(s)) for s in samples]
    theta, error = mean_and_error(samples, [(0, 0)] * 2)
    t = []
    for b in range(199):
        groups = [[sample[i] for i in draw[b]] for sample, draw in zip(samples, draws, strict=True)]
        star, star_error = mean_and_error(groups, own)
        t.append((star - theta) / star_error)
    t.sort()
    found = estimate(
        tasks_of(*samples, resamples=199), confidence=0.9, kind="bootstrap-t"
    )  # 200 * 0.05 = 10th at each end
    assert found.mean == pytest.approx(theta)
    assert found.interval == pytest.approx((theta - t[-10] * error, theta - t[9] * error), rel=1e-9)
    share = min(sum(x >= theta / error for x in t), sum(x <= theta / error for x in t))
    assert found.p_value == pytest.approx(2 * (share + 1) / 200)


def test_overall_weights_tasks_equally_whatever_their_size():
    found = estimate(tasks_of([1.0, 1.1, 0.9, 1.0, 1.2, 0.8], [0.0, 0.1, -0.1]), confidence=0.95, kind="bootstrap-t")
    assert (found.n, found.mean) == (9, pytest.approx(0.5))
    error = math.sqrt(0.02 / 6 + 0.01 / 3) / 2
    assert found.standard_error == pytest.approx(error)


@pytest.mark.parametrize("kind", ["bootstrap-t", "bca"])
def test_the_p_value_agrees_with_the_interval(kind):
    rng = np.random.default_rng(3)
    verdicts = set()
    for _ in range(60):
        found = estimate(tasks_of(rng.normal(0.5, 1, 12), resamples=399), confidence=0.95, kind=kind)
        excludes = not found.interval[0] <= 0 <= found.interval[1]
        if abs(found.p_value - 0.05) > 0.006:  # bca interpolates between two resamples
            assert excludes == (found.p_value <= 0.05)
        verdicts.add(excludes)
    assert verdicts == {True, False}


def test_bootstrap_t_excludes_zero_exactly_at_p_of_one_minus_confidence():
    for shift in np.linspace(0.0, 0.25, 101):
        found = estimate(tasks_of(D - shift, resamples=399), confidence=0.95, kind="bootstrap-t")
        assert (not found.interval[0] <= 0 <= found.interval[1]) == (found.p_value <= 0.05)


def test_methods_with_the_same_prompts_share_their_resamples():
    resampler = Resampler(seed=1, resamples=10)
    assert resampler.indices("code", n=5) is resampler.indices("code", n=5)
    assert not np.array_equal(resampler.indices("code", n=5), resampler.indices("math", n=5))
    again = Resampler(seed=1, resamples=10)
    again.indices("math", n=7)
    assert np.array_equal(resampler.indices("code", n=5), again.indices("code", n=5))
    assert not np.array_equal(again.indices("code", n=5), Resampler(seed=2, resamples=10).indices("code", n=5))


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ([[0.1]], "at least 3 paired prompts"),
        ([[0.1, 0.3]], "at least 3 paired prompts"),
        ([[0.1, 0.2, 0.3], [0.5]], "at least 2 paired prompts in every workload"),
        ([[0.2, 0.2, 0.2, 0.2]], "no spread"),
        ([[0.1, 0.1, 0.1], [0.7, 0.7, 0.7]], "no spread"),
        ([[0.1, 0.2], [0.3, 0.5]], "unbounded with 4 prompts"),
    ],
)
def test_too_few_prompts_have_a_mean_but_no_interval(samples, reason):
    found = estimate(tasks_of(*samples), confidence=0.95, kind="bootstrap-t")
    assert (found.interval, found.percentile, found.p_value) == (None, None, None)
    assert reason in found.reason
    assert found.mean == pytest.approx(statistics.fmean(map(statistics.fmean, samples)))


def test_one_task_without_spread_does_not_spoil_the_others():
    found = estimate(tasks_of([0.2, 0.2, 0.2, 0.2], D), confidence=0.95, kind="bootstrap-t")
    assert found.reason is None
    assert found.interval[0] < found.mean < found.interval[1]


def test_three_prompts_have_a_bounded_interval():
    found = estimate(tasks_of([0.10, 0.12, 0.30]), confidence=0.95, kind="bootstrap-t")
    assert all(map(math.isfinite, found.interval))
    assert found.interval[0] < 0.10 and found.interval[1] > 0.30
