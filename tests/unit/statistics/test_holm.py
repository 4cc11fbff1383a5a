"""Holm's adjustment against hand values."""

from __future__ import annotations

import pytest

from servingbench.statistics.holm import holm


def test_hand_values():
    # ordered: 0.01 x 4 = 0.04; 0.02 x 3 = 0.06; 0.03 x 2 = 0.06; 0.04 x 1 = 0.04, lifted to 0.06
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


@pytest.mark.parametrize(
    ("p", "adjusted"), [([], []), ([0.3], [0.3]), ([0.6, 0.7], [1.0, 1.0]), ([0.01, 0.01], [0.02, 0.02])]
)
def test_edges(p, adjusted):
    assert holm(p) == pytest.approx(adjusted)
