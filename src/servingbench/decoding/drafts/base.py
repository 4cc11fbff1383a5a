"""What every draft is, and what the loop asks of the things that make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from servingbench.decoding.jit import Floats


@dataclass(frozen=True)
class Draft:
    """Proposed continuations of the committed text: a tree of tokens, a parent always before its children.

    Attributes:
        tokens: one token id per node.
        parents: per node its parent's index; -1 for a child of the last committed token.
        depths: per node its distance from the last committed token, 1 for its children.
        is_path: every node is the only child of the one before it.
    """

    tokens: list[int]
    parents: list[int]
    depths: list[int]
    is_path: bool

    @classmethod
    def path(cls, tokens: list[int]) -> Draft:
        """One continuation, without branches."""
        count = len(tokens)
        return cls(tokens, list(range(-1, count - 1)), list(range(1, count + 1)), True)

    @classmethod
    def tree(cls, tokens: list[int], parents: list[int]) -> Draft:
        """A tree from its parents' indices."""
        depths: list[int] = []
        for parent in parents:
            depths.append(1 if parent < 0 else depths[parent] + 1)
        return cls(tokens, parents, depths, all(parent == node - 1 for node, parent in enumerate(parents)))

    def child(self, node: int, token: int) -> int | None:
        """The child of a node that proposes this token, if there is one; node -1 is the last committed token."""
        if self.is_path:
            follower = node + 1
            return follower if follower < len(self.tokens) and self.tokens[follower] == token else None
        for child in range(node + 1, len(self.tokens)):
            if self.parents[child] == node and self.tokens[child] == token:
                return child
        return None


class Drafter(Protocol):
    """Makes drafts for one request after another."""

    max_nodes: int
    """The largest draft it ever proposes."""
    costs: Floats | None
    """Forward time by rows, filled in before any timing for a drafter that asks with an empty array; else None."""

    def start(self, prompt_ids: Sequence[int]) -> None:
        """Begin a request."""
        ...

    def extend(self, token_ids: Sequence[int]) -> None:
        """Take newly committed tokens."""
        ...

    def propose(self, *, max_depth: int) -> Draft | None:
        """Draft a continuation no deeper than ``max_depth`` (at least 1); None for no draft."""
        ...

    def observe(self, prompt_ids: Sequence[int], new_token_ids: Sequence[int]) -> None:
        """Take a finished response into what is shared across requests."""
        ...

    def warm_up(self) -> None:
        """Compile what proposing needs, leaving no trace."""
        ...


class NoDraft:
    """Plain autoregressive decoding."""

    max_nodes = 0
    costs: Floats | None = None

    def start(self, prompt_ids: Sequence[int]) -> None:
        """Nothing to prepare."""

    def extend(self, token_ids: Sequence[int]) -> None:
        """Nothing to remember."""

    def propose(self, *, max_depth: int) -> Draft | None:
        """Propose nothing."""
        return None

    def observe(self, prompt_ids: Sequence[int], new_token_ids: Sequence[int]) -> None:
        """Nothing is shared."""

    def warm_up(self) -> None:
        """Nothing to compile."""
