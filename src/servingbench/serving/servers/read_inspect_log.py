"""Print what summary.json keeps of an Inspect log as JSON, in Inspect's environment: python read_inspect_log.py LOG."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any


def main() -> None:
    """Read with inspect_ai's own reader, print."""
    from inspect_ai.log import read_eval_log

    log = read_eval_log(sys.argv[1])
    metrics: dict[str, Any] = log.results.scores[0].metrics if log.results and log.results.scores else {}
    samples = log.samples or []
    usage = list(log.stats.model_usage.values())
    times = sorted(sample.total_time for sample in samples if sample.total_time is not None and not sample.error)
    config = log.eval.model_generate_config
    described = {
        "version": log.eval.task_version,
        "packages": log.eval.packages,
        "fewshot": log.eval.task_args.get("fewshot"),
        "limit": log.eval.config.limit,
        "max_connections": config.max_connections,
        "temperature": config.temperature,
        "max_tokens": config.max_tokens,
        "status": log.status,
        "error": log.error.message if log.error else None,
        "accuracy": metrics["accuracy"].value if "accuracy" in metrics else None,
        "stderr": metrics["stderr"].value if "stderr" in metrics else None,
        "completed": log.results.completed_samples if log.results else 0,
        "errors": sum(sample.error is not None for sample in samples),
        "tokens": {
            "input": sum(one.input_tokens for one in usage),
            "output": sum(one.output_tokens for one in usage),
        },
        "wall_s": _seconds(log.stats.started_at, log.stats.completed_at),
        "latency_s": {"p50": _quantile(times, 0.5), "p95": _quantile(times, 0.95)},
    }
    json.dump(described, sys.stdout, default=str)


def _seconds(start: str, end: str) -> float | None:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() if start and end else None


def _quantile(times: list[float], share: float) -> float | None:
    """The smallest time that at least this share of the samples did not exceed."""
    return times[min(len(times) - 1, max(0, -int(-share * len(times) // 1) - 1))] if times else None


if __name__ == "__main__":
    main()
