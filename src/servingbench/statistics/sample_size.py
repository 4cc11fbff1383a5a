"""How many prompts would resolve an observed difference."""

from __future__ import annotations

from math import ceil, sqrt

from scipy.special import ndtri, stdtrit

NORMAL = 10**6
"""Prompts from which Student's t is the normal distribution to every digit that matters."""


def n_to_resolve(mean: float, standard_error: float, *, n: int, tasks: int, confidence: float) -> int | None:
    """The smallest number of prompts whose Student-t interval would exclude 0 if the difference and the spread stayed.

    Solves t(1 - (1 - confidence)/2; m - tasks) * se * sqrt(n/m) < |mean| for m, tasks keeping their shares of the
    prompts. No allowance for power: it says where the observed difference would cease to be noise, so it stands at or
    below ``n`` where the interval already excludes 0 (up to the difference between Student's and the bootstrap's t).

    Args:
        mean: the observed difference, a mean of log ratios.
        standard_error: its standard error with ``n`` prompts.
        n: prompts, all tasks together.
        tasks: tasks.
        confidence: of the interval.

    Returns:
        None where the difference is exactly 0: no number of prompts would resolve it.
    """
    if mean == 0:
        return None
    upper = (1 + confidence) / 2
    scale = standard_error * sqrt(n) / abs(mean)
    m = max(2 * tasks, ceil((float(ndtri(upper)) * scale) ** 2))
    while m < NORMAL and float(stdtrit(m - tasks, upper)) * scale >= sqrt(m):
        m += 1
    return m
