"""statistics.json on synthetic arms of known speed, and on every fault that may reach it."""

from __future__ import annotations

import jsonschema
import pytest
from tests.fixtures.synthetic_records import lossless_record, raw_records, settings_record, write_raw

from servingbench.errors import UserError
from servingbench.records.files import write_json
from servingbench.records.schema import load_schema
from servingbench.statistics.audits import read_verdicts
from servingbench.statistics.report import read_arms, statistics
from servingbench.statistics.settings import Settings

SPEEDS = {"autoregressive": 1.0, "autoregressive_aa": 1.0, "suffix": 1.5, "broken": 9.0, "tree": 2.0}
WORKLOADS = ("code", "math", "chat")


class Bench:
    """Arms of known speed on disk, and their comparison."""

    def __init__(self, root):
        self.root = root
        self.settings = settings_record(list(SPEEDS), WORKLOADS, contrasts=[["tree", "suffix"]])
        self.raw = {
            (workload, method): raw_records(workload, method, prompts=6, speed=speed, noise=0.03)
            for workload in WORKLOADS
            for method, speed in SPEEDS.items()
        }
        self.lossless = {workload: lossless_record(workload, list(SPEEDS)) for workload in WORKLOADS}

    def replace(self, workload, method, **options):
        self.raw[workload, method] = raw_records(
            workload, method, **{"prompts": 6, "speed": SPEEDS[method], "noise": 0.03, **options}
        )

    def compare(self, **changes):
        settings = Settings.from_json({**self.settings, **changes}, file="--settings")
        raw = [write_raw(self.root, records) for records in self.raw.values()]
        audits = [self.root / f"{workload}.json" for workload in self.lossless]
        for path, record in zip(audits, self.lossless.values(), strict=True):
            write_json(path, record)
        record = statistics(read_arms(raw, settings), read_verdicts(audits, settings), settings)
        jsonschema.Draft202012Validator(load_schema("statistics")).validate(record)
        return record


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def pick(record, method, scope="overall", reference="autoregressive"):
    rows = [*record["comparisons"], *record["contrasts"]]
    [row] = [r for r in rows if (r["method"], r["scope"], r["reference"]) == (method, scope, reference)]
    return row


def test_known_speeds_are_found(bench):
    record = bench.compare()
    assert len(record["comparisons"]) == 4 * (3 + 1)
    for row in record["comparisons"]:
        assert row["status"] == "ok"
        assert row["speedup"] == pytest.approx(SPEEDS[row["method"]], rel=0.06)
        assert row["ci"][0] < row["speedup"] < row["ci"][1]
        assert row["n"] == row["identical_outputs"] == (18 if row["scope"] == "overall" else 6)
    tree = pick(record, "tree")
    assert tree["ci"][0] <= 2.0 <= tree["ci"][1]
    assert pick(record, "tree", reference="suffix")["speedup"] == pytest.approx(
        tree["speedup"] / pick(record, "suffix")["speedup"]
    )
    assert record["notes"] == []


def test_numbers_by_hand(bench):
    walls = {"autoregressive": [400, 900, 1600, 100, 100, 100], "tree": [100, 300, 200, 100, 50, 100]}
    for method, values in walls.items():
        for record, wall_ns in zip(bench.raw["code", method], values, strict=True):
            record |= {"wall_ns": wall_ns, "new_token_ids": [1, 2]}
    row = pick(bench.compare(), "tree", "code")
    ratios = [4, 3, 8, 1, 2, 1]
    assert row["speedup"] == pytest.approx((4 * 3 * 8 * 1 * 2 * 1) ** (1 / 6))
    assert row["speedup_total"] == pytest.approx(3200 / 850)
    rates = [sum(2 / wall for wall in walls[method]) for method in ("tree", "autoregressive")]
    assert row["speedup_mean_of_rates"] == pytest.approx(rates[0] / rates[1])
    assert len(ratios) == row["n"]


def test_overall_is_the_equal_weight_geometric_mean_of_the_workloads(bench):
    bench.replace("code", "tree", speed=4.0, noise=0.2, failed=["code/0", "code/1"])
    record = bench.compare()
    product = 1.0
    for workload in WORKLOADS:
        product *= pick(record, "tree", workload)["speedup"]
    assert pick(record, "tree")["speedup"] == pytest.approx(product ** (1 / 3))
    assert pick(record, "tree")["n"] == 16
    assert record["notes"] == [
        "code: tree against autoregressive: 2 of 6 prompts left out, no good record in both arms.",
        "code: tree against suffix: 2 of 6 prompts left out, no good record in both arms.",
    ]


