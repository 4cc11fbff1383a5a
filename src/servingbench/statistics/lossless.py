"""The lossless gate: does a method, running free, write what the model would have written greedily?

In float32 every method must reproduce the greedy output token for token. In bfloat16 and float16 it cannot: exact
logit ties occur at one to two percent of the tokens, and verifying k + 1 rows rounds differently from verifying one.
Each output is therefore teacher-forced on its own prefix with float32 weights, in one forward without any cache, and
every token's gap

    gap_i = max(logits_i) - logits_i[token_i]

must be at most epsilon (in float32 too, where it judges the loop that the baseline and the methods share). Every token,
not only the first that differs from greedy: a corrupted cache may first diverge on an honest tie and write nonsense
only later.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from servingbench.decoding import greedy_reference
from servingbench.decoding.types import Generation, Method, Reference, Request
from servingbench.errors import UserError
from servingbench.measure.record import first_divergence
from servingbench.measure.runner import ARM_FAILURES, one_line
from servingbench.prompts.prepare import PreparedPrompt

Gaps = list[float]


@dataclass(frozen=True)
class Gate:
    """What is audited and how strictly.

    Attributes:
        model: the target, in the run's dtype.
        methods: the methods by name.
        prompts: the audited prompts, rendered.
        max_new_tokens: cap on new tokens.
        eos_token_ids: what ends an answer.
        epsilon: largest allowed gap, in logits.
    """

    model: Any
    methods: Mapping[str, Method]
    prompts: Sequence[PreparedPrompt]
    max_new_tokens: int
    eos_token_ids: frozenset[int]
    epsilon: float


def audit(gate: Gate, progress: Callable[[str, str, Generation | None], None] | None = None) -> dict[str, Any]:
    """Run every method free on every prompt and judge what it wrote.

    The baseline is the plain greedy loop: one token per forward.

    Args:
        gate: what to audit.
        progress: told (prompt id, method, its answer or None when it failed) after each one.

    Returns:
        ``baseline_worst_gap`` and ``methods`` as in config/schemas/lossless.schema.yaml.
    """
    answers: dict[str, dict[str, Generation]] = {name: {} for name in gate.methods}
    errors: dict[str, str] = {}
    greedy: dict[str, Reference] = {}
    for method in gate.methods.values():
        method.warm_up()
    for prompt in gate.prompts:
        request = Request(prompt.token_ids, gate.max_new_tokens, gate.eos_token_ids)
        greedy[prompt.id] = greedy_reference(gate.model, request)
        for name, method in gate.methods.items():
            try:
                answers[name][prompt.id] = method.generate(request)
            except ARM_FAILURES as failure:
                errors.setdefault(name, f"{prompt.id}: {one_line(failure)}")
            if progress:
                progress(prompt.id, name, answers[name].get(prompt.id))
        for method in gate.methods.values():
            method.observe(prompt.token_ids, greedy[prompt.id].new_token_ids)
    gaps = _Gaps(gate.model)
    baseline = [max(gaps(prompt, greedy[prompt.id].new_token_ids), default=0.0) for prompt in gate.prompts]
    methods = {name: _judge(gate, answers[name], greedy, gaps, errors.get(name)) for name in gate.methods}
    return {"baseline_worst_gap": max(baseline, default=0.0), "methods": methods}


def _judge(
    gate: Gate,
    answers: Mapping[str, Generation],
    greedy: Mapping[str, Reference],
    gaps: _Gaps,
    error: str | None,
) -> dict[str, Any]:
    """One method's entry: its worst gap, every prompt's record, and the first reason to fail it."""
    records: list[dict[str, Any]] = []
    identical, reason = 0, f"failed on {error}" if error else None
    for prompt in gate.prompts:
        if prompt.id not in answers:
            continue
        answer, reference = answers[prompt.id], greedy[prompt.id]
        tokens = answer.new_token_ids
        own = gaps(prompt, tokens)
        worst = max(range(len(own)), key=own.__getitem__, default=0)
        diverged = first_divergence(tokens, reference)
        identical += diverged is None
        records.append(
            {
                "prompt_id": prompt.id,
                "worst_gap": own[worst] if own else 0.0,
                "worst_index": worst,
                "overrun_tokens": answer.overrun_tokens,
                "first_divergence": diverged,
            }
        )
        reason = reason or _fault(gate, prompt, tokens, diverged, own, worst)
    return {
        "passed": reason is None,
        "reason": reason,
        "worst_gap": max((record["worst_gap"] for record in records), default=None),
        "identical_outputs": identical,
        "prompts": len(records),
        "records": records,
    }


def _fault(
    gate: Gate,
    prompt: PreparedPrompt,
    tokens: Sequence[int],
    diverged: Mapping[str, Any] | None,
    gaps: Gaps,
    worst: int,
) -> str | None:
    """Why this output is not what the model writes, or None."""
    ends = [index for index, token in enumerate(tokens) if token in gate.eos_token_ids]
    if len(tokens) > gate.max_new_tokens or (ends and ends[0] != len(tokens) - 1):
        return f"{prompt.id}: the output runs on beyond its end ({len(tokens)} tokens)"
    if len(tokens) < gate.max_new_tokens and not ends:
        return f"{prompt.id}: the output stops after {len(tokens)} tokens, without an end-of-sequence token"
    if gate.model.dtype == torch.float32 and diverged is not None:
        where = f"{prompt.id}: token {diverged['index']} differs from greedy in float32"
        return f"{where} (the worst gap is {gaps[worst]:.4g}, at token {worst})"
    if gaps and gaps[worst] > gate.epsilon:
        return f"{prompt.id}: token {worst} lies {gaps[worst]:.4g} below the best logit, more than {gate.epsilon:g}"
    return None


class _Gaps:
    """Every token's gap under float32 weights; each different output of a prompt is computed once."""

    def __init__(self, model: Any) -> None:
        self._model = float32_twin(model)
        self._known: dict[tuple[str, tuple[int, ...]], Gaps] = {}

    def __call__(self, prompt: PreparedPrompt, new_token_ids: Sequence[int]) -> Gaps:
        key = (prompt.sha256, tuple(new_token_ids))
        if key not in self._known:
            self._known[key] = teacher_forced_gaps(self._model, prompt.token_ids, new_token_ids)
        return self._known[key]


