"""Draft trees from suffix automata: blended next-token probabilities and a best-first search, compiled by numba.

**Probability.** The contexts seen before are visited from the longest to the shortest, those of the text itself and
those of earlier responses merged by length. Each order L with N counted continuations has its say by

    P(x) <- (c(x) + rec * [x = last continuation] + alpha_L * P(x)) / (N + rec + alpha_L)

over what the shorter orders say, down to order 0: the tokens of the recent text, the newer the likelier, mixed with a
static table of next tokens. Unrolled from the longest order this is a sum whose remaining weight shrinks by
alpha_L / (N + rec + alpha_L), so the walk can stop as soon as nothing is left to say. With one order, rec = 0 and
alpha = 0 it is the published rule: the longest match alone.

**Draft.** Nodes leave a heap in order of path probability, at most ``width`` children per node: width 1 is a path. A
node is looked at for children when a child of ``eagerness`` times its probability would be the next to leave: 1 is the
exact search, and less leaves most leaves of the tree unexpanded.
**Size.** Fixed, or the n that maximises (1 + f * sum of the n best path probabilities) / C(1 + n), where C is the time
of a forward over that many rows and f < 1 corrects for steps starting where prediction has just failed.
"""

from __future__ import annotations

import math

import numpy as np

from servingbench.decoding.automaton import (
    COUNT,
    E_NEXT,
    E_TARGET,
    E_TOKEN,
    LAST,
    LENGTH,
    LINK,
    MORE,
    NONE,
    TARGET,
    TOKEN,
    append_all,
    match,
    parts,
    step,
)
from servingbench.decoding.automaton import context as text_end
from servingbench.decoding.jit import Floats, Floats32, Ints, compiled

Views = tuple[Ints, Ints]  # states and edges of one automaton

RECENT_TOKENS = 128  # of the text that order 0 reads; a power of two
TABLE_BELOW = 8  # next tokens of the static table that are read below the root
MAX_CANDIDATES = 512  # of one node
CANDIDATES_PER_NODE = 64  # on average, at most
SLOTS = 1024  # of the hash that finds a node's candidates; a power of two
MIN_WEIGHT = 0.1  # what is left for shorter contexts when the walk stops
# Parameters of the blend and the search, in one array
P_REC, P_ORDERS, P_RECENT, P_DECAY, P_WIDTH, P_MIN_PROB, P_EDGES, P_EAGERNESS, P_ROOT_FACTOR, P_ALPHAS = range(10)
# Where a draft starts
C_STATE, C_LENGTH, C_SHARED_STATE, C_SHARED_LENGTH, C_PREVIOUS, C_SEEN = range(6)


@compiled
def _add(tokens: Ints, probs: Floats, slots: Ints, start: int, count: int, token: int, prob: float) -> int:
    """Give a candidate of the node whose candidates begin at ``start`` more probability; returns their new end."""
    slot = (token * 0x9E3779B1 >> 7) & (SLOTS - 1)
    while slots[slot] >= start:  # an entry before it is of another node, and free
        found = slots[slot]
        if tokens[found] == token:
            probs[found] += prob
            return count
        slot = (slot + 1) & (SLOTS - 1)
    if count < probs.size and count - start < MAX_CANDIDATES:
        tokens[count] = token
        probs[count] = prob
        slots[slot] = count
        count += 1
    return count


@compiled
def _look(states: Ints, edges: Ints, state: int, edge_tokens: Ints, edge_counts: Ints) -> tuple[int, int]:
    """What followed a context: its first continuation, then the newest, as many as there is room; their number and N.

    N is what their counts add up to or, where some are left out, the context's own count if that is more.
    """
    if states[state, TARGET] == NONE:
        return 0, 0
    edge_tokens[0] = states[state, TOKEN]
    edge_counts[0] = states[states[state, TARGET], COUNT]
    total = int(edge_counts[0])
    seen = 1
    edge = states[state, MORE]
    while edge != NONE and seen < edge_tokens.size:
        edge_tokens[seen] = edges[edge, E_TOKEN]
        edge_counts[seen] = states[edges[edge, E_TARGET], COUNT]
        total += edge_counts[seen]
        edge = edges[edge, E_NEXT]
        seen += 1
    if edge != NONE and total < states[state, COUNT]:
        total = int(states[state, COUNT])
    return seen, total


