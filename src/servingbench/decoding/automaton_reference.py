"""The index and its drafts in plain Python, from the definitions: slow, and the oracle of the tests.

Nothing here knows about suffix automata: a context is a substring, its occurrences are counted one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

Tokens = tuple[int, ...]


@dataclass
class ReferenceIndex:
    """Every substring of some texts, with its occurrences.

    Attributes:
        cap: counts stop here.
        texts: the texts, oldest first.
    """

    cap: int = 64
    texts: list[list[int]] = field(default_factory=lambda: [[]])

    def begin(self) -> None:
        """Begin another text."""
        self.texts.append([])

    def extend(self, tokens: Sequence[int]) -> None:
        """Append to the current text."""
        self.texts[-1].extend(tokens)

    def ends(self, context: Tokens) -> list[tuple[int, int]]:
        """Where a context ends: (text, place after its last token), in order."""
        size = len(context)
        return [
            (number, end)
            for number, text in enumerate(self.texts)
            for end in range(size, len(text) + 1)
            if tuple(text[end - size : end]) == context
        ]

    def count(self, context: Tokens) -> int:
        """Occurrences, capped."""
        return min(self.cap, len(self.ends(context)))

    def followers(self, context: Tokens) -> Counter[int]:
        """Next token -> how often it followed, capped."""
        found = Counter(self.texts[number][end] for number, end in self.ends(context) if end < len(self.texts[number]))
        return Counter({token: min(self.cap, count) for token, count in found.items()})

    def last(self, context: Tokens) -> int | None:
        """What followed the latest occurrence that is followed by anything."""
        tokens = [self.texts[number][end] for number, end in self.ends(context) if end < len(self.texts[number])]
        return tokens[-1] if tokens else None

    def longest(self, text: Sequence[int], *, earlier: bool) -> int:
        """Length of the longest suffix of ``text`` that occurs here; ``earlier``: at least twice."""
        for size in range(len(text), 0, -1):
            if len(self.ends(tuple(text[-size:]))) > (1 if earlier else 0):
                return size
        return 0

    def orders(self, text: Sequence[int], longest: int) -> list[int]:
        """Context lengths to blend, longest first: one of each class of suffixes that end at the same places."""
        sizes = []
        ends = None
        for size in range(longest, 0, -1):
            found = self.ends(tuple(text[-size:]))
            if found != ends:
                sizes.append(size)
            ends = found
        return sizes
