"""Prompt lookup: copy what followed the earliest earlier occurrence of the last few tokens.

The same rule as transformers' ``PromptLookupCandidateGenerator`` (Saxena, 2023): n-grams from ``max_ngram`` down to 1,
the first match from the left that is followed by anything, ``num_tokens`` tokens copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from servingbench.decoding.drafts.base import Draft, NoDraft


class PromptLookup(NoDraft):
    """Copies from the prompt and the output so far.

    An n-gram's first occurrence never changes, so a dictionary from n-gram to the place after it, filled as tokens are
    committed, answers in constant time what transformers finds by scanning.

    Args:
        num_tokens: tokens to copy at most.
        max_ngram: the longest n-gram to match.
    """

    def __init__(self, *, num_tokens: int = 10, max_ngram: int = 2) -> None:
        self.max_nodes = num_tokens
        self.max_ngram = max_ngram
        self._text: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}

    def start(self, prompt_ids: Sequence[int]) -> None:
        """Index the prompt."""
        self._text, self._after = [], {}
        self.extend(prompt_ids)

    def extend(self, token_ids: Sequence[int]) -> None:
        """Index every n-gram that is now followed by something."""
        for token in token_ids:
            end = len(self._text)
            for size in range(1, min(self.max_ngram, end) + 1):
                self._after.setdefault(tuple(self._text[end - size :]), end)
            self._text.append(token)

    def propose(self, *, max_depth: int) -> Draft | None:
        """Copy what followed the longest n-gram's first occurrence."""
        for size in range(min(self.max_ngram, len(self._text)), 0, -1):
            start = self._after.get(tuple(self._text[-size:]))
            if start is not None:
                return Draft.path(self._text[start : start + min(self.max_nodes, max_depth)])
        return None
