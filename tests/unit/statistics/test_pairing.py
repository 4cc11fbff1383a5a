"""Pairing: what is compared with what, and what is left out."""

from __future__ import annotations

import math

import pytest
from tests.fixtures.synthetic_records import raw_records

from servingbench.statistics.pairing import pair


def arms(**method):
    return raw_records("code", "autoregressive"), raw_records("code", "tree", speed=2.0, proposed=8, **method)


def set_times(records, walls_ns, tokens):
    for record, wall_ns in zip(records, walls_ns, strict=True):
        record |= {"wall_ns": wall_ns, "new_token_ids": list(range(tokens))}


def test_values_by_hand():
    reference = raw_records("code", "autoregressive", prompts=2, repeats=2)
    method = raw_records("code", "tree", prompts=2, repeats=2)
    set_times(reference, [400, 600, 900, 900], 10)
    set_times(method, [100, 300, 300, 900], 10)
    pairs = pair(reference, method)
    assert pairs.log_ratios == pytest.approx([(math.log(4) + math.log(2)) / 2, (math.log(3) + math.log(1)) / 2])
    assert pairs.wall_reference_ns.tolist() == [1000, 1800]
    assert pairs.wall_method_ns.tolist() == [400, 1200]
    assert pairs.rates_reference == pytest.approx([1e9 * (10 / 400 + 10 / 600) / 2, 1e9 * 10 / 900])
    assert pairs.rates_method == pytest.approx([1e9 * (10 / 100 + 10 / 300) / 2, 1e9 * (10 / 300 + 10 / 900) / 2])
    assert (pairs.identical, pairs.excluded) == (2, {})


def test_the_order_of_the_records_does_not_matter():
    reference, method = arms()
    assert pair(reference, method[::-1]).log_ratios == pytest.approx([math.log(2)] * 4)


def test_other_rendered_prompts_are_left_out():
    reference, method = arms()
    method[1]["prompt_sha256"] = "f" * 64
    pairs = pair(reference, method)
    assert len(pairs.log_ratios) == 3
    assert pairs.excluded == {"the rendered prompts differ": 1}


def test_other_outputs_are_left_out():
    reference, method = arms(timing="free", divergent=["code/2"])
    pairs = pair(reference, method)
    assert (len(pairs.log_ratios), pairs.identical) == (3, 3)
    assert pairs.excluded == {"the outputs differ": 1}


def test_failed_and_absent_records_are_left_out():
    reference, method = arms(failed=["code/0"])
    pairs = pair(reference, method[:-1])
    assert len(pairs.log_ratios) == 2
    assert pairs.excluded == {"no good record in both arms": 2}


def test_a_failed_repeat_leaves_its_pair_out_on_both_sides():
    reference = raw_records("code", "autoregressive", prompts=1, repeats=2)
    method = raw_records("code", "tree", prompts=1, repeats=2)
    set_times(reference, [400, 1000], 10)
    set_times(method, [200, 1000], 10)
    method[1]["status"] = "failed"
    pairs = pair(reference, method)
    assert pairs.log_ratios == pytest.approx([math.log(2)])
    assert pairs.wall_reference_ns.tolist() == [400]


def test_an_empty_output_has_no_time_per_token():
    reference, method = arms()
    for records in (reference, method):
        records[0]["new_token_ids"] = []
    pairs = pair(reference, method)
    assert (len(pairs.log_ratios), pairs.identical) == (3, 4)
    assert pairs.excluded == {"no time per token": 1}
