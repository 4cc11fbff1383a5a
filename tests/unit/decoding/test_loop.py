"""The loop writes what greedy decoding writes, token for token, whatever is drafted, on every shape of model."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures.drafters import FaultyTarget, KnowingDrafter
from tests.fixtures.tiny_models import CONTEXT, SHAPES, VOCABULARY, build, naive_greedy, tiny_model

from servingbench.decoding import Request, build_method, greedy_reference
from servingbench.decoding.drafts.base import Draft, NoDraft
from servingbench.decoding.loop import LoopMethod, custom_generate
from servingbench.decoding.target import Target
from servingbench.errors import UserError

SMALL = 12  # a vocabulary in which texts repeat themselves, so that drafts are found and accepted
ROWS = {
    "autoregressive": {"kind": "loop", "draft": "none"},
    "prompt_lookup": {"kind": "loop", "draft": "prompt_lookup", "options": {"num_tokens": 6, "max_ngram": 2}},
    "suffix": {"kind": "loop", "draft": "suffix", "options": {"width": 1, "num_tokens": 8}},
    "tree": {"kind": "loop", "draft": "suffix", "options": {"width": 4, "num_tokens": 12, "source": "both"}},
    "tree_by_cost": {"kind": "loop", "draft": "suffix", "options": {"width": 8, "num_tokens": "cost", "max_tokens": 9}},
    "suffix_published": {"kind": "loop", "draft": "suffix_published"},
    "tree_published": {"kind": "loop", "draft": "suffix_published", "options": {"branch_factor": 2, "min_prob": 0.05}},
}
prompts = st.lists(st.integers(0, SMALL - 1), min_size=1, max_size=30)


def request(prompt, new, *, eos=(), reference=None) -> Request:
    return Request(tuple(prompt), new, frozenset(eos), None if reference is None else tuple(reference))


def check_counts(generation, new: int) -> None:
    """What must hold between a generation's counts, whatever it wrote."""
    assert generation.steps[0] == (0, 0, 0)
    assert generation.forwards == len(generation.steps)
    assert all(0 <= accepted <= depth <= proposed for proposed, depth, accepted in generation.steps)
    assert len(generation.new_token_ids) <= new
    committed = sum(accepted + 1 for _, _, accepted in generation.steps)
    assert committed - len(generation.new_token_ids) in (0, 1)  # 1: the output ended on a draft token
    times = (generation.ttft_ns, generation.decode_ns, generation.propose_ns, generation.verify_ns)
    assert all(0 <= time <= generation.wall_ns for time in times)
    assert generation.overrun_tokens == generation.draft_forwards == 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ROWS)
def test_every_method_is_greedy_on_every_shape(shape, name):
    model = tiny_model(shape, vocab_size=SMALL)
    method = build_method(name, ROWS[name], model=model)
    method.warm_up()
    accepted = 0
    for seed in range(6):
        rng = random.Random(seed)
        prompt = [rng.randrange(SMALL) for _ in range(1 + 7 * seed)]
        expected = naive_greedy(model, prompt, new=50)
        generation = method.generate(request(prompt, 50))
        assert generation.new_token_ids == expected
        assert generation.finish_reason == "length"
        check_counts(generation, 50)
        accepted += sum(step[2] for step in generation.steps)
        method.observe(prompt, expected)
    assert accepted > 20 or name == "autoregressive"


@settings(max_examples=60, deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    prompt=prompts,
    earlier=st.lists(prompts, max_size=2),
    new=st.integers(1, 40),
    eos=st.sets(st.integers(0, SMALL - 1), max_size=2),
    source=st.sampled_from(["local", "global", "both"]),
    width=st.integers(1, 8),
    num_tokens=st.integers(1, 24),
    min_prob=st.sampled_from([0.0, 0.05, 0.3]),
)
def test_every_policy_is_greedy(shape, prompt, earlier, new, eos, source, width, num_tokens, min_prob):
    model = tiny_model(shape, vocab_size=SMALL)
    options = {"source": source, "width": width, "num_tokens": num_tokens, "min_prob": min_prob}
    method = build_method("any", {"kind": "loop", "draft": "suffix", "options": options}, model=model)
    for response in earlier:
        method.observe([0], response)
    expected = naive_greedy(model, prompt, new=new, eos=eos)
    generation = method.generate(request(prompt, new, eos=eos))
    assert generation.new_token_ids == expected
    assert generation.finish_reason == ("eos" if expected[-1] in eos else "length")
    check_counts(generation, new)
    # A forced replay of the same text proposes the same drafts and accepts the same tokens.
    replay = method.generate(request(prompt, new, eos=eos, reference=expected))
    assert (replay.new_token_ids, replay.steps) == (generation.new_token_ids, generation.steps)


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


def test_no_tokens_asked_for():
    generation = build_method("a", ROWS["autoregressive"], model=tiny_model("llama")).generate(request([1], 0))
    assert (generation.new_token_ids, generation.forwards, generation.finish_reason) == ([], 0, "length")


@pytest.mark.parametrize("prompt", [[0], [VOCABULARY - 1], [3] * 60, [0, VOCABULARY - 1] * 20])
@pytest.mark.parametrize("name", ["suffix", "tree", "prompt_lookup", "tree_published"])
def test_one_token_repeats_and_vocabulary_edges(prompt, name):
    model = tiny_model("qwen3")
    generation = build_method(name, ROWS[name], model=model).generate(request(prompt, 30))
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
    generation = build_method(name, ROWS[name], model=model).generate(
        request([5, 1, 2], new, eos=eos, reference=reference)
    )
    assert generation.new_token_ids == reference
    assert generation.finish_reason == ends
    check_counts(generation, new)
    assert (name == "autoregressive") == (sum(step[2] for step in generation.steps) == 0)


def test_an_empty_reference_runs_nothing():
    generation = build_method("a", ROWS["suffix"], model=tiny_model("llama")).generate(request([1], 9, reference=[]))
    assert (generation.new_token_ids, generation.forwards) == ([], 0)


def test_a_long_prompt():
    model = build("llama", max_position_embeddings=8400)
    rng = random.Random(0)
    prompt = [rng.randrange(VOCABULARY) for _ in range(4096)] * 2
    expected = naive_greedy(model, prompt, new=4)
    for name in ("autoregressive", "tree"):
        generation = build_method(name, ROWS[name], model=model).generate(request(prompt, 12))
        assert generation.new_token_ids[:4] == expected


def test_the_loop_runs_inside_transformers_generate():
    model = tiny_model("llama", vocab_size=SMALL)
    method = build_method("tree", ROWS["tree"], model=model)
    prompt = torch.tensor([[1, 2, 3, 1, 2]])
    expected = naive_greedy(model, prompt[0].tolist(), new=20, eos={9})
    arguments = {"max_new_tokens": 20, "do_sample": False, "eos_token_id": 9, "pad_token_id": 0}
    output = model.generate(prompt, custom_generate=custom_generate(method), **arguments)
    assert output[0].tolist() == [*prompt[0].tolist(), *expected]
    with pytest.raises(UserError, match="one text at a time"):
        model.generate(prompt.repeat(2, 1), custom_generate=custom_generate(method), **arguments)
    with pytest.raises(UserError, match="greedily"):
        model.generate(prompt, custom_generate=custom_generate(method), **(arguments | {"do_sample": True}))
    padded = torch.tensor([[0, 1, 1, 1, 1]])
    with pytest.raises(UserError, match="padding"):
        model.generate(prompt, attention_mask=padded, custom_generate=custom_generate(method), **arguments)


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
