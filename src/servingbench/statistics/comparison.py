"""One method against one reference: the comparisons of statistics.json, on each workload and over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from servingbench.metrics.records import Record, ok
from servingbench.statistics.audits import Verdicts
from servingbench.statistics.bootstrap import Interval, Resampler, Task, estimate, resample
from servingbench.statistics.pairing import Pairs, pair
from servingbench.statistics.sample_size import n_to_resolve
from servingbench.statistics.settings import OVERALL, Settings

Comparison = dict[str, Any]
Arms = Mapping[tuple[str, str], Sequence[Record]]
"""(workload, method) -> its raw records."""
NUMBERS = (
    "speedup",
    "ci",
    "percentile_ci",
    "speedup_total",
    "speedup_mean_of_rates",
    "p_value",
    "p_holm",
    "n_to_resolve",
)


@dataclass(frozen=True)
class Cell:
    """One pair of arms on one workload.

    Attributes:
        workload: its name.
        pairs: the paired prompts.
        status: ``ok``, or why there is nothing to compare: ``unsupported``, ``failed``, ``not_lossless``.
        reason: why, None where ok.
        task: the resampled d, None where there is none.
    """

    workload: str
    pairs: Pairs
    status: str
    reason: str | None
    task: Task | None


def compare(
    method: str, reference: str, arms: Arms, verdicts: Verdicts, settings: Settings, resampler: Resampler
) -> tuple[list[Comparison], list[str]]:
    """Compare two arms on every workload, then over all of them.

    Speedups are of the reference's time over the method's:

    - ``speedup``: exp(mean d); over all workloads, of the equal-weight mean of their means;
    - ``speedup_total``: sum W_reference / sum W_method, prompts of all workloads together;
    - ``speedup_mean_of_rates``: mean(tok/s) of the method over the reference's, prompts of all workloads together.

    Over all workloads there is only a comparison where there is one on each: a mean over fewer would be of other work
    than its neighbours in the table.

    Returns:
        One comparison per workload and one ``overall`` (config/schemas/statistics.schema.yaml, ``p_holm`` still null),
        and notes on what was left out.
    """
    cells = [_cell(workload, method, reference, arms, verdicts, resampler) for workload in settings.workloads]
    primary = method == settings.primary and reference == settings.baseline
    arms_named = {"method": method, "reference": reference}
    comparisons = [
        {**arms_named, "scope": cell.workload, **_compare([cell], settings), "primary": False} for cell in cells
    ]
    comparisons.append({**arms_named, "scope": OVERALL, **_compare(cells, settings), "primary": primary})
    notes = [
        f"{cell.workload}: {method} against {reference}: {count} of {count + _n(cell)} prompts left out, {reason}."
        for cell in cells
        if cell.status == "ok"
        for reason, count in cell.pairs.excluded.items()
    ]
    return comparisons, notes


def _n(cell: Cell) -> int:
    return len(cell.pairs.log_ratios)


def _cell(workload: str, method: str, reference: str, arms: Arms, verdicts: Verdicts, resampler: Resampler) -> Cell:
    pairs = pair(arms[workload, reference], arms[workload, method])
    for arm in (method, reference):
        if not ok(arms[workload, arm]):
            errors = _errors(arms[workload, arm])
            if arms[workload, arm][0]["status"] == "unsupported":
                return Cell(workload, pairs, "unsupported", f"{arm}: {errors}", None)
            return Cell(workload, pairs, "failed", f"every record of {arm} failed: {errors}", None)
    for arm in (method, reference):
        if (reason := verdicts[workload, arm]) is not None:
            return Cell(workload, pairs, "not_lossless", f"{arm} failed the lossless gate: {reason}", None)
    n = len(pairs.log_ratios)
    task = resample(pairs.log_ratios, resampler.indices(workload, n=n)) if n else None
    return Cell(workload, pairs, "ok", None, task)


def _errors(records: Sequence[Record]) -> str:
    texts = dict.fromkeys(record["error"] or "no reason was recorded" for record in records)
    return "; ".join(texts)[:300]


def _compare(cells: Sequence[Cell], settings: Settings) -> Comparison:
    """The fields of a comparison over ``cells``, but for its names."""
    identical = sum(cell.pairs.identical for cell in cells)
    for status in ("unsupported", "failed", "not_lossless"):
        bad = [cell for cell in cells if cell.status == status]
        if bad:
            where = "; ".join(f"{cell.workload}: {cell.reason}" for cell in bad) if len(cells) > 1 else bad[0].reason
            return _without_numbers(status, where, identical)
    tasks = [cell.task for cell in cells if cell.task is not None]
    if len(tasks) < len(cells):
        empty = ", ".join(cell.workload for cell in cells if cell.task is None)
        return _without_numbers("too_few", f"no prompt could be paired on {empty}", identical)
    found = estimate(tasks, confidence=settings.confidence, kind=settings.interval)
    pairs = [cell.pairs for cell in cells]
    rates_method = np.concatenate([p.rates_method for p in pairs])
    rates_reference = np.concatenate([p.rates_reference for p in pairs])
    wall_reference_ns = float(sum(p.wall_reference_ns.sum() for p in pairs))
    wall_method_ns = float(sum(p.wall_method_ns.sum() for p in pairs))
    resolved = None
    if found.interval is not None:
        resolved = n_to_resolve(found.mean, found.interval, n=found.n)
    return {
        "status": "ok" if found.interval is not None else "too_few",
        "reason": found.reason,
        "n": found.n,
        "speedup": float(np.exp(found.mean)),
        "ci": _ratios(found.interval),
        "percentile_ci": _ratios(found.percentile),
        "speedup_total": wall_reference_ns / wall_method_ns,
        "speedup_mean_of_rates": float(rates_method.mean() / rates_reference.mean()),
        "p_value": found.p_value,
        "p_holm": None,
        "n_to_resolve": resolved,
        "identical_outputs": identical,
    }


def _without_numbers(status: str, reason: str | None, identical: int) -> Comparison:
    return {
        "status": status,
        "reason": reason,
        "n": 0,
        "identical_outputs": identical,
        **dict.fromkeys(NUMBERS, None),
    }


def _ratios(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [float(np.exp(end)) for end in interval]