@compiled
def predict(
    local: Views,
    shared: Views,
    contexts: Ints,
    row: int,
    recent: Ints,
    table_tokens: Ints,
    table_probs: Floats32,
    params: Floats,
    edge_tokens: Ints,
    edge_counts: Ints,
    tokens: Ints,
    probs: Floats,
    slots: Ints,
    start: int,
) -> int:
    """Candidates for the next token, unordered, into ``tokens`` and ``probs`` from ``start``; returns their end.

    Args:
        local, shared: states and edges of an automaton.
        contexts: rows of (state and length in the local automaton and in the shared one, last token, tokens seen).
        row: which context; row 0 is the root of the draft. Only there is ``recent``, a ring of the text's last tokens,
            read: further down it would pay little.
        edge_tokens, edge_counts, slots: room to work in.
    """
    state_l, length_l, state_s, length_s = contexts[row, 0], contexts[row, 1], contexts[row, 2], contexts[row, 3]
    rec, max_orders = params[P_REC], params[P_ORDERS]
    count = start
    weight = 1.0
    orders = 0
    while orders < max_orders and weight > MIN_WEIGHT:
        if length_l >= length_s:
            if length_l == 0:
                break
            length = length_l
            seen, total = _look(local[0], local[1], state_l, edge_tokens, edge_counts)
            latest = local[0][state_l, LAST]
            state_l = local[0][state_l, LINK]
            length_l = local[0][state_l, LENGTH]
        else:
            length = length_s
            seen, total = _look(shared[0], shared[1], state_s, edge_tokens, edge_counts)
            latest = shared[0][state_s, LAST]
            state_s = shared[0][state_s, LINK]
            length_s = shared[0][state_s, LENGTH]
        if seen == 0:
            continue
        alpha = params[min(P_ALPHAS - 1 + length, params.size - 1)]
        if length > params.size - P_ALPHAS:
            alpha *= math.sqrt((params.size - P_ALPHAS) / length)
        scale = weight / (total + rec + alpha)
        for place in range(seen):
            gain = edge_counts[place] + (rec if edge_tokens[place] == latest else 0.0)
            count = _add(tokens, probs, slots, start, count, edge_tokens[place], scale * gain)
        weight = scale * alpha
        orders += 1
    if weight > MIN_WEIGHT:
        share = params[P_RECENT]
        seen = min(contexts[row, C_SEEN], RECENT_TOKENS)
        if row == 0 and share > 0.0 and seen > 0:
            decay = params[P_DECAY]
            gain = weight * share * (1.0 - decay) / (1.0 - decay**seen)
            place = contexts[row, C_SEEN]
            for _ in range(seen):
                place = (place - 1) & (RECENT_TOKENS - 1)
                count = _add(tokens, probs, slots, start, count, recent[place], gain)
                gain *= decay
            weight *= 1.0 - share
        previous = contexts[row, C_PREVIOUS]
        columns = table_tokens.shape[1]
        for column in range(columns if row == 0 else min(columns, TABLE_BELOW)):
            prob = weight * table_probs[previous, column]
            count = _add(tokens, probs, slots, start, count, table_tokens[previous, column], prob)
    return count


@compiled
def _push(heap: Ints, scores: Floats, size: int, item: int, score: float) -> int:
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if scores[above] >= score:
            break
        heap[place] = heap[above]
        scores[place] = scores[above]
        place = above
    heap[place] = item
    scores[place] = score
    return size + 1


