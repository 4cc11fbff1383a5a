"""Suffix drafts: continuations that followed the same context earlier, as a path (width 1) or a tree."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

import numpy as np

from servingbench.decoding.automaton import START_TOKENS, Automaton
from servingbench.decoding.drafting import RECENT_TOKENS, draft, take
from servingbench.decoding.drafts.base import Draft
from servingbench.decoding.jit import Floats, Floats32, Ints
from servingbench.errors import UserError

Source = Literal["local", "global", "both"]
ALPHAS = (8.0, 4.0, 4.0, 1.0, 1.5, 0.4)  # by the length of the context, from 1; the last for all longer
ALL_ORDERS = 1 << 30
NO_COSTS: Floats = np.empty(0)
NO_TABLE: tuple[Ints, Floats32] = (np.empty((0, 0), np.int32), np.empty((0, 0), np.float32))
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
        alphas: per context length from 1, the weight of what the shorter contexts say.
        max_orders: contexts to blend, from the longest.
        max_edges: continuations of one context that are looked at: the first ever, then the newest.
        recent_share: share of the recent text's tokens in order 0, beside the static table; 0 leaves them out.
        recent_decay: what a token of the recent text weighs beside the one after it.
        eagerness: 1 searches the most probable nodes exactly; less is faster and nearly as good.
        root_factor: with "cost", the correction of over-estimated probabilities.
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
        max_edges: int = 8,
        recent_share: float = 0.4,
        recent_decay: float = 0.98,
        eagerness: float = 0.5,
        root_factor: float = 0.7,
        shared_tokens: int = 1 << 16,
        static_table: tuple[Ints, Floats32] | None = None,
    ) -> None:
        if source not in ("local", "global", "both"):
            raise UserError("unknown source", key="source", value=source, remedy="use local, global or both")
        self.max_nodes = max_tokens if num_tokens == "cost" else num_tokens
        self.costs: Floats | None = np.empty(0) if num_tokens == "cost" else None
        self.local, self.shared = Automaton(), Automaton()
        self._reads_local, self._reads_shared = source != "global", source != "local"
        self._max_depth = max_depth
        self._params = np.array(
            [rec, max_orders, recent_share, recent_decay, width, min_prob, max_edges, eagerness, root_factor, *alphas],
            np.float64,
        )
        self._shared_tokens = shared_tokens
        self._responses: deque[tuple[int, ...]] = deque()
        tokens, probs = NO_TABLE if static_table is None else static_table
        self._table = np.asarray(tokens, np.int32), np.asarray(probs, np.float32)
        self._context = np.zeros(6, np.int32)
        self._recent = np.zeros(RECENT_TOKENS, np.int32)
        self._nodes = np.empty((3, self.max_nodes), np.int32)
        self._probs = np.empty(self.max_nodes, np.float64)

    def start(self, prompt_ids: Sequence[int]) -> None:
        """Index the prompt, and find its end in the earlier responses."""
        self.local.clear()
        self._context[:] = 0
        self._take(prompt_ids)

    def extend(self, token_ids: Sequence[int]) -> None:
        """Index committed tokens."""
        self._take(token_ids)

    def propose(self, *, max_depth: int) -> Draft | None:
        """Draft the most probable continuations."""
        size = draft(
            self.local.data,
            self.shared.data,
            self._context,
            self._recent,
            *self._table,
            self._params,
            NO_COSTS if self.costs is None else self.costs,
            min(max_depth, self._max_depth),
            self._nodes,
            self._probs,
        )
        if size == 0:
            return None
        tokens, parents, depths = self._nodes[:, :size].tolist()
        return Draft(tokens, parents, depths, is_path=depths[-1] == size)

    def path_probabilities(self, count: int) -> list[float]:
        """Of the first ``count`` nodes of the last draft."""
        return list(self._probs[:count].tolist())

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
        twin = SuffixDrafter(num_tokens=2, source="both", static_table=self._table)
        twin.observe([0], [0, 1, 0])
        twin.start([0, 1] * START_TOKENS)  # more than there is room for: growing is a kernel too
        twin.extend([1])
        twin.propose(max_depth=2)

    def _take(self, tokens: Sequence[int]) -> None:
        if self._reads_local:
            self.local.reserve(len(tokens))
        matched = min(len(tokens), MATCH_TOKENS) if self._reads_shared else 0
        new = np.array(tokens, np.int32)
        take(self.local.data, self.shared.data, self._context, self._recent, new, self._reads_local, matched)
