"""Holm's step-down adjustment for several comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: the running maximum of (m - rank) p over the ordered p, at most 1.

    Source: Holm, Scandinavian Journal of Statistics 6 (1979) 65-70; rank counts from 0 at the smallest p.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]))
    return [float(value) for value in adjusted]
