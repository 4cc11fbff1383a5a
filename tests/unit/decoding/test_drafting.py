"""Blended probabilities, the best-first search and the size of a draft, against plain Python."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from servingbench.decoding.automaton import parts
from servingbench.decoding.automaton_reference import ReferenceIndex, best_first, blended
from servingbench.decoding.drafting import MIN_WEIGHT, SLOTS, best_size, predict
from servingbench.decoding.drafts.suffix import ALL_ORDERS, ALPHAS, SuffixDrafter
from servingbench.decoding.drafts.suffix_published import published
from servingbench.errors import UserError

VOCABULARY = 5
tokens = st.integers(0, VOCABULARY - 1)
texts = st.lists(tokens, min_size=1, max_size=30)
sources = st.sampled_from(["local", "global", "both"])
static_tables = st.none() | st.integers(0, 1000).map(
    lambda seed: (
        np.random.default_rng(seed).integers(0, VOCABULARY, (VOCABULARY, 3)).astype(np.int32),
        np.random.default_rng(seed).random((VOCABULARY, 3)).astype(np.float32) / 3,
    )
)


def reference_predictor(drafter: SuffixDrafter, source, responses, text, table, *, alphas, rec, max_orders):
    local = ReferenceIndex(texts=[list(text)]) if source != "global" else None
    shared = ReferenceIndex(texts=[list(response) for response in responses]) if source != "local" else None
    rows = {}
    if table is not None:
        for previous in range(VOCABULARY):
            row = rows.setdefault(previous, {})
            for token, prob in zip(table[0][previous].tolist(), table[1][previous].tolist(), strict=True):
                row[token] = row.get(token, 0.0) + prob
    return lambda path: blended(
        local, shared, text, path, alphas=alphas, rec=rec, max_orders=max_orders, min_weight=MIN_WEIGHT,
        recent_share=0.4, recent_decay=0.98, table=rows,
    )  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(
    text=texts,
    responses=st.lists(texts, min_size=1, max_size=2),
    source=sources,
    table=static_tables,
    rec=st.sampled_from([0.0, 1.0, 2.5]),
    alphas=st.sampled_from([ALPHAS, (0.0,), (3.0, 0.25)]),
    max_orders=st.sampled_from([1, 2, ALL_ORDERS]),
    split=st.integers(1, 30),
)
def test_predicted_probabilities_are_the_formula(text, responses, source, table, rec, alphas, max_orders, split):
    drafter = SuffixDrafter(source=source, rec=rec, alphas=alphas, max_orders=max_orders, static_table=table)
    for response in responses:
        drafter.observe([0], response)
    drafter.start(text[:split])
    if text[split:]:
        drafter.extend(text[split:])
    found_tokens, found_probs = np.empty(128, np.int32), np.empty(128)
    local, shared = (parts(index.data)[1:3] for index in (drafter.local, drafter.shared))
    start = 7  # candidates of other nodes lie before
    end = predict(
        local, shared, drafter._context[None], 0, drafter._recent, *drafter._table, drafter._params,
        np.empty(8, np.int32), np.empty(8, np.int32), found_tokens, found_probs, np.full(SLOTS, 3, np.int32), start,
    )  # fmt: skip
    expected = reference_predictor(
        drafter, source, responses, text, table, alphas=alphas, rec=rec, max_orders=max_orders
    )(())
    assert dict(zip(found_tokens[start:end].tolist(), found_probs[start:end].tolist(), strict=True)) == pytest.approx(
        expected
    )
    assert sum(expected.values()) <= 1 + 1e-9


@settings(max_examples=80, deadline=None)
@given(
    text=texts,
    responses=st.lists(texts, min_size=1, max_size=2),
    source=sources,
    width=st.integers(1, 5),
    nodes=st.integers(1, 12),
    depth=st.integers(1, 6),
    min_prob=st.sampled_from([0.0, 0.1, 0.4]),
)
def test_drafts_are_the_most_probable_ones(text, responses, source, width, nodes, depth, min_prob):
    drafter = SuffixDrafter(source=source, width=width, num_tokens=nodes, min_prob=min_prob, eagerness=1.0)
    for response in responses:
        drafter.observe([0], response)
    drafter.start(text)
    draft = drafter.propose(max_depth=depth)
    predictor = reference_predictor(
        drafter, source, responses, text, None, alphas=ALPHAS, rec=1.0, max_orders=ALL_ORDERS
    )
    ties = []

    def watched(path):
        found = predictor(path)
        ranked = sorted(found.values(), reverse=True)
        ties.append(len(ranked) > width and ranked[width - 1] - ranked[width] < 1e-9)
        return found

    expected = best_first(watched, nodes=nodes, depth=depth, width=width, min_prob=min_prob)
    assume(not any(ties))  # which of two equals is the last child that fits decides what comes below it
    assert (draft is None) == (not expected)
    if draft is None:
        return
    paths = []
    for node, parent in enumerate(draft.parents):
        assert parent < node
        paths.append((*(paths[parent] if parent >= 0 else ()), draft.tokens[node]))
    assert len(set(paths)) == len(paths) == len(expected) <= nodes
    assert draft.depths == [len(path) for path in paths]
    assert draft.is_path == (draft.parents == list(range(-1, len(paths) - 1)))
    # Equally probable candidates may leave either heap first, but never one that is less probable.
    assert drafter._probs[: len(paths)] == pytest.approx([prob for _, prob in expected])
    for parent in {*draft.parents}:
        assert draft.parents.count(parent) <= width


def test_a_path_copies_what_followed_the_longest_match():
    drafter = SuffixDrafter(width=1, num_tokens=4)
    drafter.start([1, 2, 3, 4, 5, 6, 9, 2, 3])
    assert drafter.propose(max_depth=10).tokens == [4, 5, 6, 9]
    assert drafter.propose(max_depth=2).tokens == [4, 5]


def test_the_published_tree_follows_relative_counts_of_the_longest_match():
    drafter = published(branch_factor=2, num_tokens=3, min_prob=0.3)
    # After 1 2 came 3, 3 and 4; deeper nodes are certain.
    drafter.start([1, 2, 3, 7, 1, 2, 3, 7, 1, 2, 4, 8, 1, 2])
    draft = drafter.propose(max_depth=10)
    assert list(zip(draft.tokens, draft.parents, strict=True)) == [(3, -1), (7, 0), (1, 1)]
    assert drafter._probs[:3].tolist() == pytest.approx([2 / 3] * 3)
    wide = published(branch_factor=2, num_tokens=8, min_prob=0.3)
    wide.start([1, 2, 3, 7, 1, 2, 3, 7, 1, 2, 4, 8, 1, 2])
    assert 4 in wide.propose(max_depth=1).tokens
    strict = published(branch_factor=2, num_tokens=8, min_prob=0.4)
    strict.start([1, 2, 3, 7, 1, 2, 3, 7, 1, 2, 4, 8, 1, 2])
    assert strict.propose(max_depth=1).tokens == [3]


@settings(max_examples=100, deadline=None)
@given(
    probs=st.lists(st.floats(0, 1), max_size=12).map(lambda found: sorted(found, reverse=True)),
    steps=st.lists(st.floats(0, 1), min_size=12, max_size=12),
    factor=st.floats(0.1, 1),
)
def test_the_size_maximises_expected_tokens_per_time(probs, steps, factor):
    costs = np.cumsum([0.0, 1.0, *steps])
    rates = [(1 + factor * sum(probs[:n])) / costs[1 + n] for n in range(len(probs) + 1)]
    size = best_size(np.asarray(probs, float), len(probs), costs, factor)
    assert rates[size] == pytest.approx(max(rates))


def test_the_size_follows_the_price_list():
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2]
    drafter = SuffixDrafter(width=1, num_tokens="cost", max_tokens=6)
    drafter.costs = np.ones(8)  # extra rows are free
    drafter.start(text)
    assert len(drafter.propose(max_depth=10).tokens) == 6
    drafter.costs = np.arange(8, dtype=float)  # a row costs as much as a token
    assert drafter.propose(max_depth=10) is None


def test_sources_see_what_they_should():
    response, prompt = [5, 6, 7, 8], [1, 5, 2, 1]
    seen = {}
    for source in ("local", "global", "both"):
        drafter = SuffixDrafter(source=source, num_tokens=3, width=2, recent_share=0.0)
        drafter.observe([9], response)
        drafter.start(prompt)
        draft = drafter.propose(max_depth=1)
        drafter.extend([5])
        seen[source] = (draft.tokens if draft else []), drafter.propose(max_depth=1).tokens
    assert seen == {"local": ([5], [2]), "global": ([], [6]), "both": ([5], [2, 6])}


def test_old_responses_are_forgotten_oldest_first():
    drafter = SuffixDrafter(source="global", num_tokens=1, shared_tokens=40)
    for number in range(30):
        drafter.observe([0], [100 + number, 200 + number, 300 + number])
        assert len(drafter.shared) <= 40
    drafter.start([129])
    assert drafter.propose(max_depth=1).tokens == [229]
    drafter.start([100])
    assert drafter.propose(max_depth=1) is None
    drafter.observe([0], list(range(1000)))  # longer than the bound: its end is kept
    assert len(drafter.shared) <= 40
    drafter.start([998])
    assert drafter.propose(max_depth=1).tokens == [999]


def test_warming_up_leaves_no_trace():
    drafter = SuffixDrafter(source="both")
    drafter.warm_up()
    assert len(drafter.shared) == len(drafter.local) == 0


def test_warming_up_compiles_everything_that_a_run_calls():
    """In a fresh process: what another test has compiled would hide what is missing."""
    code = """
from numba.core.dispatcher import Dispatcher
from servingbench.decoding import automaton, drafting
from servingbench.decoding.drafts.suffix import SuffixDrafter

drafter = SuffixDrafter(source="both", width=4, num_tokens=8)
drafter.warm_up()
kernels = {f for module in (automaton, drafting) for f in vars(module).values() if isinstance(f, Dispatcher)}
compiled = {f.__name__: len(f.signatures) for f in kernels}
text = list(range(100)) * 10
for _ in range(2):
    drafter.start(text)
    drafter.extend(text)
    drafter.propose(max_depth=5)
    drafter.observe([0], text)
late = [f.__name__ for f in kernels if len(f.signatures) > compiled[f.__name__]]
assert kernels and not late, late
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_source_is_refused():
    with pytest.raises(UserError, match="unknown source"):
        SuffixDrafter(source="elsewhere")
