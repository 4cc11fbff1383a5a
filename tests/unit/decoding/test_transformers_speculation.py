"""transformers' other ways to draft run as what they claim to be, stay greedy, and are refused where they cannot."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from tests.fixtures.speculators import LETTERS, dflash_draft, target_and_foreign_draft, target_with_mtp_head
from tests.fixtures.supported import needs
from tests.fixtures.tiny_models import build, naive_greedy, tiny_model
from transformers import GenerationConfig

from servingbench.decoding import Request, build_method
from servingbench.errors import UserError
from servingbench.models.load import load_model

VOCABULARY = 12
ASSISTANT = {
    "num_assistant_tokens": 4,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.0,
}
DRAFT = {"kind": "transformers", "assistant": "draft_model", "options": ASSISTANT}
UNIVERSAL = DRAFT | {"assistant_tokenizer": "own"}
MTP = {"kind": "transformers", "options": {"use_mtp": True}}
DFLASH = {"kind": "transformers", "assistant": "draft_model", "options": {"speculation_type": "dflash"}}
KNOWN = vars(GenerationConfig())
has_mtp = pytest.mark.skipif("use_mtp" not in KNOWN, reason="this transformers has no multi-token prediction")
has_dflash = pytest.mark.skipif("speculation_type" not in KNOWN, reason="this transformers has no DFlash")


def early_exit(layers: int) -> dict:
    return {"kind": "transformers", "options": {"assistant_early_exit": layers, **ASSISTANT}}


def check(method, model, prompts, *, vocabulary=VOCABULARY) -> list[tuple[int, int, int]]:
    """Greedy for every cap, and a forced replay that the draft does not see; the steps of the longest free runs."""
    steps = []
    for prompt in prompts:
        for new in (1, 2, 3, 30):
            generation = method.generate(Request(tuple(prompt), new, frozenset()))
            assert generation.new_token_ids == naive_greedy(model, prompt, new=new)
            assert generation.forwards == len(generation.steps)
        steps += generation.steps
        assert generation.draft_forwards > 0
        end = frozenset(generation.new_token_ids[7:8])
        ended = method.generate(Request(tuple(prompt), 30, end)).new_token_ids
        assert ended == naive_greedy(model, prompt, new=30, eos=end)
        reference = tuple((7 * place + place * place) % vocabulary for place in range(30))
        replay = method.generate(Request(tuple(prompt), 30, frozenset(), reference))
        assert tuple(replay.new_token_ids) == reference
        assert sum(step[2] for step in replay.steps) < sum(step[0] for step in replay.steps) / 2
    return steps


@needs("early_exit")
@pytest.mark.parametrize("shape", ["llama", "qwen3", "gemma"])
def test_an_early_exit_drafts_what_its_first_layers_would(shape):
    model = build(shape, vocab_size=VOCABULARY, num_hidden_layers=4)
    first = copy.deepcopy(model)
    first.model.layers = first.model.layers[:2]
    first.config.num_hidden_layers = 2
    method = build_method("early_exit", early_exit(2), model=model)
    cut = build_method("cut", DRAFT, model=model, draft_model=first)
    if shape == "llama":
        check(method, model, [[1, 2, 3]])
    for prompt in ((1, 2, 3), (5, 6) * 9):
        whole, parts = (one.generate(Request(prompt, 30, frozenset())) for one in (method, cut))
        assert sum(step[2] for step in whole.steps) > 0
        assert (whole.steps, whole.draft_forwards) == (parts.steps, parts.draft_forwards)


def test_a_model_whose_code_runs_all_layers_cannot_exit_early():
    method = build_method("early_exit", early_exit(1), model=build("gpt2", vocab_size=VOCABULARY))
    with pytest.raises(UserError, match=r"early_exit.*GPT2"):
        method.warm_up()


@needs("early_exit")
def test_an_exit_that_is_none_is_caught():
    model = build("llama", vocab_size=VOCABULARY)
    method = build_method("early_exit", early_exit(1), model=model)
    method._left_out = model.model.layers[0]  # as if the layers to leave out had run
    with pytest.raises(UserError, match="drafted with all of its layers"):
        method.generate(Request((1, 2, 3), 8, frozenset()))


@pytest.mark.parametrize("layers", [2, 9])
def test_there_must_be_a_layer_left_out(layers):
    with pytest.raises(UserError, match="Exit after 1 to 1 layers"):
        build_method("early_exit", early_exit(layers), model=tiny_model("llama"))


@needs("draft_speculative_universal")
def test_a_draft_model_with_another_tokenizer_is_understood():
    model, draft_model, tokenizers = target_and_foreign_draft()
    method = build_method("universal", UNIVERSAL, model=model, draft_model=draft_model, tokenizers=tokenizers)
    method.warm_up()
    prompts = [tokenizers[0](text)["input_ids"] for text in ("BCDFGJKL", "ZYXVZYXB")]
    steps = check(method, model, prompts, vocabulary=len(tokenizers[0]))
    written = tokenizers[0].decode(method.generate(Request(tuple(prompts[0]), 30, frozenset())).new_token_ids)
    assert set(written) <= set(LETTERS)
    # The draft knows the answer, so what is lost is lost in translation.
    assert sum(step[2] for step in steps) > sum(step[0] for step in steps) / 2


def test_vocabularies_that_do_not_fit_the_row_are_refused():
    model, draft_model, tokenizers = target_and_foreign_draft()
    with pytest.raises(UserError, match=r"another vocabulary.*assistant_tokenizer: own"):
        build_method("x", DRAFT, model=model, draft_model=draft_model)
    with pytest.raises(UserError, match="takes for the same tokenizer"):
        build_method("x", UNIVERSAL, model=model, draft_model=model, tokenizers=tokenizers)
    with pytest.raises(UserError, match="needs both tokenizers"):
        build_method("x", UNIVERSAL, model=model, draft_model=draft_model)


@has_mtp
def test_multi_token_prediction_heads_draft(tmp_path):
    model = target_with_mtp_head(tmp_path, vocab_size=VOCABULARY)
    method = build_method("mtp", MTP, model=model)
    method.warm_up()
    steps = check(method, model, [[1, 2, 3], [5], [4, 3] * 10])
    assert {step[0] for step in steps} == {0, 1}
    assert sum(step[2] for step in steps) > 0


@has_mtp
def test_heads_that_the_checkpoint_lacks_are_missed_before_any_measurement(tmp_path):
    method = build_method("mtp", MTP, model=target_with_mtp_head(tmp_path, vocab_size=VOCABULARY, heads=False))
    with pytest.raises(UserError, match=r"mtp.*weights are missing"):
        method.warm_up()


@has_mtp
def test_a_model_without_heads_is_refused():
    with pytest.raises(UserError, match=r"no multi-token prediction layers.*LlamaForCausalLM"):
        build_method("mtp", MTP, model=tiny_model("llama"))


@has_dflash
@pytest.mark.parametrize("shape", ["llama", "qwen3", "gpt2"])
def test_a_block_denoiser_drafts(shape):
    model = tiny_model(shape, vocab_size=VOCABULARY)
    method = build_method("dflash", DFLASH, model=model, draft_model=dflash_draft())
    method.warm_up()
    steps = check(method, model, [[1, 2, 3], [5], [4, 3] * 10])
    assert {step[0] for step in steps} == {0, 4}


@has_dflash
def test_a_draft_without_head_and_tokenizer_is_loaded(tmp_path):
    dflash_draft().save_pretrained(tmp_path)
    described = {"source": "hub", "location": str(tmp_path), "revision": None}
    (tmp_path / "model.json").write_text(json.dumps(described), encoding="utf-8")
    draft_model, tokenizer = load_model(tmp_path, {"source": "hub", "dtype": "float32"}, "cpu", headless=True)
    assert tokenizer is None
    build_method("dflash", DFLASH, model=tiny_model("llama"), draft_model=draft_model).warm_up()


@has_dflash
def test_a_draft_that_is_none_for_dflash_or_for_this_target_is_refused():
    model = tiny_model("llama", vocab_size=VOCABULARY)
    with pytest.raises(UserError, match=r"none for DFlash.*LlamaForCausalLM"):
        build_method("dflash", DFLASH, model=model, draft_model=tiny_model("llama", seed=1))
    for wrong in ({"target_layer_ids": [0, 2]}, {"hidden_size": 64}, {"mask_token_id": VOCABULARY}):
        with pytest.raises(UserError, match="another target"):
            build_method("dflash", DFLASH, model=model, draft_model=dflash_draft(**wrong))


@pytest.mark.skipif("use_mtp" in KNOWN, reason="this transformers has these methods")
@pytest.mark.parametrize("row", [MTP, DFLASH])
def test_a_revision_that_does_not_know_the_method_says_so(row):
    with pytest.raises(UserError, match=r"unknown generation option.*under transformers \d"):
        build_method("x", row, model=tiny_model("llama"), draft_model=tiny_model("llama", seed=1))


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ({"options": {"assistant_early_exit": 1, "prompt_lookup_num_tokens": 3}}, "several ways to draft"),
        ({"options": {"assistant_early_exit": 1}, "assistant": "draft_model"}, "does not use a draft model"),
        pytest.param({"options": {"speculation_type": "dflash"}}, "needs a draft model", marks=has_dflash),
    ],
)
def test_what_transformers_would_drop_without_a_word_is_refused(row, match):
    with pytest.raises(UserError, match=match):
        build_method("x", {"kind": "transformers"} | row, model=tiny_model("llama"), draft_model=tiny_model("llama"))


def test_drafting_that_proposes_nothing_is_no_drafting():
    model = tiny_model("llama", vocab_size=VOCABULARY)
    silent = {"num_assistant_tokens": 0}  # transformers then decodes plainly, under the draft model's name
    method = build_method("x", DRAFT | {"options": silent}, model=model, draft_model=tiny_model("llama", vocab_size=12))
    with pytest.raises(UserError, match="proposed nothing in 8 forwards"):
        method.generate(Request((1, 2, 3), 8, frozenset()))


def test_sampling_is_refused():
    method = build_method("x", {"kind": "transformers"}, model=tiny_model("llama"))
    with pytest.raises(UserError, match="greedily"):
        method.generate(Request((1,), 4, frozenset(), temperature=1.0))


@pytest.fixture(autouse=True)
def quiet():
    """Without progress bars of weights loaded again and again."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    with torch.random.fork_rng():
        yield
