"""An online suffix automaton with occurrence counts, compiled by numba.

The states of the automaton (Blumer et al., 1985) are the classes of substrings of a text that end at the same places;
it grows by one token in amortised constant time. Each state carries what drafting asks for: how often its strings
occurred (capped), what followed their latest occurrence, and the link to its longest suffix that occurred elsewhere
too. The suffix links from the current state visit every context that has been seen before, longest first.

All of it lives in one int32 array, for every array that a kernel is called with costs a sixth of a microsecond:

``header``  counters, indexed by the ``H_`` constants;
``states``  rows of length of the longest string, link, count, last continuation, the token and target of the first
            edge, and the number of another edge. Most states have one continuation, which then costs no hashing;
``edges``   rows of token, target, next edge of the same source, source: the second edge of a state and later ones;
``table``   hash table of edge numbers + 1, open addressing, a power of two.

``automaton_reference.py`` says the same in plain Python, and is what the tests compare with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servingbench.decoding.jit import Ints, compiled

H_STATES, H_EDGES, H_LAST, H_STATE_ROOM, H_EDGE_ROOM, H_TABLE = range(6)
HEADER = 8
LENGTH, LINK, COUNT, LAST, TOKEN, TARGET, MORE = range(7)
STATE = 8  # a cache line holds two states
E_TOKEN, E_TARGET, E_NEXT, E_SOURCE = range(4)
EDGE = 4
ROOT = 0
NONE = -1
COUNT_CAP = 64
START_TOKENS = 256  # that a new automaton has room for
STATES_PER_TOKEN, EDGES_PER_TOKEN = 2, 1  # the bounds of the theory: at most 2n states, and n edges more than states


@compiled
def parts(data: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Header, states, edges and hash table of an automaton: views of its one array."""
    states = HEADER + STATE * data[H_STATE_ROOM]
    edges = states + EDGE * data[H_EDGE_ROOM]
    return (
        data[:HEADER],
        data[HEADER:states].reshape((-1, STATE)),
        data[states:edges].reshape((-1, EDGE)),
        data[edges : edges + data[H_TABLE]],
    )


@compiled
def _slot(state: int, token: int, mask: int) -> int:
    key = (np.uint64(state) * np.uint64(0x9E3779B97F4A7C15)) ^ (np.uint64(token) * np.uint64(0xC2B2AE3D27D4EB4F))
    return int(np.int64((key ^ (key >> np.uint64(29))) & np.uint64(mask)))


@compiled
def find_edge(edges: Ints, table: Ints, state: int, token: int) -> int:
    """The edge of a state, its first one aside, that carries a token, or ``NONE``."""
    mask = table.size - 1
    slot = _slot(state, token, mask)
    while True:
        edge = table[slot] - 1
        if edge < 0:
            return NONE
        if edges[edge, E_SOURCE] == state and edges[edge, E_TOKEN] == token:
            return int(edge)
        slot = (slot + 1) & mask


@compiled
def follow(states: Ints, edges: Ints, table: Ints, state: int, token: int) -> int:
    """Where a token leads from a state, or ``NONE``."""
    if states[state, TOKEN] == token:
        return int(states[state, TARGET])
    if states[state, MORE] == NONE:
        return NONE
    edge = find_edge(edges, table, state, token)
    return NONE if edge == NONE else int(edges[edge, E_TARGET])


@compiled
def _add_edge(header: Ints, states: Ints, edges: Ints, table: Ints, state: int, token: int, target: int) -> None:
    if states[state, TARGET] == NONE:
        states[state, TOKEN] = token
        states[state, TARGET] = target
        return
    edge = header[H_EDGES]
    header[H_EDGES] = edge + 1
    edges[edge, E_TOKEN] = token
    edges[edge, E_TARGET] = target
    edges[edge, E_NEXT] = states[state, MORE]
    edges[edge, E_SOURCE] = state
    states[state, MORE] = edge
    _enter(edges, table, edge)


@compiled
def _enter(edges: Ints, table: Ints, edge: int) -> None:
    mask = table.size - 1
    slot = _slot(edges[edge, E_SOURCE], edges[edge, E_TOKEN], mask)
    while table[slot] != 0:
        slot = (slot + 1) & mask
    table[slot] = edge + 1


@compiled
def _add_state(header: Ints, states: Ints, length: int) -> int:
    state = int(header[H_STATES])
    header[H_STATES] = state + 1
    row = states[state]
    row[LENGTH] = length
    row[LINK] = NONE
    row[COUNT] = 0
    row[LAST] = NONE
    row[TOKEN] = NONE
    row[TARGET] = NONE
    row[MORE] = NONE
    return state


@compiled
def _split(header: Ints, states: Ints, edges: Ints, table: Ints, parent: int, token: int, target: int) -> int:
    """Clone ``target`` for the strings that also end where ``parent`` + token does now; redirect to the clone."""
    clone = _add_state(header, states, states[parent, LENGTH] + 1)
    for field in (LINK, COUNT, LAST, TOKEN, TARGET):
        states[clone, field] = states[target, field]
    edge = states[target, MORE]
    while edge != NONE:
        _add_edge(header, states, edges, table, clone, edges[edge, E_TOKEN], edges[edge, E_TARGET])
        edge = edges[edge, E_NEXT]
    states[target, LINK] = clone
    while parent != NONE:
        if states[parent, TOKEN] == token:
            if states[parent, TARGET] != target:
                break
            states[parent, TARGET] = clone
        else:
            edge = find_edge(edges, table, parent, token)
            if edge == NONE or edges[edge, E_TARGET] != target:
                break
            edges[edge, E_TARGET] = clone
        parent = states[parent, LINK]
    return clone


