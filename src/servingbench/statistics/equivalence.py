"""The verdict on two revisions: are they equally fast?"""

from __future__ import annotations

from typing import Literal

Verdict = Literal["equivalent", "regression", "improvement", "undecided"]

CONFIDENCE = 0.90
"""Of the interval to judge: two one-sided tests at 5% (Schuirmann 1987)."""
LOWER, UPPER = 0.97, 1.03
"""The margins of equivalence, as ratios of speed."""


def verdict(interval: tuple[float, float] | None, *, lower: float = LOWER, upper: float = UPPER) -> Verdict:
    """Judge the 90% interval of a speed ratio (new over old).

    Args:
        interval: the interval as ratios, ends included; None where there are too few prompts.
        lower: the smallest ratio that still counts as equal.
        upper: the largest one.

    Returns:
        ``equivalent`` where the interval lies inside [lower, upper], ``regression`` where it lies below ``lower``,
        ``improvement`` where it lies above ``upper``, else ``undecided``.
    """
    if interval is None:
        return "undecided"
    low, high = interval
    if high < lower:
        return "regression"
    if low > upper:
        return "improvement"
    return "equivalent" if lower <= low and high <= upper else "undecided"
