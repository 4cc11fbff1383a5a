"""summary.json: aggregates over good records, nulls with reasons, the schema."""

from __future__ import annotations

import jsonschema
import pytest
from tests.fixtures.synthetic_records import raw_records, run_record

from servingbench.errors import UserError
from servingbench.metrics.registry import METRICS
from servingbench.metrics.summary import summarize
from servingbench.records.schema import load_schema


def check(summary):
    jsonschema.Draft202012Validator(load_schema("summary")).validate(summary)
    nulls = {name for name, value in summary["metrics"].items() if value is None}
    assert nulls == set(summary["nulls"])


def test_a_good_run_follows_the_schema():
    run = run_record("code")
    summary = summarize(raw_records("code", "tree", proposed=8, depth=3, repeats=2), run)
    check(summary)
    assert (summary["status"], summary["n_prompts"], summary["n_records"], summary["n_failed"]) == ("ok", 4, 8, 0)
    assert (summary["key"], summary["provenance"]) == (run["key"], run["provenance"])
    assert summary["nulls"] == {}


def test_failed_records_are_counted_and_left_out():
    partly = raw_records("code", "tree", proposed=8, failed=["code/1"])
    good = [record for record in raw_records("code", "tree", proposed=8) if record["prompt_id"] != "code/1"]
    summary = summarize(partly, run_record("code"))
    check(summary)
    assert (summary["status"], summary["n_prompts"], summary["n_failed"]) == ("ok", 4, 1)
    assert summary["metrics"] == {name: metric(good) for name, metric in METRICS.items()}


def test_a_run_without_a_good_record_is_failed_and_has_no_numbers():
    summary = summarize(raw_records("code", "tree", prompts=2, failed=["code/0", "code/1"]), run_record("code"))
    check(summary)
    assert summary["status"] == "failed"
    values = {name: value for name, value in summary["metrics"].items() if value is not None}
    assert set(values) == {"new_tokens", "overrun_tokens", "position_profile"}
    assert set(summary["nulls"].values()) == {"no record succeeded"}


def test_autoregressive_has_null_acceptance_with_a_reason():
    summary = summarize(raw_records("code", "autoregressive"), run_record("code"))
    check(summary)
    assert summary["metrics"]["acceptance_rate"] is None
    assert summary["nulls"]["acceptance_rate"] == "no forward carried a proposed token"
    assert summary["metrics"]["draft_forwards"] == 0


def test_the_run_of_another_workload_is_refused():
    with pytest.raises(UserError, match="another workload"):
        summarize(raw_records("code", "tree"), run_record("math"))
