"""One raw record (config/schemas/raw.schema.yaml) from one arm's answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from servingbench.decoding.types import Generation, Reference
from servingbench.prompts.prepare import PreparedPrompt

SCHEMA_VERSION = 1
Timing = Literal["forced", "free"]
Record = dict[str, Any]

_MEASURED = ("wall_ns", "ttft_ns", "decode_ns", "forwards", "propose_ns", "verify_ns", "draft_forwards")


@dataclass(frozen=True)
class Place:
    """Where in the run one arm stands: workload, method, place in the prompt's order, repeat, timing mode."""

    workload: str
    method: str
    position: int
    repeat: int
    timing: Timing


def ok_record(
    prompt: PreparedPrompt,
    place: Place,
    generation: Generation,
    reference: Reference,
    *,
    peak_memory_bytes: int | None,
    no_peak_reason: str | None,
) -> Record:
    """The record of an arm that answered."""
    nulls = {} if peak_memory_bytes is not None else {"peak_memory_bytes": no_peak_reason or "not measured"}
    return {
        **_identity(prompt, place),
        "status": "ok",
        "error": None,
        "new_token_ids": list(generation.new_token_ids),
        "finish_reason": generation.finish_reason,
        "overrun_tokens": generation.overrun_tokens,
        **{name: getattr(generation, name) for name in _MEASURED},
        "steps": [list(step) for step in generation.steps],
        "peak_memory_bytes": peak_memory_bytes,
        "first_divergence": first_divergence(generation.new_token_ids, reference),
        "nulls": nulls,
    }


def failed_record(
    prompt: PreparedPrompt, place: Place, error: str, *, status: Literal["failed", "unsupported"] = "failed"
) -> Record:
    """The record of an arm that failed or was not run: no tokens, no times, and why."""
    missing = [*_MEASURED, "finish_reason", "peak_memory_bytes"]
    return {
        **_identity(prompt, place),
        "status": status,
        "error": error,
        "new_token_ids": [],
        "overrun_tokens": 0,
        **dict.fromkeys(missing),
        "steps": [],
        "first_divergence": None,
        "nulls": dict.fromkeys(missing, "the arm failed" if status == "failed" else error),
    }


def _identity(prompt: PreparedPrompt, place: Place) -> Record:
    return {
        "schema_version": SCHEMA_VERSION,
        "prompt_id": prompt.id,
        "prompt_sha256": prompt.sha256,
        "prompt_tokens": len(prompt.token_ids),
        "workload": place.workload,
        "method": place.method,
        "position": place.position,
        "repeat": place.repeat,
        "timing": place.timing,
    }


def first_divergence(new_token_ids: Sequence[int], reference: Reference) -> dict[str, Any] | None:
    """Where an output leaves the greedy reference, and the reference's top-2 logit margin there.

    An output that is a strict prefix of the reference leaves it at its own length; one that runs on beyond the
    reference's end leaves it there, where the reference has no margin (None).
    """
    greedy = reference.new_token_ids
    same = next((i for i, pair in enumerate(zip(new_token_ids, greedy, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        if len(new_token_ids) == len(greedy):
            return None
        same = min(len(new_token_ids), len(greedy))
    return {"index": same, "margin": reference.margins[same] if same < len(reference.margins) else None}
