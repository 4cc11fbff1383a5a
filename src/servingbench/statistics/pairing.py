"""Pairing two arms prompt by prompt: only the same prompt, rendered the same, that got the same text is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servingbench.metrics.records import Record, committed, ok

Floats = NDArray[np.float64]
Arm = Mapping[str, Mapping[int, Record]]


@dataclass(frozen=True)
class Pairs:
    """The paired prompts of one method and its reference on one workload; every array has shape [n].

    Attributes:
        prompts: their ids.
        log_ratios: d_i, the mean over repeats of ln(T_reference / T_method), T = W/N.
        wall_reference_ns: W of the reference, summed over the paired repeats.
        wall_method_ns: W of the method, likewise.
        rates_reference: tokens per second of the reference, mean over the paired repeats.
        rates_method: tokens per second of the method, likewise.
        identical: prompts on which both arms wrote the same tokens in every paired repeat.
        excluded: how many prompts were left out, by reason.
    """

    prompts: tuple[str, ...]
    log_ratios: Floats
    wall_reference_ns: Floats
    wall_method_ns: Floats
    rates_reference: Floats
    rates_method: Floats
    identical: int
    excluded: Mapping[str, int]


def by_prompt(records: Sequence[Record]) -> Arm:
    """The records that did not fail: prompt id -> repeat -> record, in the order of the file."""
    arm: dict[str, dict[int, Record]] = {}
    for record in ok(records):
        arm.setdefault(record["prompt_id"], {})[record["repeat"]] = record
    return arm


def pair(reference: Sequence[Record], method: Sequence[Record]) -> Pairs:
    """Pair the records of two arms by prompt id, rendered prompt (its SHA-256) and repeat.

    A prompt is left out, and counted under a reason, when either arm has no good record of it, when the two rendered it
    differently, when their outputs differ (a free run in low precision: other texts are other work), or when a time per
    token does not exist.
    """
    left, right = by_prompt(reference), by_prompt(method)
    prompts = dict.fromkeys(record["prompt_id"] for record in [*reference, *method])
    excluded: Counter[str] = Counter()
    rows: list[tuple[float, float, float, float, float]] = []
    kept: list[str] = []
    identical = 0
    for prompt in prompts:
        ours, theirs = left.get(prompt, {}), right.get(prompt, {})
        pairs = [(ours[repeat], theirs[repeat]) for repeat in sorted(ours.keys() & theirs.keys())]
        if not pairs:
            excluded["no good record in both arms"] += 1
        elif any(a["prompt_sha256"] != b["prompt_sha256"] for a, b in pairs):
            excluded["the rendered prompts differ"] += 1
        elif any(a["new_token_ids"] != b["new_token_ids"] for a, b in pairs):
            excluded["the outputs differ"] += 1
        else:
            identical += 1
            if all(committed(record) and record["wall_ns"] for both in pairs for record in both):
                rows.append(_row(pairs))
                kept.append(prompt)
            else:
                excluded["no time per token"] += 1
    columns = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    return Pairs(
        tuple(kept), columns[0], columns[1], columns[2], columns[3], columns[4], identical=identical, excluded=excluded
    )


def _row(pairs: Sequence[tuple[Record, Record]]) -> tuple[float, float, float, float, float]:
    walls = np.array([[record["wall_ns"] for record in both] for both in pairs], dtype=np.float64)
    tokens = np.array([[committed(record) for record in both] for both in pairs], dtype=np.float64)
    log_seconds_per_token = np.log(walls / tokens)
    rates = (tokens / walls * 1e9).mean(axis=0)
    totals = walls.sum(axis=0)
    log_ratio = (log_seconds_per_token[:, 0] - log_seconds_per_token[:, 1]).mean()
    return float(log_ratio), float(totals[0]), float(totals[1]), float(rates[0]), float(rates[1])
