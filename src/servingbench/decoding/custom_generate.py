"""The project's loop inside transformers: ``model.generate(inputs, custom_generate=custom_generate(method))``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from servingbench.decoding.loop import LoopMethod
from servingbench.decoding.types import Request
from servingbench.errors import UserError

MODES = ("greedy_search", "sample")
STOPS = ("MaxLengthCriteria", "EosTokenCriteria")  # the loop knows them as the cap and the end-of-sequence ids


def custom_generate(method: LoopMethod) -> Callable[..., torch.Tensor]:
    """What generate() calls in place of its own loop: the same text, decoded by a method.

    generate() prepares the logits processors (temperature, top-k, top-p, penalties, ...) and hands them over; they are
    applied as its own loop applies them, greedily too. Without a seed of its own the loop draws from torch's global
    generator, so that ``torch.manual_seed`` and ``set_seed`` mean what they mean there.

    Raises:
        UserError: from the returned function, for what the loop does not do: several texts, padding, beams and other
            decoding modes, stopping criteria beyond length and end-of-sequence, a filled cache, a dictionary as result.
            A streamer or an assistant cannot be refused: generate() keeps them to itself.
    """

    def generate(
        model: Any,
        input_ids: torch.Tensor,
        generation_config: Any,
        logits_processor: Any = None,
        stopping_criteria: Sequence[Any] = (),
        **kwargs: Any,
    ) -> torch.Tensor:
        if model is not method.target.model:
            raise UserError("the method was built for another model", key=method.name, remedy="build it for this one")
        refuse_unsupported(input_ids, generation_config, stopping_criteria, kwargs)
        eos = generation_config.eos_token_id
        request = Request(
            prompt_ids=tuple(input_ids[0].tolist()),
            max_new_tokens=generation_config.max_length - input_ids.shape[1],
            eos_token_ids=frozenset(eos if isinstance(eos, list) else [] if eos is None else [eos]),
            # The temperature proper is among the processors.
            temperature=1.0 if generation_config.do_sample else 0.0,
            processors=logits_processor or None,
        )
        return torch.cat([input_ids, input_ids.new_tensor([method.generate(request).new_token_ids])], dim=1)

    return generate


def refuse_unsupported(
    input_ids: torch.Tensor, config: Any, stopping_criteria: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    """Refuse, in one sentence, a call whose answer would not be the one that was asked for.

    Args:
        input_ids: prompts, (texts, tokens).
        config: transformers' GenerationConfig.
        stopping_criteria: prepared by generate().
        kwargs: the model's inputs.
    """
    mode = config.get_generation_mode().value
    if mode not in MODES:
        remedy = f"the loop can: {', '.join(MODES)}"
        raise UserError("the loop does not decode in this mode", key="generate", value=mode, remedy=remedy)
    texts = max(input_ids.shape[0], config.num_return_sequences or 1)
    if texts > 1:
        remedy = "call it once per text and per returned sequence"
        raise UserError("the loop decodes one text at a time", key="batch size", value=texts, remedy=remedy)
    if not input_ids.shape[1]:
        raise UserError("the loop starts from token ids", key="inputs_embeds", remedy="pass a prompt of input_ids")
    mask = kwargs.get("attention_mask")
    if mask is not None and not bool(mask.all()):
        raise UserError("the loop takes no padding", key="attention_mask", remedy="pass the prompt without padding")
    cache = kwargs.get("past_key_values", kwargs.get("cache"))
    if cache is not None and cache.get_seq_length():
        raise UserError("the loop keeps a cache of its own", key="past_key_values", remedy="pass none")
    others = [type(stop).__name__ for stop in stopping_criteria if type(stop).__name__ not in STOPS]
    if others:
        remedy = "use max_new_tokens and eos_token_id"
        raise UserError("the loop knows no such stopping criterion", key="generate", value=others, remedy=remedy)
    if config.return_dict_in_generate:
        raise UserError("the loop returns token ids only", key="return_dict_in_generate", value=True)
