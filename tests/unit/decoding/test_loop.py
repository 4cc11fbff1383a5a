"""The loop writes what greedy decoding writes, token for token, whatever is drafted, on every shape of model."""

from __future__ import annotations

import random
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures.drafters import FaultyTarget, KnowingDrafter
from tests.fixtures.loop_methods import ROWS, SMALL, check_counts, random_table
from tests.fixtures.tiny_models import CONTEXT, SHAPES, VOCABULARY, naive_greedy, tiny_model

from servingbench.decoding import Request, build_method, greedy_reference
from servingbench.decoding.drafts.base import Draft, NoDraft
from servingbench.decoding.loop import LoopMethod
from servingbench.decoding.target import Target
from servingbench.errors import UserError


def request(prompt, new, *, eos=(), reference=None) -> Request:
    return Request(tuple(prompt), new, frozenset(eos), None if reference is None else tuple(reference))


@cache
def prompt_and_text(shape: str, seed: int) -> tuple[list[int], list[int]]:
    rng = random.Random(seed)
    prompt = [rng.randrange(SMALL) for _ in range(1 + 7 * seed)]
    return prompt, naive_greedy(tiny_model(shape, vocab_size=SMALL), prompt, new=50)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ROWS)
def test_every_method_is_greedy_on_every_shape(shape, name):
    model = tiny_model(shape, vocab_size=SMALL)
    method = build_method(name, ROWS[name], model=model, static_table=random_table(SMALL))
    method.warm_up()
    accepted = 0
    for seed in range(6):
        prompt, expected = prompt_and_text(shape, seed)
        generation = method.generate(request(prompt, 50))
        assert generation.new_token_ids == expected
        assert generation.finish_reason == "length"
        check_counts(generation, 50)
        accepted += sum(step[2] for step in generation.steps)
        method.observe(prompt, expected)
    assert accepted > 20 or name == "autoregressive"


@settings(max_examples=80, deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    prompt=st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=30),
    seed=st.integers(0, 2**16),
    new=st.integers(1, 40),
    paths=st.booleans(),
    eos=st.sets(st.integers(0, VOCABULARY - 1), max_size=3),
)
def test_planted_drafts_are_accepted_and_change_nothing(shape, prompt, seed, new, paths, eos):
    model = tiny_model(shape)
    expected = naive_greedy(model, prompt, new=new, eos=eos)
    drafter = KnowingDrafter(expected, vocabulary=VOCABULARY, seed=seed, paths=paths)
    generation = LoopMethod("planted", Target(model), drafter).generate(request(prompt, new, eos=eos))
    assert generation.new_token_ids == expected
    check_counts(generation, new)
    # Every draft is accepted as far as it agrees with the output.
    place = 1
    for draft, (proposed, _, accepted) in zip(drafter.proposed, generation.steps[1:], strict=False):
        node, depth = -1, 0
        while draft and place + depth < len(expected):
            child = draft.child(node, expected[place + depth])
            if child is None:
                break
            node, depth = child, depth + 1
        assert proposed == (len(draft.tokens) if draft else 0)
        assert accepted == depth
        place += accepted + 1


class Scripted(NoDraft):
    """Proposes what it is told."""

    max_nodes = 40

    def __init__(self, *drafts: Draft | None) -> None:
        self.drafts = list(drafts)

    def propose(self, *, max_depth):
        return self.drafts.pop(0) if self.drafts else None


def planted_tree(model, prompt) -> tuple[list[int], Draft]:
    """Greedy's continuation, and a tree that holds four of its tokens behind wrong siblings on every level."""
    expected = naive_greedy(model, prompt, new=20)
    tokens, parents, parent = [], [], -1
    for token in expected[1:5]:
        wrong = (token + 1) % VOCABULARY
        tokens += [wrong, token]
        parents += [parent, parent]
        parent = len(tokens) - 1
    return expected, Draft.tree(tokens, parents)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_the_accepted_branch_need_not_be_the_first_child(shape, attention):
    model = tiny_model(shape, attention=attention)
    expected, tree = planted_tree(model, [5, 6, 7])
    generation = LoopMethod("planted", Target(model), Scripted(tree)).generate(request([5, 6, 7], 20))
    assert generation.new_token_ids == expected
    assert generation.steps[1] == (8, 4, 4)


@pytest.mark.parametrize("shape", SHAPES)
def test_rejected_siblings_left_in_the_cache_are_caught(shape):
    """The same tree with the fault planted must write another text, or the exactness tests above prove nothing."""
    model = tiny_model(shape)
    outputs = []
    for target in (Target(model), FaultyTarget(model)):
        expected, tree = planted_tree(model, [5, 6, 7])
        generation = LoopMethod("planted", target, Scripted(tree)).generate(request([5, 6, 7], 20))
        outputs.append(generation.new_token_ids == expected)
    assert outputs == [True, False]


def test_end_of_sequence_inside_a_draft_ends_the_output_there():
    model = tiny_model("llama")
    expected = naive_greedy(model, [1, 2, 3], new=12)
    place = next(i for i in range(3, 12) if expected[i] not in expected[:i])
    for eos in ({expected[place]}, {expected[place], expected[place + 1], 0} - set(expected[:place])):
        drafter = Scripted(Draft.path(expected[1:10]))
        generation = LoopMethod("eos", Target(model), drafter).generate(request([1, 2, 3], 12, eos=eos))
        assert generation.new_token_ids == expected[: place + 1]
        assert generation.finish_reason == "eos"
        assert generation.steps == [(0, 0, 0), (9, 9, place)]


