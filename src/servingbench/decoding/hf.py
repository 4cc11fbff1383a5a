"""transformers' own generate as a method: the peers that the project's loop is compared with.

Plain decoding, prompt lookup, a draft model with the target's tokenizer or its own, early exit (LayerSkip), multi-token
prediction heads, DFlash. Multi-token prediction reads its heads from the checkpoint at every call of generate
(transformers 5.24), which is in the time to the first token.

Counting is by delegation on one instance, undone afterwards: forward hooks on the models, a streamer that sees every
batch of committed tokens, and a proxy around the candidate generator that ``_get_candidate_generator`` returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList

from servingbench.decoding import hf_speculation as speculation
from servingbench.decoding.hf_recorder import CandidateProxy, ForcedReplay, Recorder, record
from servingbench.decoding.target import synchronize
from servingbench.decoding.types import Generation, Request
from servingbench.errors import UserError

ASSISTANT_OPTIONS = frozenset(
    {"num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold"}
)  # read by transformers from the assistant's generation config
GREETING = "Once upon a time"  # for a warm-up that must survive another tokenizer; token 0 is often no text
# What transformers' own code raises for a model that it was not written for: it checks little beforehand.
NOT_WRITTEN_FOR_IT = (RuntimeError, ValueError, LookupError, TypeError)


class TransformersMethod:
    """A method that goes through ``model.generate``.

    Args:
        name: the method's name.
        model: the target.
        draft_model: an assistant, for speculation with a draft model.
        tokenizers: the target's and the draft model's, for a draft model with a tokenizer of its own.
        options: generation options; those of the assistant are set on it.

    Raises:
        UserError: for an option that transformers does not know, and for models that cannot do what the row says.
    """

    def __init__(
        self,
        name: str,
        *,
        model: Any,
        draft_model: Any = None,
        tokenizers: tuple[Any, Any] | None = None,
        options: dict[str, Any],
    ) -> None:
        self.name = name
        self.model = model
        self.draft_model = draft_model
        self._options = options
        self._speculation = speculation.claimed(
            name, options, draft_model=draft_model, other_tokenizer=tokenizers is not None
        )
        self._assistant = {} if draft_model is None else {"assistant_model": draft_model}
        self._proposed: str | None = None
        self._left_out: torch.nn.Module | None = None
        self._greeting = (0, 0)
        if options.get("assistant_early_exit"):
            self._left_out = speculation.check_early_exit(name, model, options["assistant_early_exit"])
        elif options.get("use_mtp"):
            speculation.check_mtp(name, model)
        elif options.get("speculation_type"):
            speculation.check_dflash(name, model, draft_model)
        elif tokenizers is not None:
            speculation.check_other_vocabulary(name, model, draft_model)
            self._assistant |= {"tokenizer": tokenizers[0], "assistant_tokenizer": tokenizers[1]}
            self._greeting = tuple(tokenizers[0](GREETING)["input_ids"])
        elif draft_model is not None:
            speculation.check_same_vocabulary(name, model, draft_model)

    def generate(self, request: Request) -> Generation:
        """Answer one request, greedily or as a forced replay."""
        if not request.is_greedy:
            remedy = "take a method of the loop, or temperature 0"
            raise UserError("methods of transformers are measured greedily", key=self.name, remedy=remedy)
        recorder = Recorder()
        prompt = torch.tensor([request.prompt_ids], device=self.model.device)
        processors = LogitsProcessorList()
        if request.reference is not None:
            processors.append(ForcedReplay(request.reference, prompt=prompt.shape[1]))
        if request.max_new_tokens < 1 or (request.reference is not None and not request.reference):
            return Generation([], "length", 0, 0, 0)
        # Without any, prompt lookup in transformers 4.57 compares with None: name a token that no text holds.
        eos = sorted(request.eos_token_ids) or [speculation.vocabulary_size(self.model)]
        config = GenerationConfig(
            do_sample=False,
            max_new_tokens=request.max_new_tokens,
            eos_token_id=eos,
            pad_token_id=0,  # one text has no padding; unset, transformers warns
            **{key: value for key, value in self._options.items() if key not in ASSISTANT_OPTIONS},
        )
        arguments = self._arguments()
        with self._prepared(recorder):
            synchronize(self.model.device)
            start_ns = perf_counter_ns()
            self.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                generation_config=config,
                logits_processor=processors,
                streamer=recorder,
                **arguments,
            )
            synchronize(self.model.device)
            end_ns = perf_counter_ns()
        self._check(recorder)
        return record(recorder, request, start_ns=start_ns, end_ns=end_ns)

    def _arguments(self) -> dict[str, Any]:
        """Further arguments of generate(), made outside its time."""
        return self._assistant

    def observe(self, prompt_ids: Sequence[int], new_token_ids: Sequence[int]) -> None:
        """Nothing is shared across requests."""

    def warm_up(self) -> None:
        """One short answer, which shows what transformers cannot do with this model.

        Raises:
            UserError: with transformers' own words.
        """
        try:
            self.generate(Request(self._greeting, 4, frozenset()))
        except NOT_WRITTEN_FOR_IT as error:
            said = next(iter(str(error).strip().splitlines()), "")
            problem = f"transformers cannot do this with the model: {type(error).__name__}: {said[:300]}"
            remedy = "leave the method out for this model and revision"
            raise UserError(problem, key=self.name, value=type(self.model).__name__, remedy=remedy) from error

    @contextmanager
    def _prepared(self, recorder: Recorder) -> Iterator[None]:
        """Set the instances up for one call, and put everything back."""
        model, draft_model = self.model, self.draft_model
        original = model._get_candidate_generator

        def get_candidate_generator(*args: Any, **kwargs: Any) -> CandidateProxy:
            # The draft must not see the forced replay, or every token would be accepted.
            kwargs["logits_processor"] = LogitsProcessorList(
                processor for processor in kwargs["logits_processor"] if not isinstance(processor, ForcedReplay)
            )
            return CandidateProxy(original(*args, **kwargs), recorder, proposed=self._proposed)

        # An instance's own defaults, such as a repetition penalty, must not leak in: they are not greedy decoding. A
        # target that drafts by itself is its own assistant, so that it has the assistant's options too.
        assistant_options = {key: value for key, value in self._options.items() if key in ASSISTANT_OPTIONS}
        kept = [(one, one.generation_config) for one in (model, draft_model) if hasattr(one, "generation_config")]
        for one, _ in kept:
            one.generation_config = GenerationConfig(do_sample=False, pad_token_id=0, **assistant_options)
        hooks = [model.register_forward_hook(recorder.count_forward)]
        if draft_model is not None:
            hooks.append(draft_model.register_forward_hook(recorder.count_draft_forward))
        if self._left_out is not None:
            hooks.append(self._left_out.register_forward_hook(recorder.count_whole_forward))
        model._get_candidate_generator = get_candidate_generator
        text_config = model.config.get_text_config()
        layers = text_config.num_hidden_layers
        try:
            yield
        finally:
            if text_config.num_hidden_layers != layers:  # left behind by an early exit that failed
                text_config.num_hidden_layers = layers
            del model._get_candidate_generator
            for hook in hooks:
                hook.remove()
            for one, generation_config in kept:
                one.generation_config = generation_config

    def _check(self, recorder: Recorder) -> None:
        """Refuse a record of anything but what the method claims to be."""
        expected = self._speculation.generator
        if recorder.generator != expected:
            raise UserError(
                "transformers did not decode as the method claims",
                key=self.name,
                value=recorder.generator,
                remedy=f"expected {expected or 'no candidate generator'}; check the method's options",
            )
        if recorder.forwards != len(recorder.committed):
            raise UserError(
                "transformers' forwards and committed tokens do not pair up",
                key=self.name,
                value=(recorder.forwards, len(recorder.committed)),
                remedy="this transformers revision decodes in a way that the counting does not know",
            )
        # The first forward may come before the first draft, and the last one may have no room for any.
        if self._speculation.always_drafts and len(recorder.committed) > 2 and not any(recorder.proposed):
            raise UserError(
                f"{expected} proposed nothing in {len(recorder.committed)} forwards",
                key=self.name,
                remedy="this would be plain decoding under another name; check the method's options",
            )
        if self._left_out is not None and recorder.whole_forwards != recorder.forwards:
            raise UserError(
                "the model drafted with all of its layers, not with the first few",
                key=self.name,
                value=type(self.model).__name__,
                remedy="its code does not exit early; leave the method out for this model",
            )
