"""The verdict on two revisions."""

from __future__ import annotations

import pytest

from servingbench.statistics.equivalence import verdict


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((0.98, 1.02), "equivalent"),
        ((0.97, 1.03), "equivalent"),
        ((0.90, 0.96), "regression"),
        ((0.90, 0.97), "undecided"),
        ((0.96, 1.00), "undecided"),
        ((1.00, 1.04), "undecided"),
        ((0.90, 1.10), "undecided"),
        ((1.04, 1.10), "improvement"),
        (None, "undecided"),
    ],
)
def test_verdict(interval, expected):
    assert verdict(interval) == expected


def test_other_margins():
    assert verdict((0.94, 1.04), lower=0.9, upper=1.1) == "equivalent"
