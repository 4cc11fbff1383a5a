"""Every metric against values computed by hand from two small records."""

from __future__ import annotations

import pytest
from tests.fixtures.synthetic_records import raw_records

from servingbench.metrics.records import MissingValue
from servingbench.metrics.registry import METRICS

MIB = 2**20


def hand_records():
    """Prompt 0: N 11, F 5, S 3, D 14, depth 11, A 6. Prompt 1: N 6, F 2, S 1, D 4, depth 4, A 4."""
    first, second = raw_records("code", "tree", prompts=2, proposed=4)
    first |= {
        "new_token_ids": list(range(11)),
        "steps": [[0, 0, 0], [4, 4, 3], [6, 3, 2], [0, 0, 0], [4, 4, 1]],
        "forwards": 5,
        "wall_ns": 2_200_000_000,
        "ttft_ns": 200_000_000,
        "decode_ns": 2_000_000_000,
        "propose_ns": 400_000,
        "draft_forwards": 3,
        "peak_memory_bytes": 3 * MIB,
        "overrun_tokens": 1,
    }
    second |= {
        "new_token_ids": list(range(6)),
        "steps": [[0, 0, 0], [4, 4, 4]],
        "forwards": 2,
        "wall_ns": 800_000_000,
        "ttft_ns": 300_000_000,
        "decode_ns": 500_000_000,
        "propose_ns": 100_000,
        "draft_forwards": 4,
        "peak_memory_bytes": 5 * MIB,
    }
    return [first, second]


HAND_VALUES = {
    "new_tokens": 17,
    "forwards": 7,
    "tokens_per_forward": 17 / 7,
    "acceptance_length_pooled": 1 + 10 / 4,
    "acceptance_length_mean": ((1 + 6 / 3) + (1 + 4 / 1)) / 2,
    "acceptance_rate": 10 / 18,
    "acceptance_rate_depth": 10 / 15,
    "verify_utilisation": 14 / 22,
    "proposed_per_step": 18 / 4,
    "accepted_per_step": 10 / 4,
    "overall_tokens_per_second": 17 / 3.0,
    "tpot_ms": (200 + 100) / 2,
    "ttft_ms": (200 + 300) / 2,
    "propose_us_per_step": 500 / 5,
    "draft_forwards": 7,
    "peak_memory_mib": 5.0,
    "overrun_tokens": 1,
}


@pytest.mark.parametrize(("name", "value"), HAND_VALUES.items())
def test_metric_equals_its_hand_value(name, value):
    assert METRICS[name](hand_records()) == pytest.approx(value, rel=1e-12)


def test_every_metric_has_a_hand_value():
    assert set(METRICS) == {*HAND_VALUES, "position_profile"}


def test_position_profile_equals_its_hand_value():
    profile = METRICS["position_profile"](hand_records())  # drafts' (depth, A): (4, 3), (3, 2), (4, 1), (4, 4)
    assert profile["count"] == [4, 4, 4, 3]
    assert profile["reach"] == pytest.approx([4 / 4, 3 / 4, 2 / 4, 1 / 3])
    assert profile["conditional"] == pytest.approx([4 / 4, 3 / 4, 2 / 3, 1 / 2])


def test_position_profile_is_null_where_no_draft_got_that_far():
    record = raw_records("code", "tree", prompts=1, proposed=3, acceptance=0.0)[0]
    assert METRICS["position_profile"]([record])["conditional"] == [0.0, None, None]


def test_autoregressive_takes_exactly_one_token_per_forward_and_has_no_acceptance():
    records = raw_records("code", "autoregressive", prompts=3, new_tokens=7)
    assert METRICS["tokens_per_forward"](records) == 1.0
    assert METRICS["position_profile"](records) == {"reach": [], "conditional": [], "count": []}
    for name in ("acceptance_length_pooled", "acceptance_length_mean", "acceptance_rate", "verify_utilisation"):
        with pytest.raises(MissingValue, match="no forward carried a proposed token"):
            METRICS[name](records)


def test_acceptance_length_mean_skips_prompts_without_a_draft():
    drafted = hand_records()
    idle = raw_records("code", "tree", prompts=3)[2]
    assert METRICS["acceptance_length_mean"]([*drafted, idle]) == pytest.approx(4.0)


def test_acceptance_length_mean_pools_a_prompts_repeats():
    first, second = hand_records()
    second |= {"prompt_id": first["prompt_id"], "repeat": 1}
    assert METRICS["acceptance_length_mean"]([first, second]) == pytest.approx(1 + 10 / 4)


def test_tpot_needs_a_second_token():
    first, second = hand_records()
    first["new_token_ids"] = [1]
    assert METRICS["tpot_ms"]([first, second]) == pytest.approx(100)
    with pytest.raises(MissingValue, match="more than one token"):
        METRICS["tpot_ms"]([first])


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("peak_memory_mib", "peak_memory_bytes"),
        ("propose_us_per_step", "propose_ns"),
        ("overall_tokens_per_second", "wall_ns"),
        ("tokens_per_forward", "forwards"),
        ("tpot_ms", "decode_ns"),
    ],
)
def test_one_null_makes_the_metric_missing_with_the_records_own_reason(name, field):
    records = hand_records()
    records[1] |= {field: None, "nulls": {field: "the platform does not say"}}
    with pytest.raises(MissingValue, match="the platform does not say"):
        METRICS[name](records)


def test_steps_that_were_not_recorded_are_missing_not_zero():
    records = hand_records()
    records[1]["steps"] = []
    with pytest.raises(MissingValue, match="not recorded"):
        METRICS["acceptance_rate"](records)