def float32_twin(model: Any) -> Any:
    """The same model with float32 weights: itself when it has them, else a copy (4 bytes per parameter more)."""
    if model.dtype == torch.float32:
        return model
    twin = copy.deepcopy(model).float().eval()
    if getattr(twin.config, "_attn_implementation", "sdpa") not in ("sdpa", "eager"):
        twin.set_attn_implementation("sdpa")  # flash kernels have no float32
    return twin


@torch.inference_mode()
def teacher_forced_gaps(model: Any, prompt_ids: Sequence[int], new_token_ids: Sequence[int]) -> Gaps:
    """max(logits) - logit[token] of every new token, given the prompt and the new tokens before it, in one forward.

    Args:
        model: with float32 weights.
        prompt_ids: the rendered prompt, at least one token.
        new_token_ids: the output, N tokens.

    Returns:
        N gaps, in logits, each at least 0.

    Raises:
        UserError: when the logits are not finite: nothing can be judged by them.
    """
    count = len(new_token_ids)
    if not count:
        return []
    text = torch.tensor([[*prompt_ids, *new_token_ids[:-1]]], device=model.device)
    keep = {"logits_to_keep": count} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
    logits = model(input_ids=text, use_cache=False, **keep).logits[0, -count:].float()
    chosen = logits.gather(1, torch.tensor(list(new_token_ids), device=logits.device)[:, None])[:, 0]
    if not bool(torch.isfinite(chosen).all()):
        remedy = "the weights or the attention implementation are at fault, not a method"
        raise UserError("the model's logits are not finite in float32", key="lossless", remedy=remedy)
    gaps: Gaps = (logits.max(dim=-1).values - chosen).tolist()
    return gaps
