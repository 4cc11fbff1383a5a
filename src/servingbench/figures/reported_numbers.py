"""Published numbers (config/reported): read, checked to be labelled as reported, and never mixed with measured ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from servingbench.errors import UserError
from servingbench.records.files import read_text

REQUIRED = ("experiment", "gpu", "model", "workload", "method", "quantity", "value", "unit", "source", "status")
SETTINGS = "settings.csv"  # settings of the published runs: text, not results


@dataclass(frozen=True)
class ReportedNumber:
    """One published number; ``text`` keeps it as it was printed ("1.00"), ``value`` is its number."""

    experiment: str
    date: str
    gpu: str
    model: str
    n_prompts: str
    workload: str
    workload_label: str
    method: str
    index_source: str
    reference: str
    quantity: str
    text: str
    unit: str
    ci_low: str
    ci_high: str
    source: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)


def load_reported(folder: Path) -> list[ReportedNumber]:
    """Every published number in ``folder``/*.csv, files in name order, rows in file order.

    Raises:
        UserError: without any file, for a missing column, a row that is not labelled ``status=reported`` with a source,
            or a value that is not a number.
    """
    paths = [path for path in sorted(folder.glob("*.csv")) if path.name != SETTINGS]
    if not paths:
        raise UserError("no CSV of reported numbers", file=folder, remedy="pass the folder config/reported")
    return [number for path in paths for number in _load(path)]


def _load(path: Path) -> list[ReportedNumber]:
    reader = csv.DictReader(io.StringIO(read_text(path)))
    missing = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
    if missing:
        raise UserError(f"missing column {', '.join(missing)}", file=path, key="line 1", remedy="add it")
    return [_number(row, path, f"line {line}") for line, row in enumerate(reader, start=2)]


def _number(row: dict[str, str | None], path: Path, line: str) -> ReportedNumber:
    if row["status"] != "reported":
        raise UserError(
            "status must be 'reported'",
            file=path,
            key=f"{line}, status",
            value=row["status"],
            remedy="measured numbers belong in results/, not here",
        )
    if not row["source"]:
        raise UserError("a reported number must name its source", file=path, key=f"{line}, source", remedy="fill it in")
    try:
        float(row["value"] or "")
    except ValueError:
        raise UserError("not a number", file=path, key=f"{line}, value", value=row["value"]) from None
    fields = {name: row.get(name) or "" for name in ReportedNumber.__dataclass_fields__ if name != "text"}
    fields["workload_label"] = fields["workload_label"] or fields["workload"]
    return ReportedNumber(text=row["value"] or "", **fields)


def select(numbers: Sequence[ReportedNumber], **wanted: str) -> list[ReportedNumber]:
    """The numbers whose fields equal ``wanted``."""
    return [number for number in numbers if all(getattr(number, name) == value for name, value in wanted.items())]


METHOD_LABELS = {
    "autoregressive": "Autoregressive",
    "draft_model": "Draft model",
    "prompt_lookup": "Prompt lookup",
    "suffix": "Suffix",
    "tree": "Tree",
}
SOURCE_LABELS = {"local": "Local", "global": "Global", "both": "Local + global"}
