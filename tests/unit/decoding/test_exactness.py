"""Token for token what greedy decoding writes, in float32, over hundreds of random prompts, histories and policies."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures.loop_methods import ROWS, SMALL, check_counts, random_table
from tests.fixtures.tiny_models import SHAPES, VOCABULARY, build, tiny_model

from servingbench.decoding import Request, build_method
from servingbench.decoding.drafts.arctic import arctic_available
from servingbench.statistics.lossless import teacher_forced_gaps

ROUNDING = 1e-4  # logits; a token this close to the best one is a tie
prompts = st.lists(st.integers(0, SMALL - 1), min_size=1, max_size=40)
sizes = st.integers(1, 24)
depths = st.integers(1, 12) | st.just(64)
min_probs = st.sampled_from([0.0, 0.02, 0.1, 0.3])
sources = st.sampled_from(["local", "global", "both"])

suffix = st.fixed_dictionaries(
    {"width": st.integers(1, 8), "num_tokens": sizes | st.just("cost"), "source": sources},
    optional={
        "max_tokens": sizes,
        "max_depth": depths,
        "min_prob": min_probs,
        "rec": st.floats(0, 4),
        "alphas": st.lists(st.floats(0, 20), min_size=1, max_size=6),
        "max_orders": st.integers(1, 6),
        "root_factor": st.floats(0.1, 1),
        "shared_tokens": st.integers(8, 64),
        "static_table": st.just(True),
    },
)
published = st.fixed_dictionaries(
    {"branch_factor": st.integers(1, 4), "num_tokens": sizes, "source": sources},
    optional={"max_depth": depths, "min_prob": min_probs},
)
prompt_lookup = st.fixed_dictionaries({"num_tokens": sizes, "max_ngram": st.integers(1, 4)})
arctic = st.fixed_dictionaries(
    {"tree": st.booleans(), "source": st.sampled_from(["local", "both"]), "max_spec_tokens": sizes},
    optional={
        "max_tree_depth": st.integers(2, 64),
        "max_spec_factor": st.floats(0.5, 4),
        "max_spec_offset": st.floats(-1, 3),
        "min_token_prob": min_probs,
    },
)
policies = st.one_of(
    st.tuples(st.just("suffix"), suffix),
    st.tuples(st.just("suffix_published"), published),
    st.tuples(st.just("prompt_lookup"), prompt_lookup),
    *([st.tuples(st.just("arctic"), arctic)] if arctic_available() else []),
)


def assert_greedy(model, request: Request, generation) -> None:
    """Every token is the best one after the text before it (one forward, no cache), up to the cap or the first end.

    By induction that is greedy decoding, except that it forgives what rounding decides.
    """
    tokens = generation.new_token_ids
    assert max(teacher_forced_gaps(model, request.prompt_ids, tokens)) < ROUNDING
    ends = [place for place, token in enumerate(tokens, start=1) if token in request.eos_token_ids]
    assert len(tokens) == (ends[0] if ends else request.max_new_tokens)
    assert generation.finish_reason == ("eos" if ends else "length")
    check_counts(generation, request.max_new_tokens)


@settings(max_examples=300, deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    policy=policies,
    costs=st.lists(st.floats(0, 2), min_size=25, max_size=25),
    table_seed=st.integers(0, 3),
    prompt=prompts,
    earlier=st.lists(prompts, max_size=3),
    new=st.integers(1, 40),
    eos=st.sets(st.integers(0, SMALL - 1), max_size=2),
)
def test_every_policy_is_greedy(shape, policy, costs, table_seed, prompt, earlier, new, eos):
    model = tiny_model(shape, vocab_size=SMALL)
    draft, options = policy
    table = random_table(SMALL, seed=table_seed)
    row = {"kind": "loop", "draft": draft, "options": {"max_tokens": 24} | options if draft == "suffix" else options}
    method = build_method("any", row, model=model, static_table=table)
    if method.drafter.costs is not None:
        method.drafter.costs = np.cumsum([0.0, 1.0, *costs])
    for response in earlier:
        method.observe([0], response)
    request = Request(tuple(prompt), new, frozenset(eos))
    generation = method.generate(request)
    assert_greedy(model, request, generation)
    # A forced replay of the same text proposes the same drafts and accepts the same tokens.
    replay = method.generate(Request(tuple(prompt), new, frozenset(eos), tuple(generation.new_token_ids)))
    assert replay.new_token_ids == generation.new_token_ids
    # Arctic's tree of responses breaks ties by what was ever in it, evicted responses too.
    assert replay.steps == generation.steps or (draft == "arctic" and options["source"] == "both")


@pytest.mark.parametrize("shape", ["llama", "gpt2"])
def test_a_prompt_of_8k_tokens(shape):
    longest = {"n_positions": 8400} if shape == "gpt2" else {"max_position_embeddings": 8400}
    model = build(shape, num_hidden_layers=1, **longest)
    rng = random.Random(0)
    prompt = tuple(rng.randrange(VOCABULARY) for _ in range(4096)) * 2
    request = Request(prompt, 24, frozenset())
    texts = set()
    for name in ("autoregressive", "prompt_lookup", "suffix", "tree"):
        generation = build_method(name, ROWS[name], model=model).generate(request)
        texts.add(tuple(generation.new_token_ids))
    assert len(texts) == 1
    assert_greedy(model, request, generation)


def test_what_the_global_index_knows_depends_on_the_order_of_the_requests_and_the_text_does_not():
    """The bound drops the oldest responses: the same ones in another order leave another index and other drafts."""
    model = tiny_model("llama", vocab_size=SMALL)
    request = Request((1, 2, 3), 24, frozenset())
    row = {"kind": "loop", "draft": "suffix", "options": {"source": "global", "num_tokens": 8, "shared_tokens": 64}}
    answer = build_method("plain", ROWS["autoregressive"], model=model).generate(request).new_token_ids
    others = [[random.Random(seed).randrange(SMALL) for _ in range(24)] for seed in range(4)]
    accepted = []
    for history in ([answer, *others], [*others, answer]):
        method = build_method("global", row, model=model)
        for response in history:
            method.observe([0], response)
            assert len(method.drafter.shared) <= 64
        generation = method.generate(request)
        assert generation.new_token_ids == answer
        accepted.append(sum(step[2] for step in generation.steps))
    assert accepted[1] > accepted[0] + 8
