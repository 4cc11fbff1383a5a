"""The figures of the benchmark: ours beside Arctic's and transformers', their ratios, intervals where there are any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from servingbench.decoding.jit import Floats
from servingbench.simulate.corpus import Recording
from servingbench.statistics.bootstrap import Resampler, Task, estimate, resample

Figure = dict[str, Any]
Groups = dict[str, list[int]]
"""Task -> the places in the corpus of its recordings that count."""

FIGURES = {
    "tokens_per_forward_tree": ("tokens", "higher"),
    "tokens_per_forward_path": ("tokens", "higher"),
    "tokens_per_forward_tree_global": ("tokens", "higher"),
    "decode_speedup_tree": ("ratio", "higher"),
    "decode_speedup_path": ("ratio", "higher"),
    "propose_us_tree": ("us", "lower"),
    "propose_us_path": ("us", "lower"),
    "index_build_us": ("us/token", "lower"),
    "index_append_us": ("us/token", "lower"),
    "host_us_per_step_tree": ("us", "lower"),
    "between_forwards_us": ("us", "lower"),
    "index_bytes_per_token": ("bytes", "lower"),
}
PAIRED = tuple(name for name, (_, better) in FIGURES.items() if better == "higher")
PEERS = ("arctic", "transformers")
CONFIDENCE = 0.95


def groups(recordings: Sequence[Recording], *, half: int, left_out: Sequence[bool] | None = None) -> Groups:
    """The recordings whose place within their task is even (half 0) or odd (half 1), less those ``left_out``."""
    chosen: Groups = {}
    seen: dict[str, int] = {}
    for place, recording in enumerate(recordings):
        within = seen[recording.task] = seen.get(recording.task, -1) + 1
        if within % 2 == half and not (left_out and left_out[place]):
            chosen.setdefault(recording.task, []).append(place)
    return chosen


def mean_log(logs: Floats, chosen: Groups) -> float | None:
    """The mean over tasks of their prompts' means, nan left out; of logarithms, so a geometric mean."""
    known = [values for places in chosen.values() if len(values := _known(logs, places))]
    return float(np.mean([values.mean() for values in known])) if known else None


def paired_figure(
    name: str, logs: Mapping[str, Floats], chosen: Groups, *, absent: Mapping[str, str], resampler: Resampler
) -> Figure:
    """A figure whose values are per prompt: geometric means over tasks, and paired ratios with bootstrap-t intervals.

    Args:
        name: of the figure.
        logs: "ours" and the peers that there are -> logarithms by place in the corpus, nan where there is none.
        chosen: the places that count.
        absent: why a peer is missing.
        resampler: the same for all figures, so that they share their resampled prompts.
    """
    means = {arm: mean_log(values, chosen) for arm, values in logs.items()}
    figure = scalar_figure(
        name, {arm: None if mean is None else float(np.exp(mean)) for arm, mean in means.items()}, absent=absent
    )
    figure["n"] = sum(len(_known(logs["ours"], places)) for places in chosen.values()) if logs else 0
    for peer in PEERS:
        if means.get(peer) is None or means["ours"] is None:
            continue
        tasks = _resampled(logs["ours"] - logs[peer], chosen, resampler)
        found = estimate(tasks, confidence=CONFIDENCE, kind="bootstrap-t")
        figure[f"ratio_{peer}"] = float(np.exp(found.mean))
        figure["reasons"].pop(f"ratio_{peer}_ci", None)
        if found.interval:
            figure[f"ratio_{peer}_ci"] = [float(np.exp(end)) for end in found.interval]
        else:
            figure["reasons"][f"ratio_{peer}_ci"] = found.reason
    return figure


def scalar_figure(name: str, values: Mapping[str, float | None], *, absent: Mapping[str, str]) -> Figure:
    """A figure of one number per arm: a median over many repeats, or a count.

    Args:
        name: of the figure.
        values: "ours" and the peers that there are.
        absent: why one of them is missing.
    """
    unit, better = FIGURES[name]
    ours = values.get("ours")
    figure: Figure = {"unit": unit, "better": better, "ours": ours, "n": 0, "reasons": {}}
    if ours is None:
        figure["reasons"]["ours"] = absent.get("ours", "no prompt is left")
    for peer in PEERS:
        theirs = values.get(peer)
        figure[peer] = theirs
        figure[f"ratio_{peer}"] = ours / theirs if ours is not None and theirs else None
        figure[f"ratio_{peer}_ci"] = None
        if theirs is None:
            reason = absent.get(peer) or absent.get("ours") or "no prompt is left"
            figure["reasons"] |= dict.fromkeys((peer, f"ratio_{peer}", f"ratio_{peer}_ci"), reason)
        else:
            figure["reasons"][f"ratio_{peer}_ci"] = "not measured per prompt"
    return figure


def _known(logs: Floats, places: Sequence[int]) -> Floats:
    values = logs[list(places)]
    return values[np.isfinite(values)]


def _resampled(logs: Floats, chosen: Groups, resampler: Resampler) -> list[Task]:
    known = {task: _known(logs, places) for task, places in chosen.items()}
    return [resample(d, resampler.indices(task, n=len(d))) for task, d in known.items() if len(d)]
