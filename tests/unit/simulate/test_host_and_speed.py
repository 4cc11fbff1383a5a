"""What is timed is what its name says, told by a clock that only moves when something is done."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from servingbench.decoding.drafts import NoDraft
from servingbench.decoding.types import Generation, Request
from servingbench.errors import UserError
from servingbench.simulate import host
from servingbench.simulate.corpus import Recording
from servingbench.simulate.speed import forced_request, log_speedups, round_robin, time_arms


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        ns = 0

        def pass_ns(self, ns):
            self.ns += ns

    clock = Clock()
    monkeypatch.setattr(host, "perf_counter_ns", lambda: clock.ns)
    return clock


def test_drafters_are_timed_apart(clock):
    class Slow(NoDraft):
        def __init__(self, factor):
            self.factor = factor
            self.seen = []

        def start(self, prompt_ids):
            self.seen = list(prompt_ids)
            clock.pass_ns(self.factor * 1000 * len(prompt_ids))

        def extend(self, token_ids):
            self.seen += token_ids
            clock.pass_ns(self.factor * 2000)

        def propose(self, *, max_depth):
            clock.pass_ns(self.factor * 5000)

    drafters = {"one": Slow(1), "two": Slow(2)}
    costs = host.drafter_costs(drafters, list(range(40)), context=30)
    assert costs == {"one": host.DrafterCost(1.0, 2.0, 5.0), "two": host.DrafterCost(2.0, 4.0, 10.0)}
    assert drafters["one"].seen == list(range(40))


def test_only_the_time_between_forwards_counts(clock):
    class Model(torch.nn.Module):
        def forward(self, ns):
            clock.pass_ns(ns)

    model = Model()

    def decode(host_ns):
        def generate(request):
            clock.pass_ns(10**9)  # before the first forward
            for _ in range(request.max_new_tokens):
                model(7_000_000)
                clock.pass_ns(host_ns)

        return generate

    requests = [Request((1,), 3, frozenset()), Request((1,), 4, frozenset())]
    found = host.host_us({"a": decode(4000), "b": decode(9000)}, model, requests, label="")
    assert found == {"a": 4.0, "b": 9.0}
    assert not model._forward_hooks and not model._forward_pre_hooks
    with host.forward_gaps(model) as gaps:
        decode(4000)(requests[0])
    assert gaps == [4000, 4000]


def test_the_long_text_takes_the_tasks_in_turn():
    corpus = [Recording("a", [1], [2]), Recording("a", [3], [4]), Recording("b", [5], [6, 7])]
    assert host.long_text(corpus) == [1, 2, 5, 6, 7, 3, 4]


def test_arms_are_timed_on_the_recorded_text_alone():
    class Arm:
        def __init__(self, ns, tokens=None):
            self.ns, self.tokens = ns, tokens

        def generate(self, request):
            return Generation(self.tokens or list(request.reference), "length", 99, 9, self.ns)

    corpus = [Recording("a", [1], [2, 3]), Recording("a", [1], [4, 5, 6])]
    requests = {
        place: forced_request(recording, cap=2, eos_token_ids=frozenset([9])) for place, recording in enumerate(corpus)
    }
    arms = {"autoregressive": Arm(80), "tree": Arm(20)}
    times = dict(time_arms(arms, requests))
    assert times == {0: {"autoregressive": 80, "tree": 20}, 1: {"autoregressive": 80, "tree": 20}}
    speedups = log_speedups({1: times[1]}, list(arms), recordings=2)
    assert np.isnan(speedups["tree"][0]) and np.exp(speedups["tree"][1]) == pytest.approx(4.0)
    with pytest.raises(UserError, match=r"tree.*other tokens than the recording"):
        dict(time_arms(arms | {"tree": Arm(20, [2, 2])}, requests))


def test_a_replay_has_the_room_that_the_recording_had():
    eos = frozenset([9])
    assert forced_request(Recording("a", [1], [2, 9]), cap=8, eos_token_ids=eos).max_new_tokens == 8
    assert forced_request(Recording("a", [1], [2, 3]), cap=8, eos_token_ids=eos).max_new_tokens == 2
    cut = forced_request(Recording("a", [1], [2, 3, 4]), cap=2, eos_token_ids=eos)
    assert (cut.max_new_tokens, cut.reference) == (2, (2, 3))


def test_prompts_are_taken_from_the_tasks_in_turn():
    corpus = [Recording("x", [1], [1] * (1 if place == 4 else 5)) for place in range(8)]
    chosen = {"a": [0, 1, 2], "b": [4, 5, 6, 7], "c": []}
    assert round_robin(corpus, chosen, prompts=2) == [0, 5, 1, 6]
    assert round_robin(corpus, chosen, prompts=0) == []
