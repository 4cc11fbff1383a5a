"""Prompts that would resolve a difference."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from servingbench.statistics.sample_size import n_to_resolve


@pytest.mark.parametrize(
    ("mean", "sd", "tasks"), [(0.1, 0.5, 1), (-0.1, 0.5, 1), (0.02, 0.3, 6), (0.2, 0.3, 6), (1.0, 0.1, 3)]
)
def test_it_is_the_smallest_number_that_excludes_zero(mean, sd, tasks):
    m = n_to_resolve(mean, sd / math.sqrt(24), n=24, tasks=tasks, confidence=0.95)

    def half_width(prompts):
        return stats.t.ppf(0.975, prompts - tasks) * sd / math.sqrt(prompts)

    assert half_width(m) < abs(mean)
    assert m == 2 * tasks or half_width(m - 1) >= abs(mean)


def test_a_large_number_is_the_normal_approximation():
    assert n_to_resolve(1e-9, 1.0, n=4, tasks=1, confidence=0.95) == pytest.approx((1.959964 * 2 / 1e-9) ** 2, rel=1e-6)


def test_no_difference_is_never_resolved():
    assert n_to_resolve(0.0, 0.1, n=24, tasks=6, confidence=0.95) is None
