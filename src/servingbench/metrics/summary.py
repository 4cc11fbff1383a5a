"""summary.json: the aggregates of one method on one workload, with the run's configuration and provenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servingbench.errors import UserError
from servingbench.metrics.records import MissingValue, Record, ok
from servingbench.metrics.registry import METRICS


def summarize(records: Sequence[Record], run: dict[str, Any]) -> dict[str, Any]:
    """Compute every metric over the records that did not fail.

    Args:
        records: the raw records of one method on one workload.
        run: the run.json that stands beside them.

    Returns:
        A summary record (config/schemas/summary.schema.yaml); a metric without a value is null, with its reason in
        ``nulls``.

    Raises:
        UserError: the records are of another workload than the run.
    """
    workload = records[0]["workload"]
    if run["key"]["workload"] != workload:
        raise UserError(
            f"the run is of another workload than its records ({workload!r})",
            file="run.json",
            key="key.workload",
            value=run["key"]["workload"],
            remedy="summarise a raw.jsonl with the run.json beside it",
        )
    usable = ok(records)
    metrics: dict[str, Any] = {}
    nulls: dict[str, str] = {}
    for name, metric in METRICS.items():
        try:
            metrics[name] = metric(usable)
        except MissingValue as missing:
            metrics[name] = None
            nulls[name] = str(missing)
    return {
        "schema_version": 1,
        "key": run["key"],
        "method": records[0]["method"],
        "status": "ok" if usable else records[0]["status"],
        "n_prompts": len({record["prompt_id"] for record in records}),
        "n_records": len(records),
        "n_failed": len(records) - len(usable),
        "metrics": metrics,
        "nulls": nulls,
        "configuration": run["configuration"],
        "provenance": run["provenance"],
    }
