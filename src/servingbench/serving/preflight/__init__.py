"""The preflight: what will fail, and why, before a GPU is rented. No weights, no GPU, no network; seconds.

A check is a function of a :class:`~servingbench.serving.preflight.case.Case` that returns a finding, or None where it
does not apply. Verdicts: ``fail``, ``degraded``, ``risk``, ``pass``; confidence: ``executed`` where transformers' own
code was run and raised, or did not, and ``rule`` where a rule of this package says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from servingbench.serving.preflight import batching, loading, surroundings
from servingbench.serving.preflight.case import Case, Finding

Check = Callable[[Case], Finding | None]

CHECKS: dict[str, Check] = {
    "architecture": loading.architecture,
    "packages": surroundings.packages,
    "attention": loading.attention,
    "kernel_builds": surroundings.kernel_builds,
    "quantizer": loading.quantizer,
    "modality": batching.modality,
    "cb_layer_types": batching.layer_types,
    "cb_attention": batching.attention,
    "cb_device_map": batching.device_map,
    "memory": surroundings.memory,
    "chat_template": surroundings.chat_template,
    "mount": surroundings.mount,
    "port": surroundings.port,
}


def run(case: Case) -> list[dict[str, Any]]:
    """Every check that applies to a row, in order; a model that cannot be built ends them early.

    Returns:
        Entries of ``preflight`` in summary.json.
    """
    findings: list[dict[str, Any]] = []
    for name, check in CHECKS.items():
        found = check(case)
        if found is not None:
            findings.append({"check": name, **found.entry(case.failures)})
        if case.model is None and any(entry["verdict"] == "fail" for entry in findings):
            break
    return findings


def worst(findings: list[dict[str, Any]]) -> Mapping[str, Any] | None:
    """The entry that decides, or None without any."""
    from servingbench.serving.score import predicted

    return predicted(findings)
