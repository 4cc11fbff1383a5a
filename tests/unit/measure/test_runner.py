"""The paired block: every arm on every prompt once, in rotated order; failures kept; a resumed run like a whole one."""

import dataclasses
from collections import Counter

import pytest
import torch
from tests.fixtures.tiny_folder import tiny_model

from servingbench.decoding import build_method
from servingbench.decoding.types import Generation
from servingbench.measure.journal import Journal
from servingbench.measure.progress import Progress
from servingbench.measure.runner import Block, run_block
from servingbench.prompts.prepare import PreparedPrompt
from servingbench.records.files import sha256_token_ids
from servingbench.records.schema import validate

ROWS = {
    "autoregressive": {"kind": "loop", "draft": "none"},
    "autoregressive_aa": {"kind": "loop", "draft": "none"},
    "prompt_lookup": {"kind": "loop", "draft": "prompt_lookup", "options": {"num_tokens": 4, "max_ngram": 2}},
}


class Wrapped:
    """A method that hands everything on and notes what it was asked."""

    def __init__(self, method, change=lambda number, generation: generation):
        self.method, self.name, self.change = method, method.name, change
        self.requests, self.observed, self.warmed = [], [], 0

    def generate(self, request):
        self.requests.append(request)
        return self.change(len(self.requests) - 1, self.method.generate(request))

    def observe(self, prompt_ids, new_token_ids):
        self.observed.append((tuple(prompt_ids), tuple(new_token_ids)))

    def warm_up(self):
        self.warmed += 1


@pytest.fixture(scope="module")
def model():
    return tiny_model(eos_token_id=None)


def prompts(count):
    ids = [tuple((7 * number + 3 * k * k) % 300 + 2 for k in range(5 + number)) for number in range(count)]
    return [PreparedPrompt(f"p{number}", tokens, sha256_token_ids(tokens)) for number, tokens in enumerate(ids)]


def block(model, *, count=4, timing="forced", repeats=1, change=None):
    methods = {
        name: Wrapped(build_method(name, row, model=model), *([change[name]] if change and name in change else []))
        for name, row in ROWS.items()
    }
    return Block("code-editing", model, methods, prompts(count), 12, frozenset(), timing, repeats)


def run(folder, block, sample=lambda: {"load": 1}):
    with Progress("test", log=folder / "log.txt") as progress:
        journal = Journal(folder, identity="x", notice=progress.note)
        arms = block.arms_per_prompt
        progress.begin(arms=arms * len(block.prompts), done=arms * len(journal.entries))
        run_block(block, journal, progress, sample)
    return journal


def records(journal):
    return [record for entry in journal.entries for record in entry["records"]]


def test_every_arm_answers_every_prompt_in_every_repeat_with_the_same_text(tmp_path, model):
    whole = block(model, count=4, repeats=2)
    rows = records(run(tmp_path, whole))
    for row in rows:
        validate(row, "raw", file="record")
    assert Counter((r["prompt_id"], r["method"], r["repeat"]) for r in rows) == Counter(
        (prompt.id, name, repeat) for prompt in whole.prompts for name in ROWS for repeat in (0, 1)
    )
    assert all(r["status"] == "ok" and r["timing"] == "forced" and len(r["new_token_ids"]) == 12 for r in rows)
    for prompt in whole.prompts:
        mine = [r for r in rows if r["prompt_id"] == prompt.id]
        assert len({tuple(r["new_token_ids"]) for r in mine}) == 1
        assert {r["prompt_sha256"] for r in mine} == {prompt.sha256}
    for method in whole.methods.values():
        assert method.warmed == 1
        assert all(request.reference is not None for request in method.requests)


def test_the_order_rotates_in_balance(tmp_path, model):
    rows = records(run(tmp_path, block(model, count=6)))
    assert set(Counter((r["method"], r["position"]) for r in rows).values()) == {2}
    for prompt in {r["prompt_id"] for r in rows}:
        assert [r["position"] for r in rows if r["prompt_id"] == prompt] == [0, 1, 2]


def test_every_method_observes_every_finished_prompt_after_its_arms(tmp_path, model):
    whole = block(model, count=3)
    journal = run(tmp_path, whole)
    expected = [(p.token_ids, tuple(e["reference"])) for p, e in zip(whole.prompts, journal.entries, strict=True)]
    assert all(method.observed == expected for method in whole.methods.values())


