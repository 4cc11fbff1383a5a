"""The load test of a served model: aiperf's sweep over concurrencies, and what its exports say."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.records.files import read_json
from servingbench.serving.process import OwnedProcess


def aiperf_command(
    settings: Mapping[str, Any], *, url: str, model: str, tokenizer: str, temperature: float
) -> list[str]:
    """The words behind ``aiperf``, for every concurrency at once; --artifact-dir follows."""
    levels = settings["concurrency"]
    return [
        "profile",
        *("--model", model),
        *("--url", url),
        *("--endpoint-type", "chat", "--streaming"),
        *("--tokenizer", tokenizer),
        "--use-server-token-count",
        *("--concurrency", ",".join(map(str, levels))),
        *("--request-count", str(max(settings["requests"], *levels))),
        *("--warmup-request-count", "1"),
        *("--synthetic-input-tokens-mean", str(settings["input_tokens"])),
        *("--output-tokens-mean", str(settings["output_tokens"])),
        *("--extra-inputs", f"temperature:{temperature}"),
        *("--random-seed", "0"),
        *("--workers-max", "1", "--record-processors", "1", "--no-gpu-telemetry", "--no-server-metrics"),
        *("--ui", "none"),
    ]


def load_test(
    settings: Mapping[str, Any],
    *,
    words: list[str],
    environment: Mapping[str, str],
    folder: Path,
    timeout_s: float,
) -> tuple[str, list[dict[str, Any]]]:
    """Run aiperf.

    Args:
        settings: the row's ``load``.
        words: of :func:`aiperf_command`.
        environment: aiperf's.
        folder: where aiperf.log and its artifacts go.
        timeout_s: outer limit.

    Returns:
        (``success``, ``timeout`` or ``broken``; summary.json's ``load``, an entry per concurrency that has a result).
    """
    artifacts = folder / "aiperf"
    command = [sys.executable, "-m", "aiperf", *words, "--artifact-dir", str(artifacts)]
    with OwnedProcess(command, environment=environment, log=folder / "aiperf.log") as process:
        status = process.wait(timeout_s)
    levels = [read_level(artifacts, level, len(settings["concurrency"])) for level in settings["concurrency"]]
    found = [level for level in levels if level]
    if status is None:
        return "timeout", found
    # Whatever the exit status says: without a single success there is no result.
    return ("success" if len(found) == len(levels) and all(level["requests"] for level in found) else "broken"), found


def read_level(artifacts: Path, concurrency: int, levels: int) -> dict[str, Any] | None:
    """One concurrency's numbers; None where aiperf wrote none.

    Args:
        artifacts: aiperf's folder.
        concurrency: the level.
        levels: how many there were; a single one has no folder of its own.
    """
    folder = artifacts / f"concurrency_{concurrency}" if levels > 1 else artifacts
    path = folder / "profile_export_aiperf.json"
    try:
        export = read_json(path)
    except UserError:
        return None

    def value(metric: str, statistic: str = "avg") -> float | None:
        found = export.get(metric, {}).get(statistic)
        return None if found is None else round(float(found), 3)

    errors = sum(int(row.get("count", 1)) for row in export.get("error_summary") or [])
    return {
        "concurrency": concurrency,
        "requests": int(value("request_count") or 0),
        "errors": errors,
        "ttft_ms": {"p50": value("time_to_first_token", "p50"), "p95": value("time_to_first_token", "p95")},
        "tpot_ms": {"p50": value("inter_token_latency", "p50"), "p95": value("inter_token_latency", "p95")},
        "tok_s": value("output_token_throughput"),
        "duration_s": value("benchmark_duration"),
    }
