"""Drafts from Arctic Inference's suffix trees, the nearest peer of our own: its library proposes, our loop verifies.

The library is a resource of its own (see :mod:`servingbench.peers.arctic`). Options keep its names and defaults.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from servingbench.decoding.drafts.base import Draft, NoDraft
from servingbench.errors import UserError
from servingbench.peers.arctic import arctic_available, put_on_path

__all__ = ["ArcticDrafter", "arctic_available"]

ACTIVE = "active"  # the library's id of the request being answered


class ArcticDrafter(NoDraft):
    """A request's own tree of prompt and output, and (source: both) one of all responses; the better draft is taken.

    Args:
        tree: draft a tree (``use_tree_spec``) instead of a path.
        source: "both" as the library does it; "local" without its tree of responses (``max_cached_requests=0``).
        max_spec_tokens: nodes of a draft, at most.
        max_tree_depth: depth of the trees: longest match plus draft.
        max_spec_factor: a draft is no longer than this times the matched tokens ...
        max_spec_offset: ... plus this.
        min_token_prob: tokens below this estimated path probability are not drafted.

    Raises:
        UserError: when the library is not built.
    """

    def __init__(
        self,
        *,
        tree: bool = False,
        source: Literal["local", "both"] = "local",
        max_spec_tokens: int = 64,
        max_tree_depth: int = 64,
        max_spec_factor: float = 1.0,
        max_spec_offset: float = 0.0,
        min_token_prob: float = 0.1,
    ) -> None:
        put_on_path()
        from arctic_inference.suffix_decoding import SuffixDecodingCache

        if source not in ("local", "both"):
            raise UserError("unknown source", key="source", value=source, remedy="use local or both")
        self.max_nodes = max_spec_tokens
        self._tree = tree
        self._policy = {
            "max_spec_factor": max_spec_factor,
            "max_spec_offset": max_spec_offset,
            "min_token_prob": min_token_prob,
            "use_tree_spec": tree,
        }
        self._shares = source == "both"
        self._cache = SuffixDecodingCache(max_tree_depth, max_cached_requests=-1 if self._shares else 0)
        self._text: list[int] = []
        self._observed = 0

    def start(self, prompt_ids: Sequence[int]) -> None:
        """Build the request's own tree.

        The library forgets what an earlier request of the same name left in the shared tree. So in our protocol later
        requests know nothing but observed responses, and a repeat of a prompt does not find its own answer.
        """
        if ACTIVE in self._cache.active_requests:
            self._cache.stop_request(ACTIVE)
        self._text = list(prompt_ids)
        self._cache.start_request(ACTIVE, self._text)

    def extend(self, token_ids: Sequence[int]) -> None:
        """Append to the request's tree, and to the shared one, which so knows the response that is being written."""
        self._text += token_ids
        self._cache.add_active_response(ACTIVE, list(token_ids))

    def propose(self, *, max_depth: int) -> Draft | None:
        """What the library speculates, cut at ``max_depth``."""
        size = self.max_nodes if self._tree else min(self.max_nodes, max_depth)
        context = self._text[-self._cache.max_tree_depth :]
        drafted = self._cache.speculate(ACTIVE, context, max_spec_tokens=size, **self._policy)
        if not drafted.token_ids:
            return None
        if not self._tree:
            return Draft.path(drafted.token_ids)
        draft = Draft.tree(drafted.token_ids, drafted.parents)
        return draft if max(draft.depths) <= max_depth else cut(draft, max_depth)

    def observe(self, prompt_ids: Sequence[int], new_token_ids: Sequence[int]) -> None:
        """Keep a finished response."""
        if self._shares and new_token_ids:
            self._observed += 1
            self._cache.start_request(self._observed, [])
            self._cache.add_active_response(self._observed, list(new_token_ids))
            self._cache.stop_request(self._observed)


def cut(draft: Draft, max_depth: int) -> Draft:
    """A tree without its nodes below ``max_depth``."""
    kept = [node for node, depth in enumerate(draft.depths) if depth <= max_depth]
    place = {-1: -1} | {node: number for number, node in enumerate(kept)}
    return Draft.tree([draft.tokens[node] for node in kept], [place[draft.parents[node]] for node in kept])
