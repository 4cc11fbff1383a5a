"""The outputs of a complete run: raw.jsonl and run.json for every method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from servingbench.decoding.loop import LoopMethod
from servingbench.measure.journal import Journal, now
from servingbench.measure.monitor import DeviceMonitor
from servingbench.measure.record import Place, failed_record
from servingbench.measure.session import Session
from servingbench.provenance import (
    cpu_description,
    openmp_settings,
    package_versions,
    pipeline_state,
    source_digest,
    transformers_description,
    without_absolute_paths,
)
from servingbench.records.files import sha256_json, write_json, write_jsonl
from servingbench.records.schema import validate

MEASURED_WITH = ("decoding", "measure", "models", "prompts")
"""Our packages that a record depends on: a journal written by other code is another run's."""


def run_identity(session: Session) -> str:
    """A hash of everything that the records depend on; two runs may share a journal only when it is the same."""
    return sha256_json(
        {
            "spec": session.spec,
            "prompts": session.header,
            "models": session.models,
            "environment": session.environment,
            "packages": package_versions(),
            "machine": DeviceMonitor(session.device).describe(),
            "threads": torch.get_num_threads(),
            "openmp": openmp_settings(),
            "source": source_digest(MEASURED_WITH),
        }
    )


def provenance(
    session: Session, *, started: str, resumed: int, samples: list[dict[str, Any]], monitor: DeviceMonitor
) -> dict[str, Any]:
    """The `provenance` of run.json and lossless.json (config/schemas/provenance.schema.yaml).

    Args:
        session: the run.
        started: when its first process started.
        resumed: how often it was interrupted and continued.
        samples: the device's samples, in time order.
        monitor: describes the device.
    """
    described = {
        "transformers": transformers_description(session.environment),
        "packages": package_versions(),
        "device": {**monitor.describe(), "samples": samples},
        "cpu": {**cpu_description(), "openmp": openmp_settings()},
        "prompts": session.header,
        "pipeline": {**pipeline_state(), "source_sha256": source_digest(MEASURED_WITH)},
        "threads": torch.get_num_threads(),
        "started": started,
        "finished": now(),
        "resumed": resumed,
    }
    return dict(without_absolute_paths(described))


def drafted_with(session: Session, name: str) -> dict[str, Any]:
    """What one method's drafts were made from and sized by: the part of ``provenance`` that is its own."""
    method, options = session.methods.get(name), session.spec["methods"][name].get("options") or {}
    table = session.models["static_table"] if options.get("static_table") else None
    costs = method.drafter.costs if isinstance(method, LoopMethod) else None
    return {
        "static_table_sha256": None if table is None else table["sha256"],
        "forward_costs_ns": None if costs is None else [round(cost) for cost in costs[1:]],
    }


def configuration(session: Session, method: str | None = None) -> dict[str, Any]:
    """The resolved rows and settings of a run, with those of one method when it is named."""
    spec = session.spec
    settings = {name: spec[name] for name in spec if name not in ("key", "methods")}
    settings["model_files"] = session.models
    settings["methods"] = list(spec["methods"])
    settings["eos_token_ids"] = sorted(session.eos_token_ids)
    settings["attn_implementation"] = getattr(session.model.config, "_attn_implementation", None)
    if method is not None:
        settings["method"] = {"name": method, **spec["methods"][method]}
    return dict(without_absolute_paths(settings))


def write_outputs(folder: Path, session: Session, journal: Journal, monitor: DeviceMonitor) -> None:
    """Write ``folder``/{method}/raw.jsonl and run.json from a complete journal.

    Raw records are sorted by prompt, then repeat. Each file appears whole or not at all, and the journal stays until
    all are there, so that a kill in between costs nothing.
    """
    records: dict[str, list[Any]] = {name: [] for name in session.methods}
    for entry in journal.entries:
        for record in sorted(entry["records"], key=lambda record: record["repeat"]):
            records[record["method"]].append(record)
    samples = [entry["sample"] for entry in journal.entries]
    where = provenance(session, started=journal.started, resumed=journal.resumed, samples=samples, monitor=monitor)
    for name, reason in session.spec["unsupported"].items():
        place = Place(session.spec["key"]["workload"], name, 0, 0, session.spec["timing"])
        records[name] = [failed_record(prompt, place, reason, status="unsupported") for prompt in session.prompts]
    for name, rows in records.items():
        run = {
            "schema_version": 1,
            "key": session.spec["key"],
            "configuration": configuration(session, name),
            "provenance": where | drafted_with(session, name),
        }
        validate(run, "provenance", file=folder / name / "run.json")
        write_jsonl(folder / name / "raw.jsonl", rows)
        write_json(folder / name / "run.json", run)
