"""What another transformers revision does to one model on one GPU: the baseline's speed, and each method's speedup.

Revisions run one after the other, not interleaved: what the machine did in between is part of the difference of two
baselines. A method's speedup is over its own revision's baseline, so there it cancels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servingbench.errors import UserError
from servingbench.metrics.records import Record, read_raw
from servingbench.records.files import read_json
from servingbench.records.schema import validate
from servingbench.statistics.bootstrap import Resampler, Task, estimate, resample
from servingbench.statistics.equivalence import CONFIDENCE, LOWER, UPPER, verdict
from servingbench.statistics.pairing import by_prompt, pair
from servingbench.statistics.settings import OVERALL

Floats = NDArray[np.float64]
Change = dict[str, Any]
SHARED_KEY = ("gpu", "seed", "limit", "model")


class Run:
    """One revision's results: its statistics.json, with the raw records and summaries that lie beside it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.statistics = read_json(file)
        validate(self.statistics, "statistics", file=file)
        self.key: dict[str, Any] = self.statistics["key"]
        self.baseline: str = self.statistics["baseline"]
        self._raw: dict[tuple[str, str], list[Record]] = {}

    def raw(self, workload: str, method: str) -> list[Record]:
        """The records of one arm."""
        if (workload, method) not in self._raw:
            self._raw[workload, method] = read_raw(self.file.parent / workload / method / "raw.jsonl")
        return self._raw[workload, method]

    def overall(self, method: str) -> dict[str, Any] | None:
        """The comparison of a method with the baseline over all workloads."""
        rows = (row for row in self.statistics["comparisons"] if row["scope"] == OVERALL and row["method"] == method)
        return next(rows, None)

    @property
    def modified(self) -> bool:
        """Whether it ran a working folder with changes that no commit holds."""
        folder = self.file.parent / self.statistics["workloads"][0] / self.baseline
        return bool(read_json(folder / "summary.json")["provenance"]["transformers"].get("dirty"))

    def metric(self, method: str, name: str) -> float | None:
        """The geometric mean over workloads of a metric; None where one of them has none."""
        values = [
            read_json(self.file.parent / workload / method / "summary.json")["metrics"].get(name)
            for workload in self.statistics["workloads"]
        ]
        return None if None in values else float(np.exp(np.mean(np.log(values))))


def across_revisions(files: Sequence[Path]) -> dict[str, Any]:
    """Compare the revisions of one key, in the order of their statistics files.

    Returns:
        A record as in config/schemas/across_revisions.schema.yaml: what each revision reached, and of each revision
        against the one before it (and the last against the first) the ratio with its 90% interval and the verdict.

    Raises:
        UserError: for fewer than two revisions, or results of different keys, workloads or methods.
    """
    runs = [Run(file) for file in files]
    _check(runs)
    first = runs[0]
    methods = [name for name in first.statistics["methods"] if name != first.statistics["aa"]]
    pairs = list(pairwise(runs)) + ([(runs[0], runs[-1])] if len(runs) > 2 else [])
    resampler = Resampler(
        seed=first.statistics["settings"]["seed"], resamples=first.statistics["settings"]["resamples"]
    )
    return {
        "schema_version": 1,
        "key": {name: first.key[name] for name in SHARED_KEY},
        "revisions": [run.key["revision"] for run in runs],
        "modified": [run.key["revision"] for run in runs if run.modified],
        "baseline": first.baseline,
        "confidence": CONFIDENCE,
        "margins": [LOWER, UPPER],
        "reached": [_reached(run, method) for method in methods for run in runs],
        "changes": [_change(old, new, method, resampler) for method in methods for old, new in pairs],
    }


def _check(runs: Sequence[Run]) -> None:
    if len(runs) < 2:
        raise UserError("a comparison needs two revisions", key="revisions", remedy="name more in revisions")
    for run in runs[1:]:
        mine, theirs = (
            [*(one.key[name] for name in SHARED_KEY), one.statistics["workloads"], one.statistics["methods"]]
            for one in (run, runs[0])
        )
        if mine != theirs:
            problem = f"is of another key, other workloads or methods than {runs[0].file}"
            raise UserError(problem, file=run.file, remedy="compare revisions that ran with one configuration")


def _reached(run: Run, method: str) -> dict[str, Any]:
    row = run.overall(method)
    status = "ok" if method == run.baseline else row["status"] if row else "failed"
    usable = status in ("ok", "too_few")
    return {
        "revision": run.key["revision"],
        "method": method,
        "status": status,
        "reason": row["reason"] if row else None,
        "tokens_per_second": run.metric(method, "overall_tokens_per_second") if usable else None,
        "tokens_per_forward": run.metric(method, "tokens_per_forward") if usable else None,
        "speedup": row["speedup"] if row else None,
        "ci": row["ci"] if row else None,
    }


def _change(old: Run, new: Run, method: str, resampler: Resampler) -> Change:
    """New over old: of the baseline's speed, or of a method's speedup over its own baseline."""
    logs: Callable[..., tuple[Floats, Counter[str]]] = _speed if method == old.baseline else _speedup
    excluded: Counter[str] = Counter()
    tasks: list[Task] = []
    for workload in old.statistics["workloads"]:
        d, left_out = logs(old, new, workload, method)
        excluded += left_out
        if len(d):
            tasks.append(resample(d, resampler.indices(workload, n=len(d))))
    whole = len(tasks) == len(old.statistics["workloads"])
    kind = old.statistics["settings"]["interval"]
    found = estimate(tasks, confidence=CONFIDENCE, kind=kind) if whole else None
    interval = None if found is None or found.interval is None else tuple(float(np.exp(end)) for end in found.interval)
    return {
        "old": old.key["revision"],
        "new": new.key["revision"],
        "method": method,
        "n": 0 if found is None else found.n,
        "ratio": None if found is None else float(np.exp(found.mean)),
        "ci": None if interval is None else list(interval),
        "verdict": verdict((interval[0], interval[1]) if interval else None),
        "reason": "no prompt could be paired on every workload" if found is None else found.reason,
        "excluded": dict(excluded),
    }


def _speed(old: Run, new: Run, workload: str, method: str) -> tuple[Floats, Counter[str]]:
    """ln(T_old / T_new) of one arm, per prompt that both rendered and answered alike."""
    pairs = pair(old.raw(workload, method), new.raw(workload, method))
    return pairs.log_ratios, Counter(pairs.excluded)


def _speedup(old: Run, new: Run, workload: str, method: str) -> tuple[Floats, Counter[str]]:
    """ln(speedup_new / speedup_old), per prompt that both rendered alike; the two may have answered differently."""
    found, hashes = [], []
    excluded: Counter[str] = Counter()
    for run in (old, new):
        pairs = pair(run.raw(workload, run.baseline), run.raw(workload, method))
        found.append(dict(zip(pairs.prompts, pairs.log_ratios.tolist(), strict=True)))
        records = by_prompt(run.raw(workload, method))
        hashes.append({name: next(iter(repeats.values()))["prompt_sha256"] for name, repeats in records.items()})
    d = []
    for prompt in dict.fromkeys([*found[0], *found[1]]):
        if prompt not in found[0] or prompt not in found[1]:
            excluded["no speedup in both revisions"] += 1
        elif hashes[0][prompt] != hashes[1][prompt]:
            excluded["the rendered prompts differ"] += 1
        else:
            d.append(found[1][prompt] - found[0][prompt])
    return np.array(d, dtype=np.float64), excluded
