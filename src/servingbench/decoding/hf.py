"""transformers' own generate as a method: the peers that the project's loop is compared with.

Counting is by delegation on one instance, undone afterwards: forward hooks on the models, a streamer that sees every
batch of committed tokens, and a proxy around the candidate generator that ``_get_candidate_generator`` returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from servingbench.decoding.loop import finish_reason
from servingbench.decoding.target import synchronize
from servingbench.decoding.types import Generation, Request, Step
from servingbench.errors import UserError

ASSISTANT_OPTIONS = frozenset(
    {"num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold"}
)  # read by transformers from the assistant's generation config


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
        self.forwards = self.draft_forwards = 0
        self.tokens: list[int] = []
        self.committed: list[int] = []  # tokens per target forward
        self.proposed: list[int] = []  # draft tokens per target forward
        self.times_ns: list[int] = []  # when each forward's tokens were known
        self.proposing_ns: list[int] = []  # spent on proposing by then
        self.propose_ns = 0
        self.generator: str | None = None
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
        """A forward hook of the target."""
        self.forwards += 1

    def count_draft_forward(self, *args: Any) -> None:
        """A forward hook of the draft model."""
        self.draft_forwards += 1


class CandidateProxy:
    """A candidate generator that is timed and counted; everything else is the generator's own."""

    def __init__(self, generator: Any, recorder: Recorder) -> None:
        self._generator = generator
        self._recorder = recorder
        recorder.generator = type(generator).__name__

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def get_candidates(self, input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, Any]:
        """Propose, and count what was proposed."""
        start_ns = perf_counter_ns()
        candidates, logits = self._generator.get_candidates(input_ids, *args, **kwargs)
        self._recorder.proposed.append(candidates.shape[1] - input_ids.shape[1])
        self._recorder.propose_ns += perf_counter_ns() - start_ns
        return candidates, logits

    def update_candidate_strategy(self, *args: Any, **kwargs: Any) -> Any:
        """Learn from the last step."""
        start_ns = perf_counter_ns()
        result = self._generator.update_candidate_strategy(*args, **kwargs)
        self._recorder.propose_ns += perf_counter_ns() - start_ns
        return result


class TransformersMethod:
    """A method that goes through ``model.generate``.

    Args:
        name: the method's name.
        model: the target.
        draft_model: an assistant, for speculation with a draft model.
        options: generation options; those of the assistant are set on it.

    Raises:
        UserError: for a draft model with another vocabulary, or an option that transformers does not know.
    """

    def __init__(self, name: str, *, model: Any, draft_model: Any = None, options: dict[str, Any]) -> None:
        self.name = name
        self.model = model
        self.draft_model = draft_model
        self._options = options
        known = vars(GenerationConfig())
        for option, value in options.items():
            if option not in known:
                raise UserError("unknown generation option", key=f"{name}: {option}", value=value)
        self._assistant_options = {key: options[key] for key in ASSISTANT_OPTIONS & options.keys()}
        if draft_model is not None:
            check_vocabularies(model, draft_model)
            self._generator: str | None = "AssistedCandidateGenerator"
        else:
            self._generator = "PromptLookupCandidateGenerator" if "prompt_lookup_num_tokens" in options else None

    def generate(self, request: Request) -> Generation:
        """Answer one request, greedily or as a forced replay."""
        recorder = Recorder()
        prompt = torch.tensor([request.prompt_ids], device=self.model.device)
        processors = LogitsProcessorList()
        if request.reference is not None:
            processors.append(ForcedReplay(request.reference, prompt=prompt.shape[1]))
        if request.max_new_tokens < 1 or (request.reference is not None and not request.reference):
            return Generation([], "length", 0, 0, 0)
        with self._prepared(recorder, request, processors):
            synchronize(self.model.device)
            start_ns = perf_counter_ns()
            arguments = {} if self.draft_model is None else {"assistant_model": self.draft_model}
            self.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                logits_processor=processors,
                streamer=recorder,
                **arguments,
            )
            synchronize(self.model.device)
            end_ns = perf_counter_ns()
        self._check(recorder)
        return record(recorder, request, start_ns=start_ns, end_ns=end_ns)

    def observe(self, prompt_ids: Sequence[int], new_token_ids: Sequence[int]) -> None:
        """Nothing is shared across requests."""

    def warm_up(self) -> None:
        """One short answer."""
        self.generate(Request((0, 0), 4, frozenset()))

    @contextmanager
    def _prepared(self, recorder: Recorder, request: Request, processors: LogitsProcessorList) -> Iterator[None]:
        """Set the instances up for one call, and put everything back."""
        model, draft_model = self.model, self.draft_model
        original = model._get_candidate_generator

        def get_candidate_generator(*args: Any, **kwargs: Any) -> CandidateProxy:
            # The draft must not see the forced replay, or every token would be accepted.
            kwargs["logits_processor"] = LogitsProcessorList(
                processor for processor in kwargs["logits_processor"] if not isinstance(processor, ForcedReplay)
            )
            return CandidateProxy(original(*args, **kwargs), recorder)

        # Without any, prompt lookup in transformers 4.57 compares with None: name a token that no text holds.
        eos = sorted(request.eos_token_ids) or [model.config.get_text_config().vocab_size]
        config = GenerationConfig(
            do_sample=False,
            max_new_tokens=request.max_new_tokens,
            eos_token_id=eos,
            pad_token_id=0,  # one text has no padding; unset, transformers warns
            **{key: value for key, value in self._options.items() if key not in ASSISTANT_OPTIONS},
        )
        # The instance's own defaults, such as a repetition penalty, must not leak in: they are not greedy decoding.
        kept = [(model, model.generation_config)]
        model.generation_config = config
        hooks = [model.register_forward_hook(recorder.count_forward)]
        model._get_candidate_generator = get_candidate_generator
        if draft_model is not None:
            kept.append((draft_model, draft_model.generation_config))
            draft_model.generation_config = GenerationConfig(do_sample=False, pad_token_id=0, **self._assistant_options)
            hooks.append(draft_model.register_forward_hook(recorder.count_draft_forward))
        try:
            yield
        finally:
            del model._get_candidate_generator
            for hook in hooks:
                hook.remove()
            for owner, generation_config in kept:
                owner.generation_config = generation_config

    def _check(self, recorder: Recorder) -> None:
        """Refuse a record of anything but what the method claims to be."""
        if recorder.generator != self._generator:
            raise UserError(
                "transformers did not decode as the method claims",
                key=self.name,
                value=recorder.generator,
                remedy=f"expected {self._generator or 'no candidate generator'}; check the method's options",
            )
        if recorder.forwards != len(recorder.committed):
            raise UserError(
                "transformers' forwards and committed tokens do not pair up",
                key=self.name,
                value=(recorder.forwards, len(recorder.committed)),
                remedy="this transformers revision decodes in a way that the counting does not know",
            )


def check_vocabularies(model: Any, draft_model: Any) -> None:
    """Refuse a draft model that speaks of other tokens."""
    sizes = tuple(one.config.get_text_config().vocab_size for one in (model, draft_model))
    if sizes[0] != sizes[1]:
        raise UserError(
            "the draft model has another vocabulary than the target",
            key="draft_model",
            value=sizes[1],
            remedy=f"use a draft model with the target's {sizes[0]} tokens",
        )


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
        proposed = recorder.proposed[forward] if recorder.proposed else 0
        # The last of a forward's tokens is the model's own; when the cut removed it, all that is left was drafted.
        steps.append((proposed, proposed, min(kept, count - 1)))
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
