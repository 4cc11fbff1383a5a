"""The compiled suffix automaton against the definitions, on random texts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingbench.decoding.automaton import (
    COUNT,
    COUNT_CAP,
    H_EDGES,
    H_STATE_ROOM,
    LAST,
    NONE,
    ROOT,
    Automaton,
    match,
    parts,
)
from servingbench.decoding.automaton_reference import ReferenceIndex

texts_of = st.integers(1, 4).flatmap(
    lambda tokens: st.lists(st.lists(st.integers(0, tokens - 1), min_size=1, max_size=24), min_size=1, max_size=3)
)


def find(automaton: Automaton, tokens) -> tuple[int, int]:
    return match(automaton.data, ROOT, 0, np.asarray(tokens, np.int32))


def both(texts, chunk: int) -> tuple[Automaton, ReferenceIndex]:
    automaton, reference = Automaton(tokens=1), ReferenceIndex()
    for number, text in enumerate(texts):
        for index in (automaton, reference):
            if number:
                index.begin()
            for start in range(0, len(text), chunk):
                index.extend(text[start : start + chunk])
    return automaton, reference


def substrings(text):
    return [tuple(text[i:j]) for i in range(len(text)) for j in range(i + 1, len(text) + 1)]


@settings(max_examples=80, deadline=None)
@given(texts=texts_of, chunk=st.integers(1, 7))
def test_every_substring_is_found_with_its_count_and_latest_continuation(texts, chunk):
    automaton, reference = both(texts, chunk)
    for context in {context for text in texts for context in substrings(text)}:
        state, length = find(automaton, context)
        assert length == len(context)
        assert automaton.states[state, COUNT] == reference.count(context)
        last = reference.last(context)
        assert automaton.states[state, LAST] == (NONE if last is None else last)


@settings(max_examples=80, deadline=None)
@given(texts=texts_of, query=st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_an_unknown_text_is_matched_by_its_longest_known_suffix(texts, query):
    automaton, reference = both(texts, 5)
    _, length = find(automaton, query)
    assert length == reference.longest(query, earlier=False)


@settings(max_examples=80, deadline=None)
@given(text=st.lists(st.integers(0, 2), min_size=1, max_size=40))
def test_context_is_the_longest_suffix_that_occurred_before(text):
    automaton, reference = both([text], 3)
    state, length = automaton.context()
    assert length == reference.longest(text, earlier=True)
    if length:
        assert automaton.states[state, COUNT] == reference.count(tuple(text[-length:]))


def test_growing_token_by_token_is_growing_at_once():
    text = np.random.default_rng(0).integers(0, 9, 400).tolist()
    at_once, by_token = both([text], 400)[0], both([text], 1)[0]
    for whole, grown in zip(parts(at_once.data), parts(by_token.data), strict=True):
        used = {8: len(at_once.states), 4: at_once.data[H_EDGES]}.get(whole.shape[-1] if whole.ndim == 2 else 0)
        assert used is None or (whole[:used, :7] == grown[:used, :7]).all()
    assert (at_once.data[:H_STATE_ROOM] == by_token.data[:H_STATE_ROOM]).all()


def test_counts_stop_at_the_cap_and_a_looping_text_stays_cheap():
    automaton = Automaton()
    automaton.extend([7] * 3000)
    assert automaton.states[find(automaton, [7])[0], COUNT] == COUNT_CAP
    # A string of k sevens occurs 3001 - k times: the counts of the long ones are exact.
    for occurrences in (1, 5, COUNT_CAP - 1):
        assert automaton.states[find(automaton, [7] * (3001 - occurrences))[0], COUNT] == occurrences


def test_clearing_forgets_the_text_and_keeps_the_room():
    automaton = Automaton()
    automaton.extend([1, 2, 3, 1, 2])
    held = automaton.nbytes
    automaton.clear()
    assert len(automaton) == 0
    assert find(automaton, [1]) == (ROOT, 0)
    automaton.extend([4, 4])
    assert find(automaton, [4, 4])[1] == 2
    assert find(automaton, [1, 2])[1] == 0
    assert automaton.nbytes == held


@pytest.mark.parametrize("tokens", [2, 50, 30_000])
def test_memory_per_token_is_bounded(tokens):
    """130 bytes per token of a 10k-token text, whatever the vocabulary."""
    automaton = Automaton(tokens=1)
    text = np.random.default_rng(1).integers(0, tokens, 10_000).tolist()
    automaton.extend(text)
    assert automaton.nbytes / len(text) <= 130


def test_tokens_at_the_edges_of_a_large_vocabulary_do_not_collide():
    edges = [0, 1, 2**16 - 1, 2**16, 2**17 + 1, 2**31 - 1]
    automaton = Automaton()
    automaton.extend(edges * 3)
    for pair in pairwise(edges):
        assert automaton.states[find(automaton, pair)[0], COUNT] == 3
