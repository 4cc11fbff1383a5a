"""One row of the serve matrix: its attempts, kept for good, and the summary that they make."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servingbench.measure.journal import now
from servingbench.provenance import pipeline_state, without_absolute_paths
from servingbench.records.files import read_json, sha256_file, write_json
from servingbench.records.schema import validate
from servingbench.serving import attempt as attempts
from servingbench.serving.engines import changed

ATTEMPT = "attempt.json"
INTERRUPTED = "the attempt did not come to its end: the workflow was stopped or killed"
# The variables that a reader needs beside argv to run the same server from the repository's root.
REPRODUCED = ("PYTHONPATH", "OMP_WAIT_POLICY", "OMP_NUM_THREADS", "HF_HUB_OFFLINE")


def run_row(
    spec: Mapping[str, Any],
    *,
    folder: Path,
    surroundings: attempts.Surroundings,
    environment: Mapping[str, Any],
    preflight: list[dict[str, Any]],
    skip_predicted: bool,
) -> dict[str, Any]:
    """Attempt the row as it is and then with each workaround until one serves.

    Args:
        spec: the row, of :meth:`servingbench.config.serve.ServeTable.spec`.
        folder: of the row; attempts/NNN/ is made in it.
        surroundings: see :class:`servingbench.serving.attempt.Surroundings`.
        environment: environment.json of the engine (of the revision, for transformers).
        preflight: what was predicted.
        skip_predicted: do not start a row that the preflight saw fail with the real exception.

    Returns:
        summary.json.
    """
    certain = [entry for entry in preflight if entry["verdict"] == "fail" and entry["confidence"] == "executed"]
    made: list[dict[str, Any]] = []
    if not (skip_predicted and certain):
        plans = [(spec["flags"], None)]
        plans += [(changed(spec["flags"], change["flags"]), change["why"]) for change in spec["workarounds"]]
        for flags, why in plans:
            made.append(_attempt(spec, flags, why, folder, surroundings))
            if made[-1]["outcome"] in ("ok", "degraded"):
                break
    return _summary(spec, made, _earlier(folder, len(made)), surroundings, environment, preflight)


def _attempt(
    spec: Mapping[str, Any], flags: Mapping[str, Any], why: str | None, folder: Path, around: attempts.Surroundings
) -> dict[str, Any]:
    """One attempt in the next free folder, whose attempt.json says that it was interrupted until it has ended."""
    number = len(_folders(folder)) + 1
    place = folder / "attempts" / f"{number:03}"
    place.mkdir(parents=True)
    head = {"number": number, "workaround": why, "started": now(), "pipeline": pipeline_state()}
    interrupted = {"outcome": "abandoned", "config_flags": dict(flags), "failure": {"said": INTERRUPTED}}
    write_json(place / ATTEMPT, {**head, **interrupted})
    record = attempts.run(attempts.Attempt(spec, flags, place, around))
    variables = {name: around.server[name] for name in REPRODUCED if name in around.server}
    variables["PYTHONPATH"] = os.pathsep.join(
        map(str, without_absolute_paths(variables["PYTHONPATH"].split(os.pathsep)))
    )
    done = {**head, "finished": now(), "environment": variables, **without_absolute_paths(record)}
    write_json(place / ATTEMPT, done)
    return done


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "attempts").glob("[0-9]*") if path.is_dir())


def _earlier(folder: Path, own: int) -> list[dict[str, Any]]:
    """The attempts that stood there before this run made its ``own``."""
    older = _folders(folder)[: len(_folders(folder)) - own]
    return [read_json(path / ATTEMPT) for path in older if (path / ATTEMPT).is_file()]


def _summary(
    spec: Mapping[str, Any],
    made: list[dict[str, Any]],
    earlier: list[dict[str, Any]],
    around: attempts.Surroundings,
    environment: Mapping[str, Any],
    preflight: list[dict[str, Any]],
) -> dict[str, Any]:
    nothing: dict[str, Any] = {
        "effective": {},
        "launch": {},
        "eval": None,
        "load": [],
        "argv": [],
        "environment": {},
        "failure": None,
    }
    last: dict[str, Any] = made[-1] if made else {**nothing, "outcome": "predicted_fail"}
    first = next((entry["failure"] for entry in made if entry["failure"]), None)
    status = last["outcome"]
    if status == "ok" and len(made) > 1:
        status = "degraded"  # it serves, but not as the row asks
    return {
        "schema_version": 1,
        "row_id": spec["id"],
        "key": spec["key"],
        "status": status,
        "model": describe_model(spec, around.model, last["effective"]),
        "hardware": {
            "flavor": spec["hardware"]["flavor"] or spec["hardware"]["name"],
            **{name: spec["hardware"][name] for name in ("gpu", "count", "compute_capability", "mem_gib")},
        },
        "engine": describe_engine(spec, environment),
        "config_flags": spec["flags"],
        "argv": last["argv"],
        "environment": last["environment"],
        "effective": {
            name: last["effective"].get(name)
            for name in ("attn_implementation", "cb_used", "device_map_devices", "dtype")
        },
        "launch": {name: last["launch"].get(name) for name in ("ready_s", "first_token_ok_s", "exit_code")},
        "eval": _evaluation(last["eval"], around.problems),
        "load": last["load"],
        "preflight": preflight,
        "failure": first,
        "attempts": [_brief(entry, current=False) for entry in earlier]
        + [_brief(entry, current=True) for entry in made],
    }


def describe_model(spec: Mapping[str, Any], model: str, effective: Mapping[str, Any]) -> dict[str, Any]:
    """Which model it is: its id and revision, its architecture, and the hash of its config (of the file, for GGUF)."""
    row, source = spec["model"], spec["model"]["source"] or {}
    path = Path(model)
    config = path / "config.json"
    hashed = path if path.is_file() else config if config.is_file() else None
    named = (read_json(config).get("architectures") or [None])[0] if config.is_file() else None
    return {
        "id": row.get("id") or source.get("id") or row["name"],
        "revision": row.get("revision") or source.get("revision"),
        "architecture": effective.get("architecture") or named,
        "config_sha256": sha256_file(hashed) if hashed else None,
    }


def describe_engine(spec: Mapping[str, Any], environment: Mapping[str, Any]) -> dict[str, Any]:
    """Name and version of the engine, and of what it computes with."""
    packages = environment["packages"]

    def version(name: str) -> str | None:
        found: str | None = packages.get(name, {}).get("version")
        return found

    engine = spec["engine"]
    torch = environment.get("shared", {}).get("torch")
    return {"name": engine, "version": version(engine), "torch": torch, "kernels": version("kernels")}


def _evaluation(evaluation: Mapping[str, Any] | None, problems: Path) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    return {**evaluation, "dataset_sha256": read_json(problems / "problems.json")["sha256"]}


def _brief(entry: Mapping[str, Any], *, current: bool) -> dict[str, Any]:
    """What the summary keeps of an attempt; the rest stands in attempts/NNN/attempt.json."""
    names = ("number", "workaround", "started", "finished", "outcome", "config_flags", "failure")
    return {**{name: entry.get(name) for name in names}, "current": current}


def write_summary(summary: dict[str, Any], out: Path) -> None:
    """Check and write summary.json."""
    validate(summary, "serve_summary", file=out)
    write_json(out, summary)


def read_summaries(paths: list[Path]) -> list[dict[str, Any]]:
    """Read and check summaries, in the order given."""
    summaries = []
    for path in paths:
        summary = read_json(path)
        validate(summary, "serve_summary", file=path)
        summaries.append(summary)
    return summaries
