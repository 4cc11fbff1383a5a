"""Stratified paired bootstrap of an equal-weight mean of task means.

The unit is the prompt; d holds one log time ratio per prompt. Prompts are resampled within their task, with the same
indices for every method (:class:`Resampler`), so that methods stay paired with each other too.

The default interval is the bootstrap-t (Efron & Tibshirani, An Introduction to the Bootstrap, 1993, section 12.5):
theta - q(1-a/2) se to theta - q(a/2) se with q the quantiles of t* = (theta* - theta) / se*, and
se^2 = 1/K^2 sum_k s_k^2/n_k the stratified standard error. It is chosen over BCa because benchmarks are run on few
prompts per task: BCa and the percentile interval keep the bootstrap's spread, which is too small by (n-1)/n in every
task (95% intervals from 4 prompts cover 75 to 80% in simulation), while studentising restores it.

At three or four prompts many resamples repeat one prompt; their se* of zero would make the interval infinite for a
reason that lies in the resampling and not in the data. The resampled variance is therefore mixed with the sample's own,
in proportion to the share of such resamples, n^(1-n): 1/9 at n = 3, 1/64 at 4, nothing that shows from 6 on. The tests
simulate the coverage that this gives.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from servingbench.statistics.settings import IntervalKind

Floats = NDArray[np.float64]
Interval = tuple[float, float]

MIN_PROMPTS = 3
RELATIVE_ZERO = 1e-10
"""A spread this far below its scale is rounding: times are whole nanoseconds, hardly ever above 1e10 of them."""


class Resampler:
    """The resampled indices of every task, a function of the seed, the task's name and its number of prompts alone.

    Methods with the same prompts see the same indices, and adding a task or a method changes no other interval.
    """

    def __init__(self, *, seed: int, resamples: int) -> None:
        """Keep the seed and B."""
        self._seed = seed
        self._resamples = resamples
        self._drawn: dict[tuple[str, int], NDArray[np.int64]] = {}

    def indices(self, task: str, *, n: int) -> NDArray[np.int64]:
        """Indices of shape [B, n] into the ``n`` prompts of ``task``."""
        if (task, n) not in self._drawn:
            rng = np.random.default_rng([self._seed, zlib.crc32(task.encode())])
            self._drawn[task, n] = rng.integers(0, n, size=(self._resamples, n))
        return self._drawn[task, n]


@dataclass(frozen=True)
class Task:
    """One task's d of shape [n], its mean and squared standard error, and both of every resample (shape [B])."""

    d: Floats
    mean: float
    variance: float
    means: Floats
    variances: Floats


def resample(d: Floats, indices: NDArray[np.int64]) -> Task:
    """Resample one task: ``d`` of shape [n], n >= 1; ``indices`` of shape [B, n]."""
    n = len(d)
    drawn = d[indices]
    if n == 1:
        return Task(d, float(d[0]), float("nan"), drawn[:, 0], np.full(len(drawn), np.nan))
    variance = float(d.var(ddof=1)) / n
    degenerate = float(n) ** (1 - n) if n >= MIN_PROMPTS else 0.0  # at 2 it is every other resample: leave those alone
    variances = (1 - degenerate) * drawn.var(axis=1, ddof=1) / n + degenerate * variance
    return Task(d, float(d.mean()), variance, drawn.mean(axis=1), variances)


@dataclass(frozen=True)
class Estimate:
    """An equal-weight mean of task means with its intervals, all on the scale of d.

    Attributes:
        n: prompts, all tasks together.
        mean: theta.
        standard_error: the stratified one; nan where a task has one prompt.
        interval: the main interval, None where there is none.
        percentile: the percentile interval, likewise.
        p_value: two-sided, of theta = 0, by inverting the interval: at most 1 - confidence where that excludes 0.
        reason: why there is no interval.
    """

    n: int
    mean: float
    standard_error: float
    interval: Interval | None
    percentile: Interval | None
    p_value: float | None
    reason: str | None


