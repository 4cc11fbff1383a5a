"""transformers' own generate: counted without being changed, greedy, and replayable."""

from __future__ import annotations

import random

import pytest
import torch
from tests.fixtures.supported import supported
from tests.fixtures.tiny_models import SHAPES, build, naive_greedy, tiny_model

from servingbench.decoding import Request, build_method
from servingbench.decoding.hf_recorder import Recorder, record
from servingbench.errors import UserError

VOCABULARY = 12
DRAFT = {
    "kind": "transformers",
    "assistant": "draft_model",
    "options": {
        "num_assistant_tokens": 4,
        "num_assistant_tokens_schedule": "constant",
        "assistant_confidence_threshold": 0.0,
    },
}
EARLY_EXIT = {"kind": "transformers", "options": {"assistant_early_exit": 1, **DRAFT["options"]}}
ROWS = {
    "autoregressive_hf": {"kind": "transformers"},
    "prompt_lookup_hf": {
        "kind": "transformers",
        "options": {"prompt_lookup_num_tokens": 6, "max_matching_ngram_size": 2},
    },
    "draft_speculative": DRAFT,
    **({"early_exit": EARLY_EXIT} if supported("early_exit") else {}),
}
DRAFTING_MODELS = tuple(name for name in ("draft_speculative", "early_exit") if name in ROWS)


def model_of(shape: str = "llama", seed: int = 0):
    return tiny_model(shape, seed=seed, vocab_size=VOCABULARY)


def method_of(name: str, model, draft_model=None):
    return build_method(name, ROWS[name], model=model, draft_model=draft_model or model_of("llama", seed=1))


def shapes_of(name: str) -> list[str]:
    return [shape for shape in SHAPES if (shape, name) != ("gpt2", "early_exit")]  # its code runs all of its layers


def request(prompt, new, *, eos=(), reference=None) -> Request:
    return Request(tuple(prompt), new, frozenset(eos), None if reference is None else tuple(reference))


def check_counts(generation, new: int) -> None:
    assert generation.forwards == len(generation.steps)
    assert all(0 <= accepted <= depth == proposed for proposed, depth, accepted in generation.steps)
    assert len(generation.new_token_ids) <= new
    times = (generation.ttft_ns, generation.decode_ns, generation.propose_ns, generation.verify_ns)
    assert all(0 <= time <= generation.wall_ns for time in times)


@pytest.mark.parametrize(("name", "shape"), [(name, shape) for name in ROWS for shape in shapes_of(name)])
def test_greedy_with_the_right_counts(shape, name):
    model = model_of(shape)
    method = method_of(name, model)
    method.warm_up()
    accepted = 0
    for seed in range(3):
        rng = random.Random(seed)
        prompt = [rng.randrange(VOCABULARY) for _ in range(1 + 10 * seed)]
        expected = naive_greedy(model, prompt, new=30)
        generation = method.generate(request(prompt, 30))
        assert generation.new_token_ids == expected
        check_counts(generation, 30)
        accepted += sum(step[2] for step in generation.steps)
        if name == "autoregressive_hf":
            assert generation.forwards == 30
            assert set(generation.steps) == {(0, 0, 0)}
        assert (generation.draft_forwards > 0) == (name in DRAFTING_MODELS)
    assert (accepted > 0) == (name != "autoregressive_hf")


@pytest.mark.parametrize("name", ROWS)
def test_several_ends_of_sequence(name):
    model = model_of()
    prompt = [1, 2, 3, 1, 2]
    expected = naive_greedy(model, prompt, new=40)
    for eos in ({expected[9]}, {expected[9], expected[5]}):
        generation = method_of(name, model).generate(request(prompt, 40, eos=eos))
        assert generation.new_token_ids == naive_greedy(model, prompt, new=40, eos=eos)
        assert generation.finish_reason == "eos"


@pytest.mark.parametrize("new", [1, 2, 3, 7])
@pytest.mark.parametrize("name", ROWS)
def test_never_more_than_the_cap(name, new):
    model = model_of()
    twin = build("llama", vocab_size=VOCABULARY)  # a draft model that is always right
    generation = method_of(name, model, draft_model=twin).generate(request([1, 2, 1, 2, 1, 2], new))
    assert generation.new_token_ids == naive_greedy(model, [1, 2, 1, 2, 1, 2], new=new)
    check_counts(generation, new)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ends", ["length", "eos"])
