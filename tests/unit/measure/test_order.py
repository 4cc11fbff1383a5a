"""The arms' order is balanced in place and in predecessor."""

from collections import Counter
from itertools import pairwise

import pytest

from servingbench.measure.order import arm_order, williams_square


@pytest.mark.parametrize("arms", range(1, 13))
def test_every_arm_takes_every_place_equally_often(arms):
    rows = williams_square(arms)
    places = Counter((place, arm) for row in rows for place, arm in enumerate(row))
    assert set(places) == {(place, arm) for place in range(arms) for arm in range(arms)}
    assert set(places.values()) == {len(rows) // arms}


@pytest.mark.parametrize("arms", range(2, 13))
def test_every_arm_follows_every_other_equally_often(arms):
    rows = williams_square(arms)
    pairs = Counter(pair for row in rows for pair in pairwise(row))
    assert set(pairs) == {(a, b) for a in range(arms) for b in range(arms) if a != b}
    assert set(pairs.values()) == {len(rows) // arms}


@pytest.mark.parametrize("arms", [3, 5, 7])
def test_places_are_balanced_after_half_of_an_odd_design(arms):
    half = williams_square(arms)[:arms]
    assert all({row[place] for row in half} == set(range(arms)) for place in range(arms))


@pytest.mark.parametrize("arms", [4, 5])
def test_consecutive_blocks_are_balanced_from_any_start(arms):
    names = [f"m{arm}" for arm in range(arms)]
    period = len(williams_square(arms))
    for start in (0, 3):
        places = Counter(
            (place, name)
            for block in range(start, start + period)
            for place, name in enumerate(arm_order(names, block=block))
        )
        assert set(places.values()) == {period // arms}
        assert len(places) == arms * arms


def test_one_arm_and_the_first_block():
    assert arm_order(["only"], block=7) == ["only"]
    assert arm_order(["a", "b"], block=0) == ["a", "b"]
    assert arm_order(["a", "b"], block=1) == ["b", "a"]
