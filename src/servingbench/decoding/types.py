"""What a decoding method takes and gives back.

Every method, ours or transformers', answers the same :class:`Request` with the same :class:`Generation`, so that a
measurement never has to know which one it is timing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

FinishReason = Literal["eos", "length"]
Step = tuple[int, int, int]
"""One target forward: proposed tokens (tree nodes), tree depth, draft tokens accepted and committed."""


@dataclass(frozen=True)
class Request:
    """One prompt to continue, greedily unless it says otherwise.

    Attributes:
        prompt_ids: the rendered prompt's token ids, at least one.
        max_new_tokens: no more new tokens than this.
        eos_token_ids: generation ends with the first of these, which is part of the output.
        reference: None for a free run. Given, the run is a forced replay: drafts are proposed and verified by real
            forwards as usual, and acceptance is against these tokens, so that every method writes the same text.
        temperature: 0 for the most probable token; above, tokens are sampled from softmax(scores / temperature).
        seed: of this request's random numbers; None draws from torch's global generator.
        processors: (text ids (1, length), float32 scores (1, vocabulary)) -> scores, applied before the temperature;
            a LogitsProcessorList of transformers, for instance.
    """

    prompt_ids: tuple[int, ...]
    max_new_tokens: int
    eos_token_ids: frozenset[int]
    reference: tuple[int, ...] | None = None
    temperature: float = field(default=0.0, kw_only=True)
    seed: int | None = field(default=None, kw_only=True)
    processors: Callable[[Any, Any], Any] | None = field(default=None, kw_only=True, hash=False)

    @property
    def is_greedy(self) -> bool:
        """Whether the next token is simply that of the largest logit."""
        return self.temperature == 0 and self.processors is None


@dataclass(frozen=True)
class Reference:
    """A greedy output, with how sure the model was of each token.

    Attributes:
        new_token_ids: the output, first end-of-sequence token included.
        finish_reason: why it ended.
        margins: per token, the top-2 logit margin (float32) at its position.
    """

    new_token_ids: list[int]
    finish_reason: FinishReason
    margins: list[float]


@dataclass
class Generation:
    """One answer and what it cost. Times are nanoseconds of ``perf_counter_ns``.

    Attributes:
        new_token_ids: N token ids: first end-of-sequence included, cut at ``max_new_tokens``.
        finish_reason: why it ended.
        wall_ns: the whole call, the device synchronised on both sides.
        ttft_ns: from the start until the first new token was known to the host.
        decode_ns: from the first new token to the last.
        propose_ns: host time spent proposing drafts, the index's upkeep included (a draft model's forwards too).
        verify_ns: time from each proposal to its accepted tokens: the target forwards after the first, and acceptance.
        forwards: target forward calls, prefill included.
        steps: one entry per target forward, in order; (0, 0, 0) for a forward that carried no draft.
        draft_forwards: forward calls of a draft model.
        overrun_tokens: tokens emitted beyond the cap or the first end-of-sequence, cut from ``new_token_ids``.
    """

    new_token_ids: list[int]
    finish_reason: FinishReason
    wall_ns: int
    ttft_ns: int
    decode_ns: int
    propose_ns: int = 0
    verify_ns: int = 0
    forwards: int = 0
    steps: list[Step] = field(default_factory=list)
    draft_forwards: int = 0
    overrun_tokens: int = 0


class Method(Protocol):
    """A decoding method bound to a loaded model."""

    name: str

    def generate(self, request: Request) -> Generation:
        """Answer one request, timing it."""
        ...

    def observe(self, prompt_ids: Sequence[int], new_token_ids: Sequence[int]) -> None:
        """Take a finished response into the caches shared across requests; nothing for methods that have none."""
        ...

    def warm_up(self) -> None:
        """Compile and touch everything a timed run will use, leaving no trace in the shared caches."""
        ...
