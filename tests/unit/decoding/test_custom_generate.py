"""The loop inside transformers' generate: the same text as its own loop writes, and clear words where it cannot."""

from __future__ import annotations

import inspect

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures.loop_methods import ROWS, SMALL, random_table
from tests.fixtures.tiny_models import tiny_model

from servingbench.decoding import build_method
from servingbench.decoding.custom_generate import custom_generate
from servingbench.errors import UserError

WARPERS = ("temperature", "top_k", "top_p", "min_p")  # of sampling alone
options = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.sampled_from([0.3, 1.0, 1.7]),
        "top_k": st.integers(1, SMALL),
        "top_p": st.sampled_from([0.5, 0.9]),
        "min_p": st.sampled_from([0.05, 0.2]),
        "repetition_penalty": st.sampled_from([0.8, 1.3]),
        "no_repeat_ngram_size": st.just(3),
        "min_new_tokens": st.integers(1, 12),
        "eos_token_id": st.lists(st.integers(0, SMALL - 1), min_size=1, max_size=2, unique=True),
        "bad_words_ids": st.just([[3], [1, 2]]),
        "suppress_tokens": st.just([5]),
        "forced_eos_token_id": st.just(7),
        "guidance_scale": st.just(1.5),
    },
)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(ROWS)),
    do_sample=st.booleans(),
    options=options,
    prompt=st.lists(st.integers(0, SMALL - 1), min_size=1, max_size=30),
    new=st.integers(12, 24),
    seed=st.integers(0, 2**31),
)
def test_inside_generate_every_processor_acts_as_in_its_own_loop(name, do_sample, options, prompt, new, seed):
    model = tiny_model("llama", vocab_size=SMALL)
    method = build_method(name, ROWS[name], model=model, static_table=random_table(SMALL))
    options = {key: value for key, value in options.items() if do_sample or key not in WARPERS}
    ids = torch.tensor([prompt])
    arguments = {"eos_token_id": 9} | ({"top_k": 0} if do_sample else {}) | options
    arguments |= {"attention_mask": torch.ones_like(ids), "max_new_tokens": new, "do_sample": do_sample}
    outputs = []
    for function in (None, custom_generate(method)):
        torch.manual_seed(seed)
        outputs.append(model.generate(ids, custom_generate=function, pad_token_id=0, **arguments)[0].tolist())
    assert outputs[1] == outputs[0]
    assert outputs[1][: len(prompt)] == prompt


class Never(transformers.StoppingCriteria):
    def __call__(self, input_ids, scores, **kwargs):
        return torch.zeros(len(input_ids), dtype=torch.bool)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"inputs": torch.ones((2, 3), dtype=torch.long)}, "batch size: .*one text at a time.*got 2"),
        ({"do_sample": True, "num_return_sequences": 3}, "one text at a time.*got 3"),
        ({"num_beams": 2}, "mode.*beam_search"),
        ({"num_beams": 2, "do_sample": True}, "mode.*beam_sample"),
        ({"prompt_lookup_num_tokens": 3}, "mode.*assisted_generation"),
        ({"penalty_alpha": 0.5, "top_k": 4}, "mode.*contrastive_search"),
        ({"return_dict_in_generate": True}, "return_dict_in_generate"),
        ({"stopping_criteria": [Never()]}, "stopping criterion.*Never"),
        ({"max_time": 9.0}, "stopping criterion.*MaxTimeCriteria"),
        ({"attention_mask": torch.tensor([[0, 1, 1]])}, "padding"),
        ({"inputs": None, "inputs_embeds": torch.ones((1, 3, 32))}, "inputs_embeds.*token ids"),
    ],
)
def test_what_the_loop_cannot_do_is_refused_in_one_sentence(arguments, match):
    model = tiny_model("llama", vocab_size=SMALL)
    method = build_method("tree", ROWS["tree"], model=model)
    usual = {"inputs": torch.tensor([[1, 2, 3]]), "max_new_tokens": 4, "pad_token_id": 0}
    with pytest.raises(UserError, match=match):
        model.generate(custom_generate=custom_generate(method), **(usual | arguments))


def test_a_filled_cache_and_another_model_are_refused():
    model = tiny_model("llama", vocab_size=SMALL)
    method = custom_generate(build_method("tree", ROWS["tree"], model=model))
    ids = torch.tensor([[1, 2, 3]])
    filled = model(input_ids=ids[:, :2], use_cache=True).past_key_values
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    with pytest.raises(UserError, match="cache of its own"):
        model.generate(ids, **{name: filled}, max_new_tokens=2, custom_generate=method)
    with pytest.raises(UserError, match="another model"):
        tiny_model("llama", vocab_size=SMALL, seed=5).generate(ids, max_new_tokens=2, custom_generate=method)