def test_end_of_sequence_as_the_very_first_token():
    model = tiny_model("llama")
    first = naive_greedy(model, [1, 2, 3], new=1)
    generation = build_method("suffix", ROWS["suffix"], model=model).generate(request([1, 2, 3], 9, eos=first))
    assert (generation.new_token_ids, generation.finish_reason, generation.forwards) == (first, "eos", 1)
    assert generation.decode_ns == 0


@pytest.mark.parametrize("cap", range(1, 8))
def test_the_cap_inside_a_draft(cap):
    """A drafter that knows it all is asked for no more than fits, and nothing beyond the cap is written."""
    model = tiny_model("llama")
    expected = naive_greedy(model, [4, 4], new=cap)

    class Greedy(NoDraft):
        max_nodes = 40

        def propose(self, *, max_depth):
            return Draft.path(expected[1 : 1 + max_depth])

    generation = LoopMethod("cap", Target(model), Greedy()).generate(request([4, 4], cap))
    assert generation.new_token_ids == expected
    assert generation.finish_reason == "length"
    # Everything in two forwards: the last token is the model's own, and nothing is drafted in front of no room.
    drafted = max(cap - 2, 0)
    assert generation.steps == [(0, 0, 0), (drafted, drafted, drafted)][:cap]


def test_a_draft_beyond_the_cap_is_cut_too():
    """A drafter that ignores max_depth cannot push the output over the cap."""
    model = tiny_model("llama")
    expected = naive_greedy(model, [4, 4], new=12)
    drafter = Scripted(Draft.path(expected[1:11]))
    generation = LoopMethod("cap", Target(model), drafter).generate(request([4, 4], 5))
    assert generation.new_token_ids == expected[:5]
    assert generation.steps == [(0, 0, 0), (10, 10, 4)]


def test_an_empty_draft_is_no_draft():
    model = tiny_model("llama")
    generation = LoopMethod("empty", Target(model), Scripted(Draft.path([]), None)).generate(request([4, 4], 4))
    assert generation.new_token_ids == naive_greedy(model, [4, 4], new=4)
    assert generation.steps == [(0, 0, 0)] * 4


def test_no_tokens_asked_for():
    generation = build_method("a", ROWS["autoregressive"], model=tiny_model("llama")).generate(request([1], 0))
    assert (generation.new_token_ids, generation.forwards, generation.finish_reason) == ([], 0, "length")


@pytest.mark.parametrize("prompt", [[0], [VOCABULARY - 1], [3] * 60, [0, VOCABULARY - 1] * 20])
@pytest.mark.parametrize("name", ROWS)
def test_one_token_repeats_and_vocabulary_edges(prompt, name):
    model = tiny_model("qwen3")
    method = build_method(name, ROWS[name], model=model, static_table=random_table(VOCABULARY))
    method.warm_up()
    generation = method.generate(request(prompt, 30))
    assert generation.new_token_ids == naive_greedy(model, prompt, new=30)


def test_autoregressive_writes_exactly_one_token_per_forward():
    model = tiny_model("llama", vocab_size=SMALL)
    for new in (1, 2, 33):
        generation = build_method("a", ROWS["autoregressive"], model=model).generate(request([1, 2], new))
        assert len(generation.new_token_ids) / generation.forwards == 1.0
        assert set(generation.steps) == {(0, 0, 0)}
        check_counts(generation, new)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ends", ["length", "eos"])
def test_forced_replay_writes_any_reference(name, ends):
    """Even a text the model would never write; the drafts answer to that text alone."""
    model = tiny_model("llama", vocab_size=SMALL)
    reference = [1, 2, 3, 1, 2, 3, 1, 2, 9, 9, 1, 2, 3, 1, 7]
    eos, new = ({7}, 40) if ends == "eos" else (set(), len(reference))
    generation = build_method(name, ROWS[name], model=model, static_table=random_table(SMALL)).generate(
        request([5, 1, 2], new, eos=eos, reference=reference)
    )
    assert generation.new_token_ids == reference
    assert generation.finish_reason == ends
    check_counts(generation, new)
    assert (name == "autoregressive") == (sum(step[2] for step in generation.steps) == 0)


def test_an_empty_reference_runs_nothing():
    generation = build_method("a", ROWS["suffix"], model=tiny_model("llama")).generate(request([1], 9, reference=[]))
    assert (generation.new_token_ids, generation.forwards) == ([], 0)


def test_the_reference_knows_its_margins():
    model = tiny_model("gpt2")
    reference = greedy_reference(model, request([1, 2, 3], 10))
    assert reference.new_token_ids == naive_greedy(model, [1, 2, 3], new=10)
    text = [1, 2, 3, *reference.new_token_ids]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([text])).logits[0, 2:-1]
    best, second = logits.topk(2).values.T
    assert reference.margins == pytest.approx((best - second).tolist(), abs=1e-3)


@pytest.mark.parametrize("name", ["autoregressive", "tree"])
def test_a_text_that_does_not_fit_the_context_is_refused(name):
    method = build_method(name, ROWS[name], model=tiny_model("llama"))
    assert len(method.generate(request([1] * (CONTEXT - 9), 9)).new_token_ids) == 9
    with pytest.raises(UserError, match="do not fit the model's context"):
        method.generate(request([1] * (CONTEXT - 9), 10))
