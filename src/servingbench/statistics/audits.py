"""Reading the lossless gate: may an arm be compared on a workload, and if not, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.records.files import read_json
from servingbench.records.schema import validate
from servingbench.statistics.settings import KEY_FIELDS, Settings

Verdicts = Mapping[tuple[str, str], str | None]
"""(workload, method) -> None where the arm passed, else the reason why it did not."""


def read_verdicts(files: Sequence[Path], settings: Settings) -> dict[tuple[str, str], str | None]:
    """The verdict on every arm of every workload.

    The baseline may be absent from an audit's methods (it is what they are measured against): its own worst gap then
    has to lie within epsilon.

    Raises:
        UserError: a workload without an audit, an arm that an audit leaves out, two audits of one workload, or an audit
            of another key.
    """
    audits: dict[str, tuple[Path, Any]] = {}
    for file in files:
        audit = read_json(file)
        validate(audit, "lossless", file=file)
        for field in KEY_FIELDS:
            if audit["key"].get(field) != settings.key[field]:
                raise UserError(
                    f"the audit is of another {field} than the comparison's ({settings.key[field]!r})",
                    file=file,
                    key=f"key.{field}",
                    value=audit["key"].get(field),
                )
        workload = audit["key"].get("workload")
        if workload in audits:
            problem = f"the workload was audited in {audits[workload][0]} too"
            raise UserError(problem, file=file, key="key.workload", value=workload)
        audits[workload] = (file, audit)
    verdicts: dict[tuple[str, str], str | None] = {}
    for workload in settings.workloads:
        if workload not in audits:
            raise UserError(
                "the workload was not audited: no speedup without the lossless gate",
                key="workloads",
                value=workload,
                remedy="pass its lossless.json with --lossless",
            )
        file, audit = audits[workload]
        for method in settings.methods:
            verdicts[workload, method] = _reason(audit, file, method, is_baseline=method == settings.baseline)
    return verdicts


def _reason(audit: dict[str, Any], file: Path, method: str, *, is_baseline: bool) -> str | None:
    if method in audit["methods"]:
        row = audit["methods"][method]
        return None if row["passed"] else row["reason"] or "the lossless gate failed"
    if method in audit.get("unsupported", {}):
        return str(audit["unsupported"][method])
    if not is_baseline:
        raise UserError(
            "the method was not audited: no speedup without the lossless gate",
            file=file,
            key="methods",
            value=method,
            remedy="audit it and pass the new lossless.json",
        )
    if audit["baseline_worst_gap"] <= audit["epsilon"]:
        return None
    return f"the baseline's own worst gap {audit['baseline_worst_gap']:g} exceeds epsilon {audit['epsilon']:g}"