def test_a_free_run_that_leaves_greedy_is_recorded_with_its_margin(tmp_path, model):
    def other(number, generation):
        tokens = list(generation.new_token_ids)
        tokens[5] = (tokens[5] + 1) % 300
        return dataclasses.replace(generation, new_token_ids=tokens)

    whole = block(model, count=1, timing="free", change={"prompt_lookup": other})
    rows = {r["method"]: r for r in records(run(tmp_path, whole))}
    assert rows["autoregressive"]["first_divergence"] is None
    assert rows["prompt_lookup"]["first_divergence"]["index"] == 5
    assert rows["prompt_lookup"]["first_divergence"]["margin"] > 0
    assert all(m.requests[0].reference is None for m in whole.methods.values())


@pytest.mark.parametrize(
    "failure", [torch.cuda.OutOfMemoryError("CUDA out of memory"), RuntimeError("no kernel"), MemoryError()]
)
def test_an_arm_that_fails_is_a_record_and_the_run_goes_on(tmp_path, model, failure):
    def fails_on_second(number, generation):
        if number == 1:
            raise failure
        return generation

    rows = records(run(tmp_path, block(model, count=3, change={"prompt_lookup": fails_on_second})))
    failed = [r for r in rows if r["status"] == "failed"]
    assert [(r["prompt_id"], r["method"]) for r in failed] == [("p1", "prompt_lookup")]
    assert type(failed[0]["error"]) is str
    assert type(failure).__name__ in failed[0]["error"]
    assert failed[0]["wall_ns"] is None
    assert failed[0]["nulls"]["wall_ns"]
    assert len(rows) == 9
    assert "prompt_lookup failed" in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda tokens: [tokens[0] ^ 1, *tokens[1:]], "other tokens than the reference"),
        (lambda tokens: tokens[:-1], "other tokens than the reference"),
    ],
)
def test_a_forced_replay_of_another_text_is_no_measurement(tmp_path, model, change, reason):
    def wrong(number, generation):
        return dataclasses.replace(generation, new_token_ids=change(generation.new_token_ids))

    rows = records(run(tmp_path, block(model, count=1, change={"prompt_lookup": wrong})))
    assert [r["method"] for r in rows if r["status"] == "failed"] == ["prompt_lookup"]
    assert reason in next(r["error"] for r in rows if r["status"] == "failed")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_an_interruption_or_a_bug_ends_the_run_and_the_next_one_continues(tmp_path, model, stop):
    def stops(number, generation):
        if number == 2:
            raise stop
        return generation

    with pytest.raises(stop):
        run(tmp_path, block(model, count=5, change={"prompt_lookup": stops}))
    again = block(model, count=5)
    journal = run(tmp_path, again)
    assert journal.resumed == 1
    assert [entry["prompt_id"] for entry in journal.entries] == ["p0", "p1", "p2", "p3", "p4"]
    assert all(len(method.requests) == 3 for method in again.methods.values())
    (tmp_path / "whole").mkdir()
    whole = block(model, count=5)
    straight = run(tmp_path / "whole", whole)
    assert [m.observed for m in again.methods.values()] == [m.observed for m in whole.methods.values()]
    same = ("prompt_id", "method", "position", "new_token_ids", "steps", "forwards")
    assert [[r[key] for key in same] for r in records(journal)] == [[r[key] for key in same] for r in records(straight)]


def test_a_failed_reference_fails_the_prompts_arms_alone(tmp_path, model):
    class SometimesBroken:
        """The model, except that it has no memory for one prompt."""

        def __init__(self, length):
            self.length = length

        def __getattr__(self, name):
            return getattr(model, name)

        def __call__(self, input_ids, **arguments):
            if input_ids.shape[1] == self.length:
                raise RuntimeError("out of memory")
            return model(input_ids=input_ids, **arguments)

    whole = dataclasses.replace(block(model, count=3), model=SometimesBroken(6))
    rows = records(run(tmp_path, whole))
    assert [r["status"] for r in rows] == ["ok"] * 3 + ["failed"] * 3 + ["ok"] * 3
    assert all("greedy reference failed: RuntimeError: out of memory" in r["error"] for r in rows[3:6])
    assert [len(method.observed) for method in whole.methods.values()] == [2, 2, 2]


def test_more_tokens_than_the_cap_are_no_answer(tmp_path, model):
    def runs_on(number, generation: Generation):
        return dataclasses.replace(generation, new_token_ids=[*generation.new_token_ids, 5])

    whole = block(model, count=1, timing="free", change={"prompt_lookup": runs_on})
    failed = [r for r in records(run(tmp_path, whole)) if r["status"] == "failed"]
    assert "more than the cap of 12" in failed[0]["error"]