@compiled
def _continue(states: Ints, state: int, token: int) -> None:
    """Note what followed each context, longest first.

    A capped state that already knows this token ends the walk: so do its suffixes or, seen that often, they hardly
    care; without this a text that loops would walk its whole length.
    """
    while state > ROOT:
        if states[state, LAST] == token and states[state, COUNT] >= COUNT_CAP:
            break
        states[state, LAST] = token
        state = states[state, LINK]


@compiled
def _append(header: Ints, states: Ints, edges: Ints, table: Ints, token: int) -> None:
    last = int(header[H_LAST])
    target = follow(states, edges, table, last, token)
    if target != NONE:  # only right after a new text begins: its first tokens may be known already
        new = target
        if states[new, LENGTH] != states[last, LENGTH] + 1:
            new = _split(header, states, edges, table, last, token, new)
    else:
        new = _add_state(header, states, states[last, LENGTH] + 1)
        state = last
        while state != NONE:
            target = follow(states, edges, table, state, token)
            if target != NONE:
                break
            _add_edge(header, states, edges, table, state, token, new)
            state = states[state, LINK]
        if state == NONE:
            states[new, LINK] = ROOT
        else:
            if states[target, LENGTH] != states[state, LENGTH] + 1:
                target = _split(header, states, edges, table, state, token, target)
            states[new, LINK] = target
    header[H_LAST] = new


@compiled
def _count(states: Ints, state: int) -> None:
    """Every suffix occurred once more; counts grow towards the root, so the first capped one ends the walk."""
    while state > ROOT and states[state, COUNT] < COUNT_CAP:
        states[state, COUNT] += 1
        state = states[state, LINK]


@compiled
def append_all(data: Ints, tokens: Ints) -> None:
    """Grow the text; there must be room (see :meth:`Automaton.extend`)."""
    header, states, edges, table = parts(data)
    for token in tokens:
        _continue(states, header[H_LAST], token)
        _append(header, states, edges, table, token)
        _count(states, header[H_LAST])


@compiled
def step(states: Ints, edges: Ints, table: Ints, state: int, length: int, token: int) -> tuple[int, int]:
    """Follow a token from a matched context: the state and length of the longest suffix that is in the text."""
    while True:
        target = follow(states, edges, table, state, token)
        if target != NONE:
            return target, length + 1
        if state == ROOT:
            return ROOT, 0
        state = states[state, LINK]
        length = states[state, LENGTH]


@compiled
def match(data: Ints, state: int, length: int, tokens: Ints) -> tuple[int, int]:
    """Follow several tokens."""
    _, states, edges, table = parts(data)
    for token in tokens:
        state, length = step(states, edges, table, state, length, token)
    return state, length


@compiled
def context(data: Ints) -> tuple[int, int]:
    """State and length of the longest suffix of the text that occurs in it earlier."""
    header, states, _, _ = parts(data)
    state = max(states[header[H_LAST], LINK], ROOT)
    return int(state), int(states[state, LENGTH])


@compiled
def moved(old: Ints, new: Ints) -> None:
    """Copy an automaton into a larger, zeroed array whose header says its rooms."""
    header, states, edges, table = parts(new)
    from_header, from_states, from_edges, _ = parts(old)
    for counter in (H_STATES, H_EDGES, H_LAST):
        header[counter] = from_header[counter]
    states[: header[H_STATES]] = from_states[: header[H_STATES]]
    edges[: header[H_EDGES]] = from_edges[: header[H_EDGES]]
    for edge in range(header[H_EDGES]):
        _enter(edges, table, edge)


class Automaton:
    """One automaton, grown as needed.

    Args:
        tokens: room to start with.
    """

    def __init__(self, *, tokens: int = START_TOKENS) -> None:
        self.data = _allocated(tokens)
        self._tokens, self._room = 0, tokens
        self.clear()

    def __len__(self) -> int:
        return self._tokens

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.data.nbytes

    @property
    def states(self) -> Ints:
        """The states' rows."""
        return parts(self.data)[1][: self.data[H_STATES]]

    def clear(self) -> None:
        """Forget the text; keep the room."""
        header, states, _, table = parts(self.data)
        header[[H_STATES, H_EDGES, H_LAST]] = 1, 0, ROOT
        states[ROOT] = NONE
        states[ROOT, LENGTH] = states[ROOT, COUNT] = 0
        table[:] = 0
        self._tokens = 0

    def begin(self) -> None:
        """Begin another text in the same automaton."""
        self.data[H_LAST] = ROOT

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens to the current text."""
        self.reserve(len(tokens))
        append_all(self.data, np.asarray(tokens, np.int32))

    def reserve(self, tokens: int) -> None:
        """Make room for more tokens, and count them as held."""
        self._tokens += tokens
        if self._tokens > self._room:
            self._room = max(self._tokens, self._room * 3 // 2)
            grown = _allocated(self._room)
            moved(self.data, grown)
            self.data = grown

    def context(self) -> tuple[int, int]:
        """See :func:`context`."""
        return context(self.data)


def _allocated(tokens: int) -> Ints:
    states, edges = STATES_PER_TOKEN * tokens + 2, EDGES_PER_TOKEN * tokens + 1
    table = 1 << (edges * 4 // 3).bit_length()
    data = np.zeros(HEADER + STATE * states + EDGE * edges + table, np.int32)
    data[[H_STATE_ROOM, H_EDGE_ROOM, H_TABLE]] = states, edges, table
    return data
