"""What one call of transformers' generate did: counted and timed by delegation on instances, nothing changed."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from time import perf_counter_ns
from typing import Any

import torch
from transformers import LogitsProcessor

from servingbench.decoding.loop import finish_reason
from servingbench.decoding.types import Generation, Request, Step


class ForcedReplay(LogitsProcessor):  # type: ignore[misc]
    """Answers with the reference: leaves only its token at each position. The forward before it is the real one."""

    def __init__(self, reference: Sequence[int], *, prompt: int) -> None:
        self._reference = reference
        self._prompt = prompt

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores (1, vocabulary) of the token after ``input_ids``, (1, length)."""
        place = input_ids.shape[1] - self._prompt
        if place >= len(self._reference):
            return scores  # beyond the end; the record is cut there
        forced = torch.full_like(scores, -torch.inf)
        forced[:, self._reference[place]] = 0
        return forced


class Recorder:
    """What one call of generate did: a streamer, and the counts of its forwards and drafts."""

    def __init__(self) -> None:
        self.forwards = self.draft_forwards = self.whole_forwards = 0
        self.tokens: list[int] = []
        self.committed: list[int] = []  # tokens per target forward
        self.proposed: list[int] = []  # draft tokens per target forward
        self.depths: list[int] = []  # of the longest path among them
        self.times_ns: list[int] = []  # when each forward's tokens were known
        self.proposing_ns: list[int] = []  # spent on proposing by then
        self.propose_ns = 0
        self.generator: str | None = None
        self.drafting = False
        self._prompt_seen = False

    def put(self, value: torch.Tensor) -> None:
        """Take the prompt, then the tokens that each forward committed."""
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        tokens = value.reshape(-1).tolist()
        self.times_ns.append(perf_counter_ns())
        self.proposing_ns.append(self.propose_ns)
        self.tokens += tokens
        self.committed.append(len(tokens))

    def end(self) -> None:
        """Nothing to flush."""

    def count_forward(self, *args: Any) -> None:
        """A forward hook of the target, which drafts too when it exits early."""
        if self.drafting:
            self.draft_forwards += 1
        else:
            self.forwards += 1

    def count_draft_forward(self, *args: Any) -> None:
        """A forward hook of the draft model."""
        self.draft_forwards += 1

    def count_whole_forward(self, *args: Any) -> None:
        """A forward hook of the first layer that an early exit leaves out."""
        self.whole_forwards += 1


class CandidateProxy:
    """A candidate generator that is timed and counted; everything else is the generator's own.

    Args:
        generator: the real one.
        recorder: what counts.
        proposed: the generator's attribute that holds a draft's tokens, where the draft is a tree.
    """

    def __init__(self, generator: Any, recorder: Recorder, *, proposed: str | None = None) -> None:
        self._generator = generator
        self._proposed = attrgetter(proposed) if proposed else None
        self._recorder = recorder
        recorder.generator = type(generator).__name__
        heads = getattr(generator, "mtp_model", None)  # made for this call, so its hook ends with it
        if isinstance(heads, torch.nn.Module):
            heads.register_forward_hook(recorder.count_draft_forward)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def get_candidates(self, input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, Any]:
        """Propose, and count what was proposed."""
        start_ns = perf_counter_ns()
        self._recorder.drafting = True
        candidates, logits = self._generator.get_candidates(input_ids, *args, **kwargs)
        self._recorder.drafting = False
        self._recorder.propose_ns += perf_counter_ns() - start_ns
        depth = candidates.shape[1] - input_ids.shape[1]
        self._recorder.proposed.append(len(self._proposed(self._generator)) if self._proposed else depth)
        self._recorder.depths.append(depth)
        return candidates, logits

    def update_candidate_strategy(self, *args: Any, **kwargs: Any) -> Any:
        """Learn from the last step."""
        start_ns = perf_counter_ns()
        result = self._generator.update_candidate_strategy(*args, **kwargs)
        self._recorder.propose_ns += perf_counter_ns() - start_ns
        return result


def record(recorder: Recorder, request: Request, *, start_ns: int, end_ns: int) -> Generation:
    """Cut the output at the cap or the first end-of-sequence, and say what each forward contributed to it."""
    tokens = recorder.tokens[: request.max_new_tokens]
    for place, token in enumerate(tokens):
        if token in request.eos_token_ids:
            tokens = tokens[: place + 1]
            break
    steps: list[Step] = []
    known = 0
    last_ns = recorder.times_ns[0]
    for forward, count in enumerate(recorder.committed):
        kept = max(0, min(count, len(tokens) - known))
        known += count
        if kept:
            last_ns = recorder.times_ns[forward]
        proposed, depth = (recorder.proposed[forward], recorder.depths[forward]) if recorder.proposed else (0, 0)
        # The last of a forward's tokens is the model's own; when the cut removed it, all that is left was drafted.
        steps.append((proposed, depth, min(kept, count - 1)))
    first_ns = recorder.times_ns[0]
    return Generation(
        new_token_ids=tokens,
        finish_reason=finish_reason(tokens, request.eos_token_ids),
        wall_ns=end_ns - start_ns,
        ttft_ns=first_ns - start_ns,
        decode_ns=last_ns - first_ns,
        propose_ns=recorder.propose_ns,
        verify_ns=recorder.times_ns[-1] - first_ns - (recorder.proposing_ns[-1] - recorder.proposing_ns[0]),
        forwards=recorder.forwards,
        steps=steps,
        draft_forwards=recorder.draft_forwards,
        overrun_tokens=len(recorder.tokens) - len(tokens),
    )
