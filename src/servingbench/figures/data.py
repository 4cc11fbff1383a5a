"""What a figure may read: one statistics.json, the summaries behind it, and the tables' labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from servingbench.config.tables import load_yaml
from servingbench.errors import UserError
from servingbench.figures.reported_numbers import ReportedNumber, load_reported
from servingbench.figures.style import Look, look
from servingbench.records.files import read_json
from servingbench.records.schema import validate

Record = Mapping[str, Any]
OVERALL = "overall"


@dataclass(frozen=True)
class ResultSet:
    """Measured results of one model at one key.

    Args:
        statistics: a statistics.json.
        summaries: summary.json by (workload, method).
        methods_table: rows of config/methods.yaml.
        workloads_table: rows of config/workloads.yaml; a workload without a row is shown by its slug.
        lossless: lossless.json by workload.
        reported: published numbers, which are never mixed with measured ones.
    """

    statistics: Record
    summaries: Mapping[tuple[str, str], Record]
    methods_table: Mapping[str, Record] = field(default_factory=dict)
    workloads_table: Mapping[str, Record] = field(default_factory=dict)
    lossless: Mapping[str, Record] = field(default_factory=dict)
    reported: Sequence[ReportedNumber] = ()

    @property
    def key(self) -> Record:
        """Revision, gpu, seed, limit and model."""
        key: Record = self.statistics["key"]
        return key

    @property
    def workloads(self) -> list[str]:
        """Workloads in the order of the statistics."""
        return list(self.statistics["workloads"])

    @property
    def scopes(self) -> list[str]:
        """Scopes of the comparisons: overall first, unless there is but one workload, which it would repeat."""
        return ([OVERALL] if len(self.workloads) > 1 else []) + self.workloads

    @property
    def contenders(self) -> list[str]:
        """Methods compared with the baseline: all but the baseline and its A/A twin, in table order."""
        return [name for name in self.statistics["methods"] if name not in (self.baseline, self.aa)]

    @property
    def baseline(self) -> str:
        """The arm that everything is compared with."""
        return str(self.statistics["baseline"])

    @property
    def aa(self) -> str | None:
        """The baseline's second run, if there is one."""
        name: str | None = self.statistics["aa"]
        return name

    def comparison(self, method: str, scope: str) -> Record | None:
        """``method`` against the baseline in ``scope``, or None where it was not made."""
        rows = (row for row in self.statistics["comparisons"] if (row["method"], row["scope"]) == (method, scope))
        return next(rows, None)

    def aa_interval(self, scope: str) -> tuple[float, float] | None:
        """The interval of the baseline against itself in ``scope``."""
        row = self.comparison(self.aa, scope) if self.aa else None
        return (row["ci"][0], row["ci"][1]) if row and row["ci"] else None

    def metric(self, workload: str, method: str, name: str) -> float | None:
        """One metric of a summary; None where it is null or the summary is missing."""
        summary = self.summaries.get((workload, method))
        value = summary["metrics"][name] if summary else None
        return None if value is None else float(value)

    def method_label(self, method: str) -> str:
        """The label in the methods table, or the name."""
        return str(self.methods_table.get(method, {}).get("label", method))

    def workload_label(self, scope: str) -> str:
        """The label in the workloads table, or the slug."""
        if scope == OVERALL:
            return "All workloads"
        return str(self.workloads_table.get(scope, {}).get("label", scope))

    def look(self, method: str) -> Look:
        """The method's colour and marker."""
        return look(method, self.methods_table or self.statistics["methods"])

    @property
    def device(self) -> str:
        """The devices that the runs named, each once."""
        names = dict.fromkeys(device_name(summary) for summary in self.summaries.values())
        return ", ".join(names) or "device not recorded"

    @property
    def revision(self) -> str:
        """The transformers version that ran, its commit if it has one, and whether that was modified."""
        rows = [summary["provenance"].get("transformers", {}) for summary in self.summaries.values()]
        versions = dict.fromkeys(
            row["version"]
            + (f" @ {row['commit'][:9]}" if row.get("commit") else "")
            + (" modified" if row.get("dirty") else "")
            for row in rows
            if row.get("version")
        )
        return ", ".join(versions) or str(self.key["revision"])

    @property
    def modified(self) -> bool:
        """Whether a working folder ran with changes that no commit holds."""
        return any(summary["provenance"].get("transformers", {}).get("dirty") for summary in self.summaries.values())

    @property
    def footer(self) -> str:
        """The machine's line: what ran, where, on how many prompts."""
        key, counts = self.key, prompt_counts(self)
        per = f"n = {counts} prompts per workload" if counts else "no paired prompts"
        return (
            f"{key['model']} on {self.device} · transformers {self.revision}\n"
            f"{per} (limit {key['limit']}, seed {key['seed']}) · {self.statistics['settings']['timing']} timing"
        )


def device_name(summary: Record) -> str:
    """The accelerator's name, or the processor's (with its threads) when the run used none."""
    provenance = summary["provenance"]
    device = provenance.get("device", {})
    if device.get("kind") == "cuda":
        return str(device["name"])
    threads = provenance.get("threads")
    name = provenance.get("cpu", {}).get("name") or device.get("name") or "device not recorded"
    return f"{name} ({threads} threads)" if threads else str(name)


def prompt_counts(results: ResultSet) -> str:
    """The paired prompts per workload, as one number or a range; empty without any."""
    counts = {
        row["n"] for row in results.statistics["comparisons"] if row["scope"] != OVERALL and row["method"] != results.aa
    }
    if not counts or max(counts) == 0:
        return ""
    return str(max(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def load_results(
    statistics: Path, *, methods_table: Path, workloads_table: Path | None = None, reported: Path | None = None
) -> ResultSet:
    """Read and check the records of one model: its statistics, and beside them the summaries and gates that exist.

    Raises:
        UserError: for a missing or invalid file, or a summary of another key than the statistics'.
    """
    record = read_json(statistics)
    validate(record, "statistics", file=statistics)
    summaries = {
        (workload, method): summary
        for workload, method in product(record["workloads"], record["methods"])
        if (summary := _beside(statistics, f"{workload}/{method}/summary.json", record["key"])) is not None
    }
    gates = {
        workload: gate
        for workload in record["workloads"]
        if (gate := _beside(statistics, f"{workload}/lossless.json", record["key"])) is not None
    }
    workloads = load_yaml(workloads_table) if workloads_table and workloads_table.exists() else None
    published = load_reported(reported) if reported else ()
    return ResultSet(record, summaries, load_yaml(methods_table) or {}, workloads or {}, gates, published)


def _beside(statistics: Path, name: str, key: Record) -> Record | None:
    path = statistics.parent / name
    if not path.exists():
        return None
    record: Record = read_json(path)
    validate(record, path.stem, file=path)
    _check_key(record["key"], key, path)
    return record


def _check_key(key: Record, expected: Record, path: Path) -> None:
    for name, value in expected.items():
        if key.get(name) != value:
            raise UserError(
                f"belongs to another run than the statistics, whose {name} is {value!r}",
                file=path,
                key=f"key.{name}",
                value=key.get(name),
                remedy="pass the summaries of one key",
            )


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of the positive values; None without any."""
    logs = [math.log(value) for value in values if value is not None and value > 0]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None; None without any."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