def test_the_same_input_gives_the_same_record_and_another_seed_another_interval(bench):
    first, second = bench.compare(), bench.compare()
    assert first == second
    other = bench.compare(seed=8)
    assert pick(other, "tree")["speedup"] == pick(first, "tree")["speedup"]
    assert pick(other, "tree")["ci"] != pick(first, "tree")["ci"]


def test_a_methods_numbers_do_not_depend_on_the_other_methods(bench):
    alone = {key: records for key, records in bench.raw.items() if key[1] in ("autoregressive", "tree")}
    together = bench.compare()
    bench.raw = alone
    apart = bench.compare(methods=["autoregressive", "tree"], aa=None, contrasts=[])
    assert pick(apart, "tree") == pick(together, "tree")


def test_the_aa_arm_covers_one_and_sets_the_floor(bench):
    record = bench.compare()
    for scope in (*WORKLOADS, "overall"):
        low, high = pick(record, "autoregressive_aa", scope)["ci"]
        assert record["resolution_floor"][scope] == pytest.approx((high / low) ** 0.5)
    low, high = pick(record, "autoregressive_aa")["ci"]
    assert low <= 1 <= high
    assert 1 < record["resolution_floor"]["overall"] < 1.05


def test_an_aa_arm_that_differs_is_noted(bench):
    for workload in WORKLOADS:
        bench.replace(workload, "autoregressive_aa", speed=1.3)
    notes = bench.compare()["notes"]
    assert any(note.startswith("overall: the A/A interval [1.2") and "does not cover 1" in note for note in notes)


def test_without_an_aa_arm_there_is_no_floor(bench):
    assert set(bench.compare(aa=None)["resolution_floor"].values()) == {None}


def test_holm_covers_every_claim_but_the_primary_one_and_the_control(bench):
    for workload in WORKLOADS:
        bench.replace(workload, "suffix", speed=1.01)
        bench.replace(workload, "broken", speed=1.02)
    record = bench.compare()
    rows = [*record["comparisons"], *record["contrasts"]]
    adjusted = {(r["method"], r["reference"]) for r in rows if r["p_holm"] is not None}
    assert adjusted == {("suffix", "autoregressive"), ("broken", "autoregressive"), ("tree", "suffix")}
    assert all(r["scope"] == "overall" for r in rows if r["p_holm"] is not None)
    assert [(r["method"], r["scope"]) for r in rows if r["primary"]] == [("tree", "overall")]
    family = sorted((r for r in rows if r["p_holm"] is not None), key=lambda r: r["p_value"])
    assert family[0]["p_holm"] == pytest.approx(min(1, 3 * family[0]["p_value"]))


def test_a_method_that_failed_the_gate_gets_no_numbers(bench):
    bench.lossless["math"] = lossless_record("math", list(SPEEDS), failed=["broken"])
    record = bench.compare()
    for scope in ("math", "overall"):
        row = pick(record, "broken", scope)
        assert row["status"] == "not_lossless"
        assert "broken failed the lossless gate: worst gap 5.0 exceeds epsilon" in row["reason"]
        numbers = (
            "speedup",
            "ci",
            "percentile_ci",
            "speedup_total",
            "speedup_mean_of_rates",
            "p_value",
            "n_to_resolve",
        )
        assert [row[name] for name in numbers] == [None] * len(numbers)
    assert pick(record, "broken", "code")["status"] == "ok"
    assert pick(record, "broken")["reason"].startswith("math: ")
    assert pick(record, "suffix")["status"] == "ok"


def test_a_contrast_with_a_lossy_reference_gets_no_numbers(bench):
    bench.lossless["math"] = lossless_record("math", list(SPEEDS), failed=["suffix"])
    row = pick(bench.compare(), "tree", "math", "suffix")
    assert (row["status"], row["speedup"]) == ("not_lossless", None)
    assert row["reason"].startswith("suffix failed the lossless gate")


def test_a_baseline_that_failed_the_gate_leaves_no_comparison(bench):
    bench.lossless["math"] = lossless_record("math", list(SPEEDS), failed=["autoregressive"])
    record = bench.compare()
    assert {row["status"] for row in record["comparisons"] if row["scope"] == "math"} == {"not_lossless"}


def test_a_baseline_outside_the_audits_methods_is_judged_by_its_worst_gap(bench):
    del bench.lossless["math"]["methods"]["autoregressive"]
    assert pick(bench.compare(), "tree", "math")["status"] == "ok"
    bench.lossless["math"]["baseline_worst_gap"] = 1.5
    row = pick(bench.compare(), "tree", "math")
    assert row["status"] == "not_lossless"
    assert "1.5 exceeds epsilon 1" in row["reason"]


