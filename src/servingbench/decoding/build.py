"""From a row of config/methods.yaml and a loaded model to a method that can be timed."""

from __future__ import annotations

from typing import Any

import torch

from servingbench.decoding.drafts import DRAFTS, build_drafter
from servingbench.decoding.loop import LoopMethod, finish_reason
from servingbench.decoding.target import Target, check_model
from servingbench.decoding.types import Method, Reference, Request
from servingbench.errors import UserError

__all__ = ["build_method", "check_model", "greedy_reference"]


def build_method(
    name: str, row: dict[str, Any], *, model: Any, draft_model: Any = None, static_table: Any = None
) -> Method:
    """Bind a method to a loaded model.

    Args:
        name: the method's name, for messages and records.
        row: a row of config/methods.yaml: ``kind`` (loop or transformers), ``draft``, ``assistant``, ``options``.
        model: the target.
        draft_model: for ``assistant: draft_model``, its model.
        static_table: for drafts that use one, the static bigram table.

    Raises:
        UserError: for an unknown kind or draft, a wrong option, or a model that the method cannot serve.
    """
    options = dict(row.get("options") or {})
    kind = row.get("kind")
    if kind == "loop":
        draft = row.get("draft", "none")
        if draft not in DRAFTS:
            raise UserError("unknown draft", key=name, value=draft, remedy=f"known drafts: {', '.join(sorted(DRAFTS))}")
        return LoopMethod(name, Target(model), build_drafter(draft, options))
    raise UserError("unknown kind of method", key=name, value=kind, remedy="use loop or transformers")


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
        output.append(int(logits[0].argmax()))
        best, second = logits[0].float().topk(2).values.tolist()
        margins.append(best - second)
    return Reference(output, finish_reason(output, request.eos_token_ids), margins)
