"""Why an attempt failed, from its log and config/failures.yaml: a known cause or `unclassified`, never a guess."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servingbench.config.tables import Table, load_yaml
from servingbench.errors import UserError
from servingbench.records.schema import validate

UNCLASSIFIED = "unclassified"
KNOWN = ("cause", "since", "fixed_in", "workaround", "refs")
# The last line of a traceback: a dotted name that ends as exceptions' names do, a colon, and what happened.
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b(?::.*)?$", re.MULTILINE)
_MOST_CHARACTERS = 600


def load_failures(path: Path) -> Table:
    """Read config/failures.yaml.

    Raises:
        UserError: for a row that its schema refuses or a pattern that is no regular expression.
    """
    table: Table = load_yaml(path)
    validate(table, "failures", file=path)
    for name, row in table.items():
        try:
            re.compile(row["pattern"])
        except re.error as error:
            raise UserError(f"not a regular expression: {error}", file=path, key=f"{name}.pattern") from None
    return table


def last_exception(log: str) -> str | None:
    """The last exception in ``log``, as its traceback's last line says it; None without any."""
    found = _EXCEPTION.findall(log)
    return str(found[-1])[:_MOST_CHARACTERS] if found else None


def classify(log: str, *, phase: str, table: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Why an attempt failed.

    Args:
        log: the server's whole log (and the body of the answer that failed, if one did).
        phase: where it failed: launch, first_request, eval or load.
        table: of :func:`load_failures`.

    Returns:
        Fields of summary.json's ``failure``; all that is known of an unclassified one is its exception.
    """
    exception = last_exception(log)
    for name, row in table.items():
        if row.get("phase", phase) == phase and re.search(row["pattern"], log):
            return {"phase": phase, "signature": name, "exception": exception, **{key: row[key] for key in KNOWN}}
    nothing: dict[str, Any] = {**dict.fromkeys(KNOWN), "refs": []}
    return {"phase": phase, "signature": UNCLASSIFIED, "exception": exception, **nothing}
