"""Suffix drafts: continuations that followed the same context earlier, as a path (width 1) or a tree."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

import numpy as np

from servingbench.decoding.automaton import Automaton, match
from servingbench.decoding.drafting import draft
from servingbench.decoding.drafts.base import Draft
from servingbench.decoding.jit import Floats, Ints
from servingbench.errors import UserError

Source = Literal["local", "global", "both"]
ALPHAS = (
    0.0,
    15.0,
    4.0,
    2.0,
    1.0,
    0.5,
)  # trust in shorter contexts, by the length of this one; the last for all longer
ALL_ORDERS = 1 << 30
NO_COSTS: Floats = np.empty(0)
MATCH_TOKENS = 64  # of the prompt, enough to find its context in the shared index


class SuffixDrafter:
    """Drafts from the text so far, from earlier responses, or from both.

    Args:
        width: most children of a node; 1 drafts a path.
        num_tokens: nodes of a draft, or "cost" for the size that pays best on the forward-cost curve.
        source: what to draft from: this request's prompt and output, earlier responses, or both.
        max_tokens: with "cost", the largest draft.
        max_depth: the deepest draft.
        min_prob: nodes with a smaller path probability are not drafted.
        rec: extra count of a context's latest continuation.
        alphas: per context length, the weight of what the shorter contexts say.
        max_orders: contexts to blend, from the longest.
        root_factor: with "cost", the correction of over-estimated probabilities; flat between 0.6 and 1 on our
            prompts, smaller (about 0.45) with a static table.
        shared_tokens: earlier responses are forgotten, oldest first, beyond this many tokens.
        static_table: next tokens and their probabilities, (vocabulary, k) each, or None.
    """

    def __init__(
        self,
        *,
        width: int = 1,
        num_tokens: int | Literal["cost"] = 16,
        source: Source = "local",
        max_tokens: int = 64,
        max_depth: int = ALL_ORDERS,
        min_prob: float = 0.0,
        rec: float = 1.0,
        alphas: Sequence[float] = ALPHAS,
        max_orders: int = ALL_ORDERS,
        root_factor: float = 0.8,
        shared_tokens: int = 1 << 16,
        static_table: tuple[Ints, Floats] | None = None,
    ) -> None:
        if source not in ("local", "global", "both"):
            raise UserError("unknown source", key="source", value=source, remedy="use local, global or both")
        self.max_nodes = max_tokens if num_tokens == "cost" else num_tokens
        self.costs: Floats | None = np.empty(0) if num_tokens == "cost" else None
        self.local, self.shared = Automaton(), Automaton()
        self._reads_local, self._reads_shared = source != "global", source != "local"
        self._width, self._max_depth, self._min_prob = width, max_depth, min_prob
        self._rec, self._alphas, self._max_orders = rec, np.asarray(alphas, np.float64), max_orders
        self._root_factor = root_factor
        self._shared_tokens = shared_tokens
        self._responses: deque[tuple[int, ...]] = deque()
        empty = (np.empty((0, 0), np.int32), np.empty((0, 0), np.float64))
        self._table = empty if static_table is None else static_table
        self._context = np.zeros(4, np.int32)
        self._previous = 0
        self._nodes = np.empty((self.max_nodes, 3), np.int32)
        self._probs = np.empty(self.max_nodes, np.float64)

    def start(self, prompt_ids: Sequence[int]) -> None:
        """Index the prompt, and find its end in the earlier responses."""
        self.local.clear()
        self._context[:] = 0
        self._take(prompt_ids, prompt_ids[-MATCH_TOKENS:])

    def extend(self, token_ids: Sequence[int]) -> None:
        """Index committed tokens."""
        self._take(token_ids, token_ids)

    def propose(self, *, max_depth: int) -> Draft | None:
        """Draft the most probable continuations."""
        size = draft(
            self.local.arrays,
            self.shared.arrays,
            self._context,
            self._previous,
            *self._table,
            self._alphas,
            self._rec,
            self._max_orders,
            self.max_nodes,
            min(max_depth, self._max_depth),
            self._width,
            self._min_prob,
            NO_COSTS if self.costs is None else self.costs,
            self._root_factor,
            self._nodes,
            self._probs,
        )
        if size == 0:
            return None
        tokens, parents, depths = self._nodes[:size].T.tolist()
        return Draft(tokens, parents, depths, is_path=depths[-1] == size)

    def observe(self, prompt_ids: Sequence[int], new_token_ids: Sequence[int]) -> None:
        """Index a finished response; when there are too many tokens, forget a quarter of them, oldest first.

        The order of the requests therefore matters to what later ones find here.
        """
        if not self._reads_shared or not new_token_ids:
            return
        self._responses.append(tuple(new_token_ids)[-self._shared_tokens :])
        if len(self.shared) + len(self._responses[-1]) <= self._shared_tokens:
            fresh = [self._responses[-1]]
        else:
            held = sum(map(len, self._responses))
            while held > self._shared_tokens * 3 // 4 and len(self._responses) > 1:
                held -= len(self._responses.popleft())
            self.shared.clear()
            fresh = list(self._responses)
        for response in fresh:
            self.shared.begin()
            self.shared.extend(response)

    def warm_up(self) -> None:
        """Compile every kernel on throw-away indices."""
        twin = SuffixDrafter(width=self._width, num_tokens=2, source="both", static_table=self._table)
        twin.observe([0], [0, 1, 0])
        twin.start([0, 1, 0])
        twin.extend([1])
        twin.propose(max_depth=2)

    def _take(self, tokens: Sequence[int], matched: Sequence[int]) -> None:
        if self._reads_local:
            self.local.extend(tokens)
            self._context[:2] = self.local.context()
        if self._reads_shared:
            state, length = int(self._context[2]), int(self._context[3])
            self._context[2:] = match(*self.shared.arrays, state, length, np.asarray(matched, np.int32))
        self._previous = tokens[-1]
