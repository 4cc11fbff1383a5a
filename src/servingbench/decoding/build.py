"""From a row of config/methods.yaml and a loaded model to a method that can be timed."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from servingbench.decoding.drafts import DRAFTS
from servingbench.decoding.greedy import greedy_token
from servingbench.decoding.loop import LoopMethod, finish_reason
from servingbench.decoding.target import Target, check_model
from servingbench.decoding.types import Method, Reference, Request
from servingbench.errors import UserError

__all__ = ["build_method", "check_model", "greedy_reference"]


def build_method(
    name: str,
    row: dict[str, Any],
    *,
    model: Any,
    draft_model: Any = None,
    tokenizers: tuple[Any, Any] | None = None,
    static_table: Any = None,
) -> Method:
    """Bind a method to a loaded model.

    Args:
        name: the method's name, for messages and records.
        row: a row of config/methods.yaml: ``kind`` (loop or transformers), ``draft``, ``assistant``,
            ``assistant_tokenizer``, ``options``.
        model: the target.
        draft_model: for ``assistant: draft_model``, its model.
        tokenizers: for ``assistant_tokenizer: own``, the target's and the draft model's.
        static_table: for drafts that use one, the static bigram table.

    Raises:
        UserError: for an unknown kind or draft, a wrong option, or a model that the method cannot serve.
    """
    options = dict(row.get("options") or {})
    kind = row.get("kind")
    if kind == "transformers":
        from servingbench.decoding.hf import TransformersMethod  # the one module that needs transformers to import

        assistant = None
        if row.get("assistant") is not None:
            if draft_model is None:
                raise UserError(
                    "the method needs a draft model and the model's row names none",
                    key=name,
                    remedy="set draft_model in config/models.yaml, or leave the method out",
                )
            assistant = draft_model
        own = row.get("assistant_tokenizer") is not None
        if own and tokenizers is None:
            raise UserError("the method needs both tokenizers", key=name, remedy="pass tokenizers")
        pair = tokenizers if own else None
        return TransformersMethod(name, model=model, draft_model=assistant, tokenizers=pair, options=options)
    if kind == "generate_kwargs":
        from servingbench.decoding.hf_fork import ForkMethod

        return ForkMethod(name, model=model, row=row)
    if kind != "loop":
        remedy = "use loop, transformers or generate_kwargs"
        raise UserError("unknown kind of method", key=name, value=kind, remedy=remedy)
    draft = row.get("draft", "none")
    if draft not in DRAFTS:
        raise UserError("unknown draft", key=name, value=draft, remedy=f"known drafts: {', '.join(sorted(DRAFTS))}")
    if options.pop("static_table", False):
        if static_table is None:
            raise UserError(
                "the method drafts from a static table and there is none",
                key=name,
                remedy="make the model's table first, or set static_table: false",
            )
        options["static_table"] = static_table
    known = inspect.signature(DRAFTS[draft]).parameters
    for option, value in options.items():
        if option not in known:
            raise UserError(
                f"the draft {draft} has no such option",
                key=f"{name}: {option}",
                value=value,
                remedy=f"it has: {', '.join(known) or 'none'}",
            )
    return LoopMethod(name, Target(model), DRAFTS[draft](**options))


@torch.inference_mode()
def greedy_reference(model: Any, request: Request) -> Reference:
    """Greedy decoding, one token per forward, with the top-2 logit margin of every token. Not timed."""
    target = Target(model)
    cache = target.new_cache(prompt=len(request.prompt_ids), new=request.max_new_tokens, draft=0)
    output: list[int] = []
    margins: list[float] = []
    while len(output) < request.max_new_tokens and not (output and output[-1] in request.eos_token_ids):
        if output:
            logits = target.verify(cache, output[-1], None)
            cache.commit([0])
        else:
            logits = target.prefill(cache, request.prompt_ids)
        output.append(greedy_token(logits[0]))
        best, second = logits[0].float().topk(2).values.tolist()
        margins.append(best - second)
    return Reference(output, finish_reason(output, request.eos_token_ids), margins)