def test_forced_replay_writes_any_reference_and_hides_it_from_the_draft(name, ends):
    model = model_of()
    reference = [1, 2, 3, 1, 2, 3, 1, 2, 9, 9, 1, 2, 3, 1, 7]
    eos, new = ({7}, 40) if ends == "eos" else (set(), len(reference))
    generation = method_of(name, model).generate(request([5, 1, 2], new, eos=eos, reference=reference))
    assert generation.new_token_ids == reference
    assert generation.finish_reason == ends
    check_counts(generation, new)
    if name in DRAFTING_MODELS:
        # The drafting layers would not have written this text: had it seen the reference, it would have got all of it.
        assert sum(step[2] for step in generation.steps) < sum(step[0] for step in generation.steps) / 2


@pytest.mark.parametrize("name", ROWS)
def test_a_replay_of_its_own_text_changes_nothing(name):
    model = model_of()
    free = method_of(name, model).generate(request([1, 2, 3, 1, 2], 30))
    replay = method_of(name, model).generate(request([1, 2, 3, 1, 2], 30, reference=free.new_token_ids))
    assert replay.new_token_ids == free.new_token_ids
    assert replay.steps == free.steps
    assert replay.draft_forwards == free.draft_forwards


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("fails", [False, True])
def test_the_instances_are_left_as_they_were(name, fails):
    model, draft_model = build("llama", vocab_size=VOCABULARY), build("llama", seed=1, vocab_size=VOCABULARY)
    before = [(dict(vars(one)), one.generation_config.to_dict(), one.config.to_dict()) for one in (model, draft_model)]
    hooks = [dict(one._forward_hooks) for one in (model, draft_model)]
    method = method_of(name, model, draft_model)
    if fails:
        with pytest.raises((IndexError, RuntimeError)):
            method.generate(request([VOCABULARY + 5], 4))  # no such token
    else:
        method.generate(request([1, 2, 1, 2], 8))
    for one, (attributes, generation_config, config), hooked in zip((model, draft_model), before, hooks, strict=True):
        assert vars(one).keys() == attributes.keys()
        assert one.generation_config.to_dict() == generation_config
        assert one.config.to_dict() == config
        assert dict(one._forward_hooks) == hooked == {}


def test_the_models_own_defaults_do_not_leak_in():
    """A repetition penalty in generation_config.json is not greedy decoding."""
    model = build("llama", vocab_size=VOCABULARY)
    model.generation_config.repetition_penalty = 5.0
    model.generation_config.do_sample = True
    generation = method_of("autoregressive_hf", model).generate(request([1, 2, 3], 20))
    assert generation.new_token_ids == naive_greedy(model, [1, 2, 3], new=20)


def test_a_draft_model_with_another_vocabulary_is_refused():
    with pytest.raises(UserError, match="another vocabulary"):
        build_method("draft_speculative", DRAFT, model=model_of(), draft_model=tiny_model("llama", vocab_size=13))


def test_a_missing_draft_model_is_refused():
    with pytest.raises(UserError, match="needs a draft model"):
        build_method("draft_speculative", DRAFT, model=model_of())


def test_an_unknown_option_is_refused():
    with pytest.raises(UserError, match="unknown generation option"):
        build_method("x", {"kind": "transformers", "options": {"prompt_lookup": 3}}, model=model_of())


def test_a_method_that_ran_as_something_else_is_refused():
    method = method_of("prompt_lookup_hf", model_of())
    method._options = {}  # as if transformers had ignored the options
    with pytest.raises(UserError, match="did not decode as the method claims"):
        method.generate(request([1, 2, 1, 2], 4))


def test_what_was_written_beyond_the_end_is_cut_and_recorded():
    recorder = Recorder()
    recorder.put(torch.tensor([[5, 5]]))  # the prompt
    for step in ([1, 2], [3, 4, 9], [6]):
        recorder.forwards += 1
        recorder.proposed.append(3)
        recorder.depths.append(3)
        recorder.put(torch.tensor([step]))
    last_ns = recorder.times_ns[-1]
    cut = record(recorder, request([5, 5], 4), start_ns=0, end_ns=last_ns)
    assert (cut.new_token_ids, cut.finish_reason, cut.overrun_tokens) == ([1, 2, 3, 4], "length", 2)
    assert cut.steps == [(3, 3, 1), (3, 3, 2), (3, 3, 0)]
    assert cut.decode_ns == recorder.times_ns[1] - recorder.times_ns[0]
    ended = record(recorder, request([5, 5], 9, eos={3}), start_ns=0, end_ns=last_ns)
    assert (ended.new_token_ids, ended.finish_reason, ended.overrun_tokens) == ([1, 2, 3], "eos", 3)
    assert ended.steps == [(3, 3, 1), (3, 3, 1), (3, 3, 0)]
