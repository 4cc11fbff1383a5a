"""The benchmark's report: the machine beside the figures, and the table that is printed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from servingbench.provenance import cpu_description, openmp_settings, package_versions, pipeline_state
from servingbench.records.files import sha256_file
from servingbench.simulate.bench import Bench
from servingbench.simulate.figures import PEERS

HEAD = ("figure", "n", "unit", "ours", "arctic", "transformers", "ours/arctic", "ours/transformers")


def load_average() -> float:
    """The one-minute load average: well above the threads in use, the machine was not quiet."""
    return round(os.getloadavg()[0], 2)


def full_report(bench: Bench, corpus: Path, *, model: str, load_averages: Sequence[float]) -> dict[str, Any]:
    """What is written: the figures, what they were measured on, and where.

    Args:
        bench: after its run.
        corpus: the file of its recordings.
        model: the model's name.
        load_averages: before and after the run.
    """
    return {
        "schema_version": 1,
        "finished": bench.finished,
        "machine": {
            "cpu": cpu_description(),
            "threads": torch.get_num_threads(),
            "openmp": openmp_settings(),
            "load_average_1min": list(load_averages),
            "packages": package_versions(),
            "pipeline": pipeline_state(),
        },
        "corpus": {
            "file": corpus.name,
            "sha256": sha256_file(corpus),
            "tasks": dict(Counter(recording.task for recording in bench.recordings)),
            "looping": sum(bench.looping),
            "max_new_tokens": bench.cap,
            "timed_prompts_per_task": bench.timed_prompts,
        },
        "model": model,
        "static_table": bench.ours.table is not None,
        **bench.report(),
    }


def text_table(report: Mapping[str, Any]) -> str:
    """Figures down, arms across; below a figure of outputs the same without those that loop; then what is missing."""
    rows = [list(HEAD)]
    reasons: dict[str, list[str]] = {}
    for name, figure in report["figures"].items():
        rows.append(_row(name, figure))
        if name in report["figures_without_loops"]:
            rows.append(_row("  without loops", report["figures_without_loops"][name]))
        for arm in ("ours", *PEERS):
            if arm in figure["reasons"] and (arm == "ours" or figure["reasons"][arm] != figure["reasons"].get("ours")):
                reasons.setdefault(f"{arm}: {figure['reasons'][arm]}", []).append(name)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    corpus = report["corpus"]
    notes = [
        f"{sum(corpus['tasks'].values())} outputs of {len(corpus['tasks'])} tasks ({corpus['file']}), of which "
        f"{corpus['looping']} end in a loop; parameters from the even half, figures from the odd half.",
        "Microseconds and bytes: smaller is better. Brackets: 95% bootstrap-t intervals, paired by prompt.",
        *(
            f"Arctic's best for {name}: {', '.join(f'{key}={value}' for key, value in arms['arctic'].items())}"
            for name, arms in report["settings"].items()
            if "arctic" in arms
        ),
        *([] if report["static_table"] else ["Ours drafts without a static table (--static-table FILE)."]),
        *(f"- {reason} ({', '.join(names)})" for reason, names in reasons.items()),
    ]
    speedups = [f"{arm} {value:.2f}" for arm, value in report["decode_speedups"].items() if value is not None]
    if speedups:
        notes.insert(0, f"Decode speedups over autoregressive: {', '.join(speedups)}.")
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], "", *notes]) + "\n"


def _row(name: str, figure: Mapping[str, Any]) -> list[str]:
    values = [_number(figure[arm]) for arm in ("ours", *PEERS)]
    return [name, str(figure["n"] or "-"), figure["unit"], *values, *(_ratio(figure, peer) for peer in PEERS)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:#.4g}".rstrip(".")


def _ratio(figure: Mapping[str, Any], peer: str) -> str:
    ratio, interval = figure[f"ratio_{peer}"], figure[f"ratio_{peer}_ci"]
    if ratio is None:
        return "-"
    return f"{ratio:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")
