"""Signatures against logs that real servers wrote (ends of them, in tests/fixtures/serve_logs)."""

from __future__ import annotations

from pathlib import Path

import pytest

from servingbench.errors import UserError
from servingbench.serving.failures import UNCLASSIFIED, classify, load_failures

LOGS = Path(__file__).parents[2] / "fixtures" / "serve_logs"
LAUNCH = {"sdpa-unsupported", "flash-attn-missing", "architecture-unknown", "port-in-use"}


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.log")), ids=lambda path: path.stem)
def test_a_real_log_finds_its_row(path: Path, repository: Path) -> None:
    table = load_failures(repository / "config" / "failures.yaml")
    phase = "launch" if path.stem in LAUNCH else "first_request"
    failure = classify(path.read_text(), phase=phase, table=table)
    assert failure["signature"] == path.stem
    assert failure["cause"] == table[path.stem]["cause"]


def test_every_signature_that_was_seen_has_a_log(repository: Path) -> None:
    table = load_failures(repository / "config" / "failures.yaml")
    seen = {name for name, row in table.items() if row["evidence"] == "seen"}
    assert seen - {"killed"} == {path.stem for path in LOGS.glob("*.log")}  # `killed` is said by the row, in no log


def test_what_no_row_fits_is_unclassified_with_its_exception(repository: Path) -> None:
    table = load_failures(repository / "config" / "failures.yaml")
    failure = classify("Traceback\nmodule.OddError: never seen\nINFO: done", phase="launch", table=table)
    assert failure["signature"] == UNCLASSIFIED
    assert failure["exception"] == "module.OddError: never seen"
    assert failure["cause"] is None


def test_a_pattern_that_is_no_regular_expression_is_refused(tmp_path: Path) -> None:
    row = "{pattern: '(', evidence: seen, cause: x, since: null, fixed_in: null, workaround: null, refs: []}"
    (tmp_path / "failures.yaml").write_text(f"broken: {row}\n")
    with pytest.raises(UserError, match=r"broken\.pattern: not a regular expression"):
        load_failures(tmp_path / "failures.yaml")
