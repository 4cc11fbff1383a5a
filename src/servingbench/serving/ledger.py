"""The ledger: attempts that failed, were abandoned or degraded, why, and the published ones beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from servingbench.config.tables import Table, load_yaml
from servingbench.errors import UserError
from servingbench.records.schema import suggest, validate
from servingbench.serving.failures import KNOWN, UNCLASSIFIED, classify

TITLES = {"failed": "Failed", "abandoned": "Abandoned", "degraded": "Degraded", "predicted_fail": "Not started"}


def load_reported_attempts(path: Path, failures: Table) -> list[dict[str, Any]]:
    """Read config/reported/serve_attempts.yaml; every entry's class is a row of ``failures``.

    Raises:
        UserError: for an entry that its schema refuses or a class that does not exist.
    """
    entries: list[dict[str, Any]] = load_yaml(path)
    validate(entries, "reported_attempts", file=path)
    for number, entry in enumerate(entries):
        if entry["signature"] not in failures:
            remedy = suggest(entry["signature"], failures)
            raise UserError("no such row of config/failures.yaml", file=path, key=f"{number}.signature", remedy=remedy)
    return entries


def ledger(
    summaries: Sequence[tuple[Path, Mapping[str, Any]]],
    *,
    labels: Mapping[str, str],
    failures: Table,
    reported: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """ledger.json.

    Logs are classified anew with the present table, so that a new signature explains old attempts without a rerun.

    Args:
        summaries: each row's folder and summary.json.
        labels: the rows' labels.
        failures: of :func:`servingbench.serving.failures.load_failures`.
        reported: of :func:`load_reported_attempts`.
    """
    entries = [entry for folder, summary in summaries for entry in _entries(folder, summary, labels, failures)]
    return {
        "schema_version": 1,
        "key": summaries[0][1]["key"] if summaries else None,
        "rows": dict(Counter(summary["status"] for _, summary in summaries)),
        "entries": entries,
        "reported": [{**_known(entry["signature"], failures), **entry} for entry in reported],
    }


def _entries(
    folder: Path, summary: Mapping[str, Any], labels: Mapping[str, str], failures: Table
) -> list[dict[str, Any]]:
    common = {
        "row_id": summary["row_id"],
        "label": labels.get(summary["row_id"], summary["row_id"]),
        "model": summary["model"]["id"],
        "architecture": summary["model"]["architecture"],
        "hardware": summary["hardware"]["flavor"],
        "engine": f"{summary['engine']['name']} {summary['engine']['version']}",
    }
    if summary["status"] == "predicted_fail":
        certain = [entry for entry in summary["preflight"] if entry["verdict"] == "fail"]
        said = "; ".join(str(entry["evidence"]) for entry in certain)
        return [{**common, "attempt": None, "outcome": "predicted_fail", "failure": None, "said": said, "log": None}]
    found = []
    for entry in summary["attempts"]:
        if entry["outcome"] == "ok":
            continue
        log = folder / "attempts" / f"{entry['number']:03}" / "server.log"
        note = (entry["failure"] or {}).get("said")
        found.append(
            {
                **common,
                "attempt": entry["number"],
                "workaround_tried": entry["workaround"],
                "outcome": entry["outcome"],
                "failure": _again(entry, log, note, failures),
                "said": note,
                "log": str(log) if log.exists() else None,
                "serves_with": _remedy(summary, entry),
            }
        )
    return found


def _again(entry: Mapping[str, Any], log: Path, said: str | None, failures: Table) -> dict[str, Any] | None:
    """The attempt's failure by the present table; None for an attempt that was interrupted."""
    failure: dict[str, Any] | None = entry["failure"]
    if failure is None or "signature" not in failure or entry["outcome"] == "degraded":
        return failure if failure and "signature" in failure else None
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return classify(f"{text}\n{said or ''}", phase=failure["phase"], table=failures)


def _remedy(summary: Mapping[str, Any], entry: Mapping[str, Any]) -> str | None:
    """The workaround of a later attempt that served."""
    later = [
        one for one in summary["attempts"] if one["number"] > entry["number"] and one["outcome"] in ("ok", "degraded")
    ]
    return later[0]["workaround"] if later else None


def _known(signature: str, failures: Table) -> dict[str, Any]:
    return {f"known_{key}": failures[signature][key] for key in KNOWN if key != "refs"}


def markdown(record: Mapping[str, Any]) -> str:
    """ledger.md: the same for people."""
    counts = ", ".join(f"{number} {status.replace('_', ' ')}" for status, number in sorted(record["rows"].items()))
    key = record["key"] or {}
    lines = [
        "# Failed and abandoned attempts",
        "",
        f"{key.get('revision', '')} on {key.get('gpu', '')}, seed {key.get('seed', '')}, limit {key.get('limit', '')}. "
        f"Rows: {counts or 'none'}.",
        "",
        "## Measured here",
        "",
    ]
    for entry in record["entries"]:
        lines += _measured(entry)
    if not record["entries"]:
        lines += ["None.", ""]
    lines += ["## Reported, not measured here", ""]
    lines += ["| model | hardware | outcome | what happened | cause as reported | class |", "|---|---|---|---|---|---|"]
    for entry in record["reported"]:
        cells = [entry[name] for name in ("model", "hardware", "outcome", "what", "cause", "signature")]
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    sources = dict.fromkeys(entry["source"] for entry in record["reported"])
    return "\n".join([*lines, "", f"Source: {'; '.join(sources)}." if sources else ""]).rstrip() + "\n"


def _measured(entry: Mapping[str, Any]) -> list[str]:
    failure = entry["failure"] or {}
    signature = failure.get("signature")
    facts = {
        "Phase": failure.get("phase"),
        "Class": signature if signature != UNCLASSIFIED else f"{UNCLASSIFIED}: no row of config/failures.yaml fits",
        "Cause": failure.get("cause"),
        "Exception": f"`{failure['exception']}`" if failure.get("exception") else None,
        "Said": entry.get("said"),
        "Since": failure.get("since"),
        "Fixed in": failure.get("fixed_in"),
        "Workaround": failure.get("workaround"),
        "Serves with": entry.get("serves_with"),
        "Upstream": ", ".join(failure.get("refs") or []) or None,
        "Log": f"`{entry['log']}`" if entry.get("log") else None,
    }
    number = f", attempt {entry['attempt']}" if entry["attempt"] else ""
    head = f"### {TITLES[entry['outcome']]}: {entry['label']} (`{entry['row_id']}`{number})"
    where = f"{entry['model']} on {entry['hardware']}, {entry['engine']}."
    return [head, "", where, "", *(f"- {name}: {value}" for name, value in facts.items() if value), ""]