def test_a_run_that_failed_says_why(bench):
    bench.replace("chat", "tree", failed=[f"chat/{i}" for i in range(6)])
    record = bench.compare()
    for scope in ("chat", "overall"):
        row = pick(record, "tree", scope)
        assert (row["status"], row["speedup"], row["n"]) == ("failed", None, 0)
        assert "every record of tree failed: RuntimeError: synthetic failure" in row["reason"]
    assert pick(record, "tree", "code")["status"] == "ok"


def test_two_prompts_have_a_speedup_but_no_interval(bench):
    for key in bench.raw:
        bench.replace(*key, prompts=2)
    record = bench.compare()
    row = pick(record, "tree", "code")
    assert (row["status"], row["ci"], row["p_value"], row["n_to_resolve"]) == ("too_few", None, None, None)
    assert row["speedup"] == pytest.approx(2, rel=0.1)
    assert record["resolution_floor"]["code"] is None


def test_no_pairable_prompt_is_too_few(bench):
    for records in (bench.raw["code", "tree"],):
        for record in records:
            record["prompt_sha256"] = "e" * 64
    record = bench.compare()
    for scope in ("code", "overall"):
        row = pick(record, "tree", scope)
        assert (row["status"], row["speedup"]) == ("too_few", None)
        assert row["reason"] == "no prompt could be paired on code"
    assert "code: tree against autoregressive: 6 of 6 prompts left out, the rendered prompts differ." in record["notes"]


def test_free_timing_pairs_only_identical_outputs_and_says_so(bench):
    for workload, method in bench.raw:
        divergent = [f"{workload}/1", f"{workload}/4"] if method == "tree" else []
        bench.replace(workload, method, timing="free", divergent=divergent)
    record = bench.compare(timing="free")
    row = pick(record, "tree", "code")
    assert (row["n"], row["identical_outputs"], row["status"]) == (4, 4, "ok")
    assert record["notes"][0].startswith("Free timing: only prompts on which both arms wrote the same tokens")
    assert "code: tree against autoregressive: 2 of 6 prompts left out, the outputs differ." in record["notes"]


def test_n_to_resolve_is_large_for_noise_and_small_for_an_effect(bench):
    record = bench.compare()
    assert pick(record, "tree")["n_to_resolve"] <= pick(record, "tree")["n"]
    assert pick(record, "autoregressive_aa")["n_to_resolve"] > pick(record, "autoregressive_aa")["n"]


def test_bca_can_be_asked_for(bench):
    row = pick(bench.compare(interval="bca"), "tree")
    assert row["ci"][0] < 2.0 < row["ci"][1]
    assert row["ci"] != pick(bench.compare(), "tree")["ci"]


def test_a_missing_audit_is_an_error(bench):
    del bench.lossless["math"]
    with pytest.raises(UserError, match=r"workloads: the workload was not audited.*'math'"):
        bench.compare()


def test_a_method_missing_from_an_audit_is_an_error(bench):
    del bench.lossless["math"]["methods"]["tree"]
    with pytest.raises(UserError, match=r"math.json: methods: the method was not audited.*'tree'"):
        bench.compare()


def test_an_audit_of_another_key_is_an_error(bench):
    bench.lossless["math"]["key"]["model"] = "other"
    with pytest.raises(UserError, match=r"math.json: key.model: the audit is of another model.*'other'"):
        bench.compare()


def test_two_audits_of_one_workload_are_an_error(bench):
    bench.lossless["again"] = bench.lossless["math"]
    with pytest.raises(UserError, match="was audited in"):
        bench.compare()


def test_missing_raw_records_are_an_error(bench):
    del bench.raw["math", "tree"]
    with pytest.raises(UserError, match=r"no raw records.*'math, tree'"):
        bench.compare()


def test_an_unknown_arm_is_an_error(bench):
    bench.raw["math", "other"] = raw_records("math", "other")
    with pytest.raises(UserError, match=r"not among the methods to compare.*'other'"):
        bench.compare()


def test_the_other_timing_is_an_error(bench):
    with pytest.raises(UserError, match=r"timing: not the comparison's timing.*'forced'"):
        bench.compare(timing="free")


def test_an_arm_given_twice_is_an_error(tmp_path):
    settings = Settings.from_json(settings_record(["autoregressive", "tree"], ["code"]), file="--settings")
    path = write_raw(tmp_path, raw_records("code", "tree"))
    with pytest.raises(UserError, match=r"given twice.*'code, tree'"):
        read_arms([path, path], settings)
