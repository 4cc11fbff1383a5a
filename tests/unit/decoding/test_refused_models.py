"""Real architectures whose state cannot be rolled back are refused before anything runs, by their layers' names."""

from __future__ import annotations

import re

import pytest
import transformers

from servingbench.decoding import check_model
from servingbench.errors import UserError

_COMMON = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": None,
}
_EXPERTS = {"num_experts": 2, "num_experts_per_tok": 1, "num_local_experts": 2, "moe_intermediate_size": 16}
# Per architecture its options, and the names that its layers go by in transformers 5 and 4.57.
MODELS = {
    "Qwen3Next": (
        _EXPERTS
        | {
            "layer_types": ["linear_attention", "full_attention"],
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "shared_expert_intermediate_size": 16,
        },
        ["linear_attention"],
    ),
    "Mamba": ({"state_size": 4}, ["linear_attention", "mamba", "recurrent state"]),
    "Lfm2": ({"layer_types": ["conv", "full_attention"]}, ["conv"]),
    "Jamba": (
        _EXPERTS | {"num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 4},
        ["linear_attention", "mamba", "recurrent state"],
    ),
    "RecurrentGemma": (
        {"num_hidden_layers": 3, "num_key_value_heads": 1, "lru_width": 32, "attention_window_size": 16},
        ["linear_attention", "recurrent"],
    ),
    "Llama4Text": (_EXPERTS | {"intermediate_size_mlp": 48}, ["chunked_attention"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_layers_that_cannot_drop_tokens_are_named(name):
    options, names = MODELS[name]
    config = getattr(transformers, f"{name}Config")(**(_COMMON | options))
    model = getattr(transformers, f"{name.removesuffix('Text')}ForCausalLM")(config)
    with pytest.raises(UserError, match="cannot drop rejected tokens: ") as raised:
        check_model(model)
    named = re.search("rejected tokens: ([^(]*) ", str(raised.value)).group(1)
    assert set(named.split(", ")) <= set(names)
    assert config.model_type in str(raised.value)
