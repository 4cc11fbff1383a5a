"""Rows of config/methods.yaml become methods; what cannot work is refused by name."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import yaml
from tests.fixtures.tiny_models import SHAPES, VOCABULARY, build, naive_greedy, tiny_model

from servingbench.decoding import Request, build_method, check_model
from servingbench.decoding.cost import forward_costs
from servingbench.decoding.drafts import DRAFTS
from servingbench.decoding.drafts.arctic import arctic_available
from servingbench.decoding.drafts.prompt_lookup import PromptLookup
from servingbench.decoding.target import Target
from servingbench.errors import UserError

NEEDS_ANOTHER_MODEL = ("early_exit", "draft_speculative_universal", "mtp", "dflash")  # test_transformers_speculation.py


def test_every_row_of_the_table_builds_and_answers(repository):
    rows = yaml.safe_load((repository / "config" / "methods.yaml").read_text(encoding="utf-8"))
    model = tiny_model("llama")
    table = (np.zeros((VOCABULARY, 2), np.int32), np.zeros((VOCABULARY, 2)))
    expected = naive_greedy(model, [1, 2, 3], new=6)
    for name, row in rows.items():
        if row.get("draft") == "arctic" and not arctic_available():
            continue  # test_arctic.py says so
        if row["kind"] == "generate_kwargs":
            continue  # needs its fork: tests/unit/revisions/test_fork.py
        if name in NEEDS_ANOTHER_MODEL:
            with pytest.raises(UserError, match=name):
                build_method(name, row, model=model, draft_model=tiny_model("llama", seed=1))
            continue
        method = build_method(name, row, model=model, draft_model=tiny_model("llama", seed=1), static_table=table)
        assert method.name == name
        assert method.generate(Request((1, 2, 3), 6, frozenset())).new_token_ids == expected
    assert {row.get("draft") for row in rows.values()} >= DRAFTS.keys()


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ({"kind": "magic"}, "unknown kind"),
        ({"kind": "loop", "draft": "sufix"}, "unknown draft.*sufix.*suffix"),
        (
            {"kind": "loop", "draft": "suffix", "options": {"widht": 3}},
            "widht: the draft suffix has no such option.*width",
        ),
        ({"kind": "loop", "draft": "suffix", "options": {"static_table": True}}, "there is none"),
    ],
)
def test_wrong_rows_are_refused(row, match):
    with pytest.raises(UserError, match=match) as raised:
        build_method("mine", row, model=tiny_model("llama"))
    assert "mine" in str(raised.value)


@pytest.mark.parametrize("shape", [*SHAPES, "gemma3"])
def test_models_that_can_be_served(shape):
    check_model(tiny_model(shape))


class Described:
    """As much of a model as check_model reads."""

    def __init__(self, *, stateful=False, **config):
        described = {"model_type": "made-up", "_attn_implementation": "sdpa"} | config
        self.config = type("Config", (), described | {"get_text_config": lambda self: self})()
        self._is_stateful = stateful


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (Described(layer_types=["full_attention", "linear_attention"]), "linear_attention"),
        (Described(layer_types=["chunked_attention"]), "chunked_attention"),
        (Described(stateful=True), "recurrent state"),
        (Described(is_encoder_decoder=True), "encoder-decoder"),
        (Described(_attn_implementation="flash_attention_2"), "flash_attention_2"),
    ],
)
def test_models_that_cannot_drop_tokens_are_refused_by_their_layers(model, named):
    with pytest.raises(UserError, match=named):
        check_model(model)


@pytest.mark.parametrize("shape", ["gemma3", "mistral"])
@pytest.mark.parametrize("name", ["autoregressive", "tree"])
def test_a_sliding_window_is_served_inside_and_refused_beyond(shape, name):
    model = build(shape, sliding_window=24)
    row = {"kind": "loop", "draft": "suffix" if name == "tree" else "none"}
    method = build_method(name, row, model=model)
    prompt = (1, 2, 1, 2, 1, 2)
    generation = method.generate(Request(prompt, 18, frozenset()))
    assert generation.new_token_ids == naive_greedy(model, prompt, new=18)
    with pytest.raises(UserError, match="sliding"):
        method.generate(Request(prompt, 19, frozenset()))


def test_a_static_table_drafts_where_the_text_knows_nothing():
    model = tiny_model("llama")
    expected = naive_greedy(model, [1, 2, 3], new=9)
    following = np.zeros((VOCABULARY, 1), np.int32)
    for previous, token in pairwise(expected):
        following[previous] = token
    row = {"kind": "loop", "draft": "suffix", "options": {"static_table": True, "num_tokens": 4}}
    method = build_method("table", row, model=model, static_table=(following, np.full((VOCABULARY, 1), 0.5)))
    generation = method.generate(Request((1, 2, 3), 9, frozenset()))
    assert generation.new_token_ids == expected
    assert generation.steps[1][2] > 0


def test_the_price_list_covers_every_draft_and_never_falls():
    target = Target(tiny_model("llama"))
    costs = forward_costs(target, max_rows=12)
    assert costs.shape == (13,)
    assert (np.diff(costs) >= 0).all()
    assert costs[1] > 0
    for rows in (12, 5):  # measured once per model: what is measured again differs
        assert np.shares_memory(forward_costs(target, max_rows=rows), costs)


def test_prompt_lookup_copies_after_the_first_occurrence():
    drafter = PromptLookup(num_tokens=3, max_ngram=2)
    drafter.start([1, 2, 3, 4, 1, 2, 5, 9])
    assert drafter.propose(max_depth=9) is None
    drafter.extend([1])
    assert drafter.propose(max_depth=9).tokens == [2, 3, 4]
    drafter.extend([2])
    assert drafter.propose(max_depth=9).tokens == [3, 4, 1]
    assert drafter.propose(max_depth=1).tokens == [3]
    drafter.start([7, 7])
    assert drafter.propose(max_depth=9).tokens == [7]
