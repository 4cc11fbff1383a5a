"""statistics.json: every comparison of one model at one key, the A/A arm's resolution floor, Holm's adjustment."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.metrics.records import Record, read_raw
from servingbench.records.schema import suggest
from servingbench.statistics.audits import Verdicts
from servingbench.statistics.bootstrap import Resampler
from servingbench.statistics.comparison import Arms, Comparison, compare
from servingbench.statistics.holm import holm
from servingbench.statistics.settings import OVERALL, Settings

FREE_NOTE = "Free timing: only prompts on which both arms wrote the same tokens are paired."


def read_arms(files: Sequence[Path], settings: Settings) -> dict[tuple[str, str], list[Record]]:
    """Read raw records and file them by the workload and method that they name themselves.

    Raises:
        UserError: an arm that the settings do not know, one given twice, one of another timing, or one that is missing.
    """
    arms: dict[tuple[str, str], list[Record]] = {}
    for file in files:
        records = read_raw(file)
        workload, method = records[0]["workload"], records[0]["method"]
        for field, value, allowed in (("workload", workload, settings.workloads), ("method", method, settings.methods)):
            if value not in allowed:
                problem, remedy = f"not among the {field}s to compare", suggest(value, allowed)
                raise UserError(problem, file=file, key=field, value=value, remedy=remedy)
        timing = records[0]["timing"]
        if timing != settings.timing:
            remedy = f"compare {settings.timing} runs with {settings.timing} runs"
            raise UserError("not the comparison's timing", file=file, key="timing", value=timing, remedy=remedy)
        if (workload, method) in arms:
            raise UserError("given twice", file=file, key="workload, method", value=f"{workload}, {method}")
        arms[workload, method] = records
    for workload in settings.workloads:
        for method in settings.methods:
            if (workload, method) not in arms:
                remedy = "pass its raw.jsonl with --raw"
                raise UserError("no raw records", key="workload, method", value=f"{workload}, {method}", remedy=remedy)
    return arms


def statistics(arms: Arms, verdicts: Verdicts, settings: Settings) -> dict[str, Any]:
    """Compare every method with the baseline, then the contrasts.

    Holm's family is every overall comparison with a p-value, contrasts included, but for the primary one, which is
    pre-declared and spends no multiplicity, and the A/A arm, which is a control and claims nothing.

    Args:
        arms: (workload, method) -> raw records, complete.
        verdicts: (workload, method) -> None, or why the arm failed the lossless gate.
        settings: what to compare.

    Returns:
        A statistics record (config/schemas/statistics.schema.yaml).
    """
    resampler = Resampler(seed=settings.seed, resamples=settings.resamples)
    notes = [FREE_NOTE] if settings.timing == "free" else []
    against_baseline = [(method, settings.baseline) for method in settings.methods if method != settings.baseline]
    lists: list[list[Comparison]] = []
    for pairs in (against_baseline, settings.contrasts):
        found: list[Comparison] = []
        for method, reference in pairs:
            comparisons, left_out = compare(method, reference, arms, verdicts, settings, resampler)
            found += comparisons
            notes += left_out
        lists.append(found)
    comparisons, contrasts = lists
    _adjust([*comparisons, *contrasts], settings)
    floor = _resolution_floor(comparisons, settings)
    return {
        "schema_version": 1,
        "key": settings.key,
        "settings": settings.recorded(),
        "workloads": list(settings.workloads),
        "methods": list(settings.methods),
        "baseline": settings.baseline,
        "aa": settings.aa,
        "comparisons": comparisons,
        "contrasts": contrasts,
        "resolution_floor": floor,
        "notes": [*notes, *_aa_notes(comparisons, settings)],
    }


def _adjust(comparisons: Sequence[Comparison], settings: Settings) -> None:
    family = [
        comparison
        for comparison in comparisons
        if comparison["scope"] == OVERALL
        and not comparison["primary"]
        and settings.aa not in (comparison["method"], comparison["reference"])
        and comparison["p_value"] is not None
    ]
    for comparison, adjusted in zip(family, holm([member["p_value"] for member in family]), strict=True):
        comparison["p_holm"] = adjusted


def _aa_comparisons(comparisons: Sequence[Comparison], settings: Settings) -> list[Comparison]:
    return [row for row in comparisons if settings.aa is not None and row["method"] == settings.aa]


def _resolution_floor(comparisons: Sequence[Comparison], settings: Settings) -> dict[str, float | None]:
    """Half-width of the A/A interval as a ratio, sqrt(high / low): speedups from 1/floor to floor are within noise."""
    floor: dict[str, float | None] = dict.fromkeys([*settings.workloads, OVERALL], None)
    for row in _aa_comparisons(comparisons, settings):
        if row["ci"] is not None:
            floor[row["scope"]] = sqrt(row["ci"][1] / row["ci"][0])
    return floor


def _aa_notes(comparisons: Sequence[Comparison], settings: Settings) -> list[str]:
    return [
        f"{row['scope']}: the A/A interval [{row['ci'][0]:.3f}, {row['ci'][1]:.3f}] does not cover 1: two runs of one "
        "method differ by more than their noise; read this scope's speedups with that in mind."
        for row in _aa_comparisons(comparisons, settings)
        if row["ci"] is not None and not row["ci"][0] <= 1 <= row["ci"][1]
    ]
