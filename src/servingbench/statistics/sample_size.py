"""How many prompts would resolve an observed difference."""

from __future__ import annotations

from math import floor


def n_to_resolve(mean: float, interval: tuple[float, float], *, n: int) -> int | None:
    """The number of prompts with which this interval would just exclude 0, if difference and spread stayed.

    An interval narrows with the square root of n, so the arm that reaches from ``mean`` towards 0, of length h, must
    shrink to |mean|: m = n (h / mean)^2, and the next whole number. It is more than ``n`` exactly where the interval
    holds 0, and at most ``n`` where it does not. No allowance for power, nor for the heavier tails of few prompts.

    Args:
        mean: the observed difference, a mean of log ratios.
        interval: its interval with ``n`` prompts.
        n: prompts, all tasks together.

    Returns:
        None where the difference is exactly 0: no number of prompts would resolve it.
    """
    if mean == 0:
        return None
    arm = mean - interval[0] if mean > 0 else interval[1] - mean
    return floor(n * (arm / mean) ** 2) + 1