def estimate(tasks: Sequence[Task], *, confidence: float, kind: IntervalKind) -> Estimate:
    """Combine resampled tasks (one for a single workload) into an estimate with its intervals and p-value.

    There is no interval, and a reason instead, for fewer than three prompts, a task with one, differences without any
    spread, or so few prompts that the interval is unbounded.
    """
    n = sum(len(task.d) for task in tasks)
    mean = float(np.mean([task.mean for task in tasks]))
    standard_error = float(np.sqrt(sum(task.variance for task in tasks))) / len(tasks)
    reason = _no_interval(tasks, n, standard_error)
    if reason:
        return Estimate(n, mean, standard_error, None, None, None, reason)
    means = np.mean([task.means for task in tasks], axis=0)
    tail = (1 - confidence) / 2
    if kind == "bootstrap-t":
        errors = np.sqrt(np.sum([task.variances for task in tasks], axis=0)) / len(tasks)
        interval, p_value = bootstrap_t(means, errors, mean, standard_error, tail=tail)
    else:
        interval, p_value = bca(means, mean, acceleration([task.d for task in tasks]), tail=tail)
    with np.errstate(over="ignore"):
        bounded = bool(np.isfinite(interval).all() and np.isfinite(np.exp(interval)).all())
    if not bounded:
        return Estimate(n, mean, standard_error, None, None, None, f"the interval is unbounded with {n} prompts")
    low, high = np.quantile(means, [tail, 1 - tail])
    return Estimate(n, mean, standard_error, interval, (float(low), float(high)), p_value, None)


def _no_interval(tasks: Sequence[Task], n: int, standard_error: float) -> str | None:
    if n < MIN_PROMPTS:
        return f"an interval needs at least {MIN_PROMPTS} paired prompts"
    if any(len(task.d) < 2 for task in tasks):
        return "an interval needs at least 2 paired prompts in every workload"
    if standard_error <= RELATIVE_ZERO * max(1.0, max(float(np.abs(task.d).max()) for task in tasks)):
        return "the differences have no spread at all"
    return None


def bootstrap_t(
    means: Floats, errors: Floats, mean: float, standard_error: float, *, tail: float
) -> tuple[Interval, float]:
    """The bootstrap-t interval and its p-value.

    Args:
        means: theta* of every resample.
        errors: se* of every resample.
        mean: theta.
        standard_error: se.
        tail: the probability left out at each end.

    Returns:
        The interval, ends possibly infinite, and p = 2 min(#(t* >= theta/se) + 1, #(t* <= theta/se) + 1) / (B + 1). The
        interval's ends are order statistics, so that it excludes 0 exactly when p <= 2 tail.
    """
    shift = means - mean
    still = np.abs(shift) <= RELATIVE_ZERO * standard_error
    flat = errors <= RELATIVE_ZERO * standard_error
    t = np.divide(shift, errors, out=np.copysign(np.full_like(shift, np.inf), shift), where=~flat)
    t[still] = 0.0
    t.sort()
    rank = int(tail * (len(t) + 1) * (1 + 1e-12))
    low, high = mean - t[-rank] * standard_error, mean - t[rank - 1] * standard_error
    observed = mean / standard_error
    above, below = int((t >= observed).sum()), int((t <= observed).sum())
    return (float(low), float(high)), min(1.0, 2 * (min(above, below) + 1) / (len(t) + 1))


def acceleration(samples: Sequence[Floats]) -> float:
    """The BCa acceleration of a mean of task means, from each sample's jackknife (Davison & Hinkley 1997, eq. 5.28)."""
    influences = [(sample - sample.mean()) / len(sample) / len(samples) for sample in samples]
    cubes = float(sum((u**3).sum() for u in influences))
    squares = float(sum((u**2).sum() for u in influences))
    return cubes / (6 * float(squares**1.5))


def bca(means: Floats, mean: float, a: float, *, tail: float) -> tuple[Interval, float]:
    """The bias-corrected and accelerated interval (Efron 1987) and the p-value of the interval that ends at 0.

    Args:
        means: theta* of every resample.
        mean: theta.
        a: the acceleration.
        tail: the probability left out at each end.
    """
    z0 = ndtri(_share_below(means, mean))
    z = z0 + ndtri(np.array([tail, 1 - tail]))
    low, high = np.quantile(means, ndtr(z0 + z / (1 - a * z)))
    w = ndtri(_share_below(means, 0.0)) - z0
    below = float(ndtr(w / (1 + a * w) - z0))
    return (float(low), float(high)), min(1.0, 2 * min(below, 1 - below))


def _share_below(means: Floats, value: float) -> float:
    """The share of ``means`` below ``value``, ties half, kept off 0 and 1 by half a resample."""
    share = (float((means < value).sum()) + float((means <= value).sum())) / 2 / len(means)
    return min(max(share, 0.5 / len(means)), 1 - 0.5 / len(means))
