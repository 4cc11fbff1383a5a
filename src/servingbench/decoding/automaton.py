"""An online suffix automaton with occurrence counts, compiled by numba.

The states of the automaton (Blumer et al., 1985) are the classes of substrings of a text that end at the same places;
it grows by one token in amortised constant time. Each state carries what drafting asks for: how often its strings
occurred (capped), what followed their latest occurrence, and the link to its longest suffix that occurred elsewhere
too. The suffix links from the current state visit every context that has been seen before, longest first.

All of it lives in four int32 arrays, which every kernel takes in this order:

``meta``    counters, indexed by the ``M_`` constants;
``states``  (capacity, 5): length of the longest string, link, first edge, count, last continuation;
``edges``   (capacity, 4): token, target, next edge of the same source, source;
``table``   hash table of edge numbers + 1, open addressing, a power of two.

``automaton_reference.py`` says the same in plain Python, and is what the tests compare with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servingbench.decoding.jit import Ints, compiled

M_STATES, M_EDGES, M_LAST, M_TOKENS = range(4)
LENGTH, LINK, EDGES, COUNT, LAST = range(5)
TOKEN, TARGET, NEXT, SOURCE = range(4)
ROOT = 0
NONE = -1
COUNT_CAP = 64
STATES_PER_TOKEN, EDGES_PER_TOKEN = 2, 3  # the bounds of the theory


@compiled
def _slot(state: int, token: int, mask: int) -> int:
    key = (np.uint64(state) * np.uint64(0x9E3779B97F4A7C15)) ^ (np.uint64(token) * np.uint64(0xC2B2AE3D27D4EB4F))
    return int(np.int64((key ^ (key >> np.uint64(29))) & np.uint64(mask)))


@compiled
def find_edge(edges: Ints, table: Ints, state: int, token: int) -> int:
    """The edge of a state that carries a token, or ``NONE``."""
    mask = table.size - 1
    slot = _slot(state, token, mask)
    while True:
        edge = table[slot] - 1
        if edge < 0:
            return NONE
        if edges[edge, SOURCE] == state and edges[edge, TOKEN] == token:
            return int(edge)
        slot = (slot + 1) & mask


@compiled
def _add_edge(meta: Ints, states: Ints, edges: Ints, table: Ints, state: int, token: int, target: int) -> None:
    edge = meta[M_EDGES]
    meta[M_EDGES] = edge + 1
    edges[edge, TOKEN] = token
    edges[edge, TARGET] = target
    edges[edge, NEXT] = states[state, EDGES]
    edges[edge, SOURCE] = state
    states[state, EDGES] = edge
    mask = table.size - 1
    slot = _slot(state, token, mask)
    while table[slot] != 0:
        slot = (slot + 1) & mask
    table[slot] = edge + 1


@compiled
def _add_state(meta: Ints, states: Ints, length: int) -> int:
    state = int(meta[M_STATES])
    meta[M_STATES] = state + 1
    states[state, LENGTH] = length
    states[state, LINK] = NONE
    states[state, EDGES] = NONE
    states[state, COUNT] = 0
    states[state, LAST] = NONE
    return state


@compiled
def _split(meta: Ints, states: Ints, edges: Ints, table: Ints, parent: int, token: int, target: int) -> int:
    """Clone ``target`` for the strings that also end where ``parent`` + token does now; redirect to the clone."""
    clone = _add_state(meta, states, states[parent, LENGTH] + 1)
    states[clone, LINK] = states[target, LINK]
    states[clone, COUNT] = states[target, COUNT]
    states[clone, LAST] = states[target, LAST]
    edge = states[target, EDGES]
    while edge != NONE:
        _add_edge(meta, states, edges, table, clone, edges[edge, TOKEN], edges[edge, TARGET])
        edge = edges[edge, NEXT]
    states[target, LINK] = clone
    while parent != NONE:
        edge = find_edge(edges, table, parent, token)
        if edge == NONE or edges[edge, TARGET] != target:
            break
        edges[edge, TARGET] = clone
        parent = states[parent, LINK]
    return clone


@compiled
def _append(meta: Ints, states: Ints, edges: Ints, table: Ints, token: int) -> None:
    last = meta[M_LAST]

    # What followed each context, longest first. A capped state that already knows this token ends the walk: so do its
    # suffixes or, seen that often, they hardly care; without this a text that loops would walk its whole length.
    state = last
    while state > ROOT:
        if states[state, LAST] == token and states[state, COUNT] >= COUNT_CAP:
            break
        states[state, LAST] = token
        state = states[state, LINK]

    edge = find_edge(edges, table, last, token)
    if edge != NONE:  # only right after a new text begins: its first tokens may be known already
        new = edges[edge, TARGET]
        if states[new, LENGTH] != states[last, LENGTH] + 1:
            new = _split(meta, states, edges, table, last, token, new)
    else:
        new = _add_state(meta, states, states[last, LENGTH] + 1)
        state = last
        while state != NONE:
            edge = find_edge(edges, table, state, token)
            if edge != NONE:
                break
            _add_edge(meta, states, edges, table, state, token, new)
            state = states[state, LINK]
        if state == NONE:
            states[new, LINK] = ROOT
        else:
            target = edges[edge, TARGET]
            if states[target, LENGTH] != states[state, LENGTH] + 1:
                target = _split(meta, states, edges, table, state, token, target)
            states[new, LINK] = target
    meta[M_LAST] = new
    meta[M_TOKENS] += 1

    # Every suffix occurred once more; counts grow towards the root, so the first capped one ends the walk.
    state = new
    while state > ROOT and states[state, COUNT] < COUNT_CAP:
        states[state, COUNT] += 1
        state = states[state, LINK]


@compiled
def append_all(meta: Ints, states: Ints, edges: Ints, table: Ints, tokens: Ints) -> None:
    """Grow the text; the arrays must have room (see :meth:`Automaton.reserve`)."""
    for token in tokens:
        _append(meta, states, edges, table, token)


@compiled
def rehash(meta: Ints, edges: Ints, table: Ints) -> None:
    """Fill an empty hash table with every edge."""
    mask = table.size - 1
    for edge in range(meta[M_EDGES]):
        slot = _slot(edges[edge, SOURCE], edges[edge, TOKEN], mask)
        while table[slot] != 0:
            slot = (slot + 1) & mask
        table[slot] = edge + 1


@compiled
def step(states: Ints, edges: Ints, table: Ints, state: int, length: int, token: int) -> tuple[int, int]:
    """Follow a token from a matched context: the state and length of the longest suffix that is in the text."""
    while True:
        edge = find_edge(edges, table, state, token)
        if edge != NONE:
            return int(edges[edge, TARGET]), length + 1
        if state == ROOT:
            return ROOT, 0
        state = states[state, LINK]
        length = states[state, LENGTH]


@compiled
def match(states: Ints, edges: Ints, table: Ints, state: int, length: int, tokens: Ints) -> tuple[int, int]:
    """Follow several tokens."""
    for token in tokens:
        state, length = step(states, edges, table, state, length, token)
    return state, length


class Automaton:
    """The four arrays, grown as needed.

    Args:
        tokens: room to start with.
    """

    def __init__(self, *, tokens: int = 256) -> None:
        self.meta = np.zeros(4, np.int32)
        self.states = np.empty((0, 5), np.int32)
        self.edges = np.empty((0, 4), np.int32)
        self.table = np.zeros(2, np.int32)
        self._reserve(states=tokens * STATES_PER_TOKEN, edges=tokens * EDGES_PER_TOKEN)
        self.clear()

    def __len__(self) -> int:
        return int(self.meta[M_TOKENS])

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.states.nbytes + self.edges.nbytes + self.table.nbytes

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """States, edges and hash table, as the kernels take them."""
        return self.states, self.edges, self.table

    def clear(self) -> None:
        """Forget the text; keep the room."""
        self.meta[:] = 0
        self.table[:] = 0
        self.states[ROOT] = (0, NONE, NONE, 0, NONE)
        self.meta[M_STATES] = 1

    def begin(self) -> None:
        """Begin another text in the same automaton."""
        self.meta[M_LAST] = ROOT

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens to the current text."""
        # One token adds two states at most, but any number of edges: for these only the bound on the whole text holds.
        self._reserve(
            states=int(self.meta[M_STATES]) + STATES_PER_TOKEN * len(tokens),
            edges=EDGES_PER_TOKEN * (len(self) + len(tokens)),
        )
        append_all(self.meta, self.states, self.edges, self.table, np.asarray(tokens, np.int32))

    def context(self) -> tuple[int, int]:
        """State and length of the longest suffix of the text that occurs in it earlier."""
        state = max(int(self.states[self.meta[M_LAST], LINK]), ROOT)
        return state, int(self.states[state, LENGTH])

    def _reserve(self, *, states: int, edges: int) -> None:
        if states >= len(self.states):
            self.states = _grown(self.states, states)
        if edges >= len(self.edges):
            self.edges = _grown(self.edges, edges)
            size = 1 << (len(self.edges) * 4 // 3).bit_length()
            if size > self.table.size:
                self.table = np.zeros(size, np.int32)
                rehash(self.meta, self.edges, self.table)


def _grown(array: Ints, rows: int) -> Ints:
    grown = np.empty((max(rows + 1, len(array) * 3 // 2), array.shape[1]), np.int32)
    grown[: len(array)] = array
    return grown
