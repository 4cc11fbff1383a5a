"""The cache keeps exactly the rows that were committed, next to each other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from servingbench.decoding.cache import KVCache
from servingbench.errors import UserError

LAYERS, HEADS, SIZE = 3, 2, 4


def rows_of(start: int, count: int, layer: int) -> torch.Tensor:
    """Rows that tell their layer and number, (1, heads, count, size)."""
    numbers = torch.arange(start, start + count).float() + 1000 * layer
    return numbers.view(1, 1, -1, 1).expand(1, HEADS, count, SIZE)


def write(cache: KVCache, start: int, count: int) -> None:
    for layer in range(LAYERS):
        keys, values = cache.update(rows_of(start, count, layer), -rows_of(start, count, layer), layer)
        assert keys.shape == values.shape == (1, HEADS, cache.length + count, SIZE)


def held(cache: KVCache, layer: int) -> list[int]:
    keys, values = cache.update(torch.zeros(1, HEADS, 1, SIZE), torch.zeros(1, HEADS, 1, SIZE), layer)
    assert (keys[:, :, :-1] == -values[:, :, :-1]).all()
    assert (keys == keys[:, :1, :, :1]).all()
    return [int(number) - 1000 * layer for number in keys[0, 0, :-1, 0]]


forwards = st.lists(
    st.integers(1, 6).flatmap(lambda count: st.tuples(st.just(count), st.sets(st.integers(0, count - 1)))), max_size=6
)


@settings(max_examples=60, deadline=None)
@given(forwards=forwards)
def test_committed_rows_stay_in_order_and_the_others_go(forwards):
    cache = KVCache(layers=LAYERS, capacity=64)
    expected: list[int] = []
    number = 0
    for count, kept in forwards:
        write(cache, number, count)
        cache.commit(sorted(kept))
        expected += [number + row for row in sorted(kept)]
        number += count
        assert cache.get_seq_length() == cache.get_query_offset(0) == len(expected)
        for layer in range(LAYERS):
            assert held(cache, layer) == expected


def test_mask_sizes_answer_counts_and_positions():
    cache = KVCache(layers=1, capacity=8)
    cache.length = 3
    assert cache.get_mask_sizes(2, 0) == (5, 0)  # transformers 5
    assert cache.get_mask_sizes(torch.arange(3, 5), 0) == (5, 0)  # transformers 4


def test_layers_of_different_shapes_are_refused():
    cache = KVCache(layers=2, capacity=8)
    cache.update(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4), 0)
    with pytest.raises(UserError, match="different shapes"):
        cache.update(torch.zeros(1, 2, 1, 8), torch.zeros(1, 2, 1, 8), 1)
