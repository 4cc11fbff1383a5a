"""Draft trees from suffix automata: blended next-token probabilities and a best-first search, compiled by numba.

**Probability.** The contexts seen before are visited from the longest to the shortest, those of the text itself and
those of earlier responses merged by length. Each order L with N counted continuations has its say by

    P(x) <- (c(x) + rec * [x = last continuation] + alpha_L * P(x)) / (N + rec + alpha_L)

over what the shorter orders say, down to a static table of next tokens. Unrolled from the longest order this is a sum
whose remaining weight shrinks by alpha_L / (N + rec + alpha_L), so the walk can stop as soon as nothing is left to say.
With one order, rec = 0 and alpha = 0 it is the published rule: the longest match alone.

**Draft.** Nodes leave a heap in order of path probability, at most ``width`` children per node: width 1 is a path.
**Size.** Fixed, or the n that maximises (1 + f * sum of the n best path probabilities) / C(1 + n), where C is the time
of a forward over that many rows and f < 1 corrects for steps starting where prediction has just failed.
"""

from __future__ import annotations

import numpy as np

from servingbench.decoding.automaton import (
    COUNT,
    EDGES,
    LAST,
    LENGTH,
    LINK,
    NEXT,
    NONE,
    TARGET,
    TOKEN,
    step,
)
from servingbench.decoding.jit import Floats, Ints, compiled

Arrays = tuple[Ints, Ints, Ints]  # states, edges, table of one automaton

MAX_EDGES = 64  # continuations of one context that are looked at, newest first
MAX_CANDIDATES = 128
MIN_WEIGHT = 1e-3  # what is left for shorter contexts when the walk stops


@compiled
def _add(tokens: Ints, probs: Floats, count: int, token: int, prob: float) -> int:
    for place in range(count):
        if tokens[place] == token:
            probs[place] += prob
            return count
    if count < MAX_CANDIDATES:
        tokens[count] = token
        probs[count] = prob
        count += 1
    return count


@compiled
def predict(
    local: Arrays,
    shared: Arrays,
    context: Ints,
    previous: int,
    table_tokens: Ints,
    table_probs: Floats,
    alphas: Floats,
    rec: float,
    max_orders: int,
    tokens: Ints,
    probs: Floats,
) -> int:
    """Candidates for the next token, unordered, into ``tokens`` and ``probs``; returns how many.

    ``context``: state and length in the local automaton, state and length in the shared one.
    """
    state_l, length_l, state_s, length_s = context[0], context[1], context[2], context[3]
    count = 0
    weight = 1.0
    orders = 0
    while orders < max_orders and weight > MIN_WEIGHT:
        if length_l >= length_s:
            if length_l == 0:
                break
            (states, edges, _), state, length = local, state_l, length_l
            state_l = states[state, LINK]
            length_l = states[state_l, LENGTH]
        else:
            (states, edges, _), state, length = shared, state_s, length_s
            state_s = states[state, LINK]
            length_s = states[state_s, LENGTH]
        total = 0
        seen = 0
        edge = states[state, EDGES]
        while edge != NONE and seen < MAX_EDGES:
            total += states[edges[edge, TARGET], COUNT]
            edge = edges[edge, NEXT]
            seen += 1
        if total == 0:
            continue
        alpha = alphas[min(length, alphas.size - 1)]
        scale = weight / (total + rec + alpha)
        latest = states[state, LAST]
        edge = states[state, EDGES]
        for _ in range(seen):
            token = edges[edge, TOKEN]
            gain = states[edges[edge, TARGET], COUNT] + (rec if token == latest else 0.0)
            count = _add(tokens, probs, count, token, scale * gain)
            edge = edges[edge, NEXT]
        weight = scale * alpha
        orders += 1
    if table_tokens.shape[0] > 0 and weight > MIN_WEIGHT:
        for column in range(table_tokens.shape[1]):
            count = _add(tokens, probs, count, table_tokens[previous, column], weight * table_probs[previous, column])
    return count


@compiled
def _push(heap: Ints, size: int, scores: Floats, item: int) -> None:
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if scores[heap[above]] >= scores[item]:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item


@compiled
def _pop(heap: Ints, size: int, scores: Floats) -> int:
    top = heap[0]
    size -= 1
    item = heap[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and scores[heap[child + 1]] > scores[heap[child]]:
            child += 1
        if scores[item] >= scores[heap[child]]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = item
    return int(top)


@compiled
def best_size(probs: Floats, count: int, costs: Floats, root_factor: float) -> int:
    """How many nodes to verify: the n that maximises expected tokens per unit of time."""
    best, best_rate = 0, 1.0 / costs[1]
    gain = 1.0
    for n in range(1, count + 1):
        gain += root_factor * probs[n - 1]
        rate = gain / costs[1 + n]
        if rate > best_rate:
            best, best_rate = n, rate
    return best


@compiled
def draft(
    local: Arrays,
    shared: Arrays,
    context: Ints,
    previous: int,
    table_tokens: Ints,
    table_probs: Floats,
    alphas: Floats,
    rec: float,
    max_orders: int,
    max_nodes: int,
    max_depth: int,
    width: int,
    min_prob: float,
    costs: Floats,
    root_factor: float,
    nodes: Ints,
    node_probs: Floats,
) -> int:
    """Draft a tree into ``nodes``, rows of (token, parent, depth), with path probabilities; returns its size.

    ``costs``: time of a forward by its number of rows, or empty for all of ``max_nodes``.
    """
    pool = width * (max_nodes + 1)
    scores = np.empty(pool, np.float64)
    pending = np.empty((pool, 2), np.int32)  # token, parent
    heap = np.empty(pool, np.int32)
    contexts = np.empty((max_nodes, 4), np.int32)
    tokens = np.empty(MAX_CANDIDATES, np.int32)
    probs = np.empty(MAX_CANDIDATES, np.float64)
    used = waiting = size = 0

    node = -1
    here = context
    depth = 0
    prob = 1.0
    while True:
        if depth < max_depth:
            found = predict(
                local, shared, here, previous, table_tokens, table_probs, alphas, rec, max_orders, tokens, probs
            )
            for _ in range(width):
                best = -1
                for candidate in range(found):
                    if probs[candidate] > 0.0 and (best < 0 or probs[candidate] > probs[best]):
                        best = candidate
                if best < 0 or prob * probs[best] < min_prob:
                    break
                scores[used] = prob * probs[best]
                pending[used, 0] = tokens[best]
                pending[used, 1] = node
                probs[best] = 0.0
                _push(heap, waiting, scores, used)
                used += 1
                waiting += 1
        if waiting == 0 or size == max_nodes:
            break
        item = _pop(heap, waiting, scores)
        waiting -= 1
        token, parent = pending[item, 0], pending[item, 1]
        node = size
        size += 1
        prob = scores[item]
        depth = 1 if parent < 0 else nodes[parent, 2] + 1
        nodes[node, 0] = token
        nodes[node, 1] = parent
        nodes[node, 2] = depth
        node_probs[node] = prob
        before = context if parent < 0 else contexts[parent]
        here = contexts[node]
        here[0], here[1] = step(local[0], local[1], local[2], before[0], before[1], token)
        here[2], here[3] = step(shared[0], shared[1], shared[2], before[2], before[3], token)
        previous = token
    if costs.size > 0:
        size = best_size(node_probs, size, costs, root_factor)
    return size
