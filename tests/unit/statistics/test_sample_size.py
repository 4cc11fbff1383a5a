"""Prompts that would resolve a difference."""

from __future__ import annotations

import pytest

from servingbench.statistics.sample_size import n_to_resolve


@pytest.mark.parametrize(
    ("mean", "interval", "expected"),
    [(0.1, (-0.1, 0.2), 49), (-0.1, (-0.5, 0.1), 49), (0.2, (0.1, 0.9), 4), (0.1, (0.0, 0.2), 13)],
)
def test_by_hand(mean: float, interval: tuple[float, float], expected: int) -> None:
    assert n_to_resolve(mean, interval, n=12) == expected


@pytest.mark.parametrize("low", [-0.3, -0.01, 0.01, 0.05])
def test_it_exceeds_n_exactly_where_the_interval_holds_zero(low: float) -> None:
    needed = n_to_resolve(0.1, (low, 0.4), n=12)
    assert needed is not None
    assert (needed > 12) == (low <= 0)


def test_no_difference_is_never_resolved() -> None:
    assert n_to_resolve(0.0, (-0.1, 0.1), n=24) is None
