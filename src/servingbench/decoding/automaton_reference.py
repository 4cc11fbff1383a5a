"""The index and its drafts in plain Python, from the definitions: slow, and the oracle of the tests.

Nothing here knows about suffix automata: a context is a substring, its occurrences are counted one by one.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
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


def blended(
    local: ReferenceIndex | None,
    shared: ReferenceIndex | None,
    text: Sequence[int],
    drafted: Sequence[int],
    *,
    alphas: Sequence[float],
    rec: float,
    max_orders: int,
    min_weight: float,
    recent_share: float,
    recent_decay: float,
    table: dict[int, dict[int, float]],
) -> dict[int, float]:
    """Probabilities of the token after ``text`` + ``drafted``, by the formula of ``drafting.py`` from long to short.

    Args:
        local: the index of ``text`` itself.
        shared: the index of earlier responses.
        text: what is committed.
        drafted: hypothetical tokens after it.
        alphas: weight of the shorter contexts, by context length from 1.
        rec: extra count of the latest continuation.
        max_orders: contexts to blend.
        min_weight: stop when less is left for the shorter contexts.
        recent_share: share of the text's own tokens in order 0, where nothing is drafted yet.
        recent_decay: what each of them weighs beside the one after it.
        table: previous token -> next tokens and their probabilities.
    """
    whole = [*text, *drafted]
    orders = []
    for preference, index in enumerate((local, shared)):
        if index is not None:
            # The end of the text occurs in its own index, which predicts nothing: only earlier occurrences count.
            longest = index.longest(whole, earlier=index is local and not drafted)
            orders += [(-size, preference, index) for size in index.orders(whole, longest)]
    result: dict[int, float] = defaultdict(float)
    weight, used = 1.0, 0
    for size, _, index in sorted(orders, key=lambda order: order[:2]):
        context = tuple(whole[size:])
        followers = index.followers(context)
        total = sum(followers.values())
        if total == 0 or used == max_orders or weight <= min_weight:
            continue
        alpha = alphas[min(-size, len(alphas)) - 1] * min(1.0, len(alphas) / -size) ** 0.5
        scale = weight / (total + rec + alpha)
        for token, count in followers.items():
            result[token] += scale * (count + (rec if token == index.last(context) else 0))
        weight = scale * alpha
        used += 1
    if weight > min_weight:
        if local is not None and not drafted and recent_share > 0:
            weights = [recent_decay**back for back in range(len(text))]
            for token, gain in zip(reversed(text), weights, strict=True):
                result[token] += weight * recent_share * gain / sum(weights)
            weight *= 1 - recent_share
        for token, prob in table.get(whole[-1], {}).items():
            result[token] += weight * prob
    return dict(result)


def best_first(
    predict: Callable[[Tokens], dict[int, float]], *, nodes: int, depth: int, width: int, min_prob: float
) -> list[tuple[Tokens, float]]:
    """The most probable drafts, best first: (path from the text's end, its probability)."""
    drafts: list[tuple[Tokens, float]] = []
    heap: list[tuple[float, Tokens]] = []
    path: Tokens = ()
    prob = 1.0
    while len(drafts) < nodes:
        if len(path) < depth:
            ranked = sorted(predict(path).items(), key=lambda item: -item[1])[:width]
            for token, conditional in ranked:
                if prob * conditional >= min_prob and conditional > 0:
                    heapq.heappush(heap, (-prob * conditional, (*path, token)))
        if not heap:
            break
        negative, path = heapq.heappop(heap)
        prob = -negative
        drafts.append((path, prob))
    return drafts