@compiled
def _drop_first(heap: Ints, scores: Floats, size: int) -> int:
    size -= 1
    item, score = heap[size], scores[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and scores[child + 1] > scores[child]:
            child += 1
        if score >= scores[child]:
            break
        heap[place] = heap[child]
        scores[place] = scores[child]
        place = child
    heap[place] = item
    scores[place] = score
    return size


@compiled
def _best_to_front(tokens: Ints, probs: Floats, start: int, end: int) -> None:
    best = start
    for candidate in range(start + 1, end):
        if probs[candidate] > probs[best]:
            best = candidate
    tokens[start], tokens[best] = tokens[best], tokens[start]
    probs[start], probs[best] = probs[best], probs[start]


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
    local_data: Ints,
    shared_data: Ints,
    context: Ints,
    recent: Ints,
    table_tokens: Ints,
    table_probs: Floats32,
    params: Floats,
    costs: Floats,
    max_depth: int,
    nodes: Ints,
    node_probs: Floats,
) -> int:
    """Draft a tree into ``nodes``, (3, most nodes): token, parent and depth; returns its size.

    ``node_probs``: their path probabilities. ``costs``: time of a forward by its rows, or empty for all nodes.
    """
    _, local_states, local_edges, local_table = parts(local_data)
    _, shared_states, shared_edges, shared_table = parts(shared_data)
    local, shared = (local_states, local_edges), (shared_states, shared_edges)
    width, min_prob = params[P_WIDTH], params[P_MIN_PROB]
    max_nodes = nodes.shape[1]
    pool = MAX_CANDIDATES + CANDIDATES_PER_NODE * max_nodes
    tokens = np.empty(pool, np.int32)
    probs = np.empty(pool, np.float64)
    slots = np.full(SLOTS, -1, np.int32)
    edge_tokens = np.empty(int(params[P_EDGES]), np.int32)
    edge_counts = np.empty_like(edge_tokens)
    contexts = np.empty((max_nodes + 1, 6), np.int32)  # of node n in row n + 1; row 0 is the root's
    # By the same rows: the best candidate not taken yet, the end of the candidates, the children.
    lists = np.zeros((max_nodes + 1, 3), np.int32)
    heap = np.empty(3 * max_nodes + 3, np.int32)  # 2 * row for a row's next child, 2 * row + 1 for looking for any
    scores = np.empty(3 * max_nodes + 3, np.float64)
    contexts[0] = context
    used = size = 0
    waiting = _push(heap, scores, 0, 1, 1.0)
    while waiting > 0 and size < max_nodes:
        row, searching, prob = heap[0] >> 1, heap[0] & 1, scores[0]
        waiting = _drop_first(heap, scores, waiting)
        if searching:
            lists[row, 0] = used
            used = predict(
                local, shared, contexts, row, recent, table_tokens, table_probs, params,
                edge_tokens, edge_counts, tokens, probs, slots, used,
            )  # fmt: skip
            lists[row, 1] = used
        else:
            token = tokens[lists[row, 0]]
            lists[row, 0] += 1
            lists[row, 2] += 1
            nodes[0, size] = token
            nodes[1, size] = row - 1
            nodes[2, size] = 1 if row == 0 else nodes[2, row - 1] + 1
            node_probs[size] = prob
            size += 1
            if nodes[2, size - 1] < max_depth:
                contexts[size, 0], contexts[size, 1] = step(
                    local_states, local_edges, local_table, contexts[row, 0], contexts[row, 1], token
                )
                contexts[size, 2], contexts[size, 3] = step(
                    shared_states, shared_edges, shared_table, contexts[row, 2], contexts[row, 3], token
                )
                contexts[size, C_PREVIOUS] = token
                waiting = _push(heap, scores, waiting, 2 * size + 1, prob * params[P_EAGERNESS])
        if lists[row, 0] < lists[row, 1] and lists[row, 2] < width:
            _best_to_front(tokens, probs, lists[row, 0], lists[row, 1])
            child_prob = probs[lists[row, 0]] * (1.0 if row == 0 else node_probs[row - 1])
            if child_prob > 0.0 and child_prob >= min_prob:
                waiting = _push(heap, scores, waiting, 2 * row, child_prob)
    if costs.size > 0:
        size = best_size(node_probs, size, costs, params[P_ROOT_FACTOR])
    return size


@compiled
def take(
    local_data: Ints, shared_data: Ints, context: Ints, recent: Ints, tokens: Ints, reads_local: bool, matched: int
) -> None:
    """Committed tokens: grow the local index, and find the end of the text in both.

    ``matched``: how many of the last tokens to follow in the shared index; 0 where it is not read.
    """
    if reads_local:
        append_all(local_data, tokens)
        context[C_STATE], context[C_LENGTH] = text_end(local_data)
        for token in tokens:
            recent[context[C_SEEN] & (RECENT_TOKENS - 1)] = token
            context[C_SEEN] += 1
    if matched > 0:
        context[C_SHARED_STATE], context[C_SHARED_LENGTH] = match(
            shared_data, context[C_SHARED_STATE], context[C_SHARED_LENGTH], tokens[tokens.size - matched :]
        )
    context[C_PREVIOUS] = tokens[-1]
