"""The static bigram table against the model's own forwards, and its file."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.fixtures.tiny_models import tiny_model

from servingbench.decoding.static_table import TABLE, assistant_prefix, load_table, make_table, save_table
from servingbench.errors import UserError


@pytest.mark.parametrize("prefix", [[3], [5, 1, 4, 2]])
def test_every_row_is_the_model_behind_prefix_and_token(prefix, monkeypatch):
    monkeypatch.setattr("servingbench.decoding.static_table.BATCH_TOKENS", 40)  # the last batch is a smaller one
    model = tiny_model("llama")
    vocabulary, finished = model.config.vocab_size, []
    tokens, probs = make_table(model, prefix, next_tokens=4, progress=finished.append)
    assert sum(finished) == vocabulary
    assert len(finished) > 1
    for token in (0, 39, 40, vocabulary - 1):
        with torch.inference_mode():
            expected = torch.softmax(model(torch.tensor([[*prefix, token]])).logits[0, -1].float(), dim=-1).topk(4)
        assert tokens[token].tolist() == expected.indices.tolist()
        assert probs[token] == pytest.approx(expected.values.numpy(), rel=1e-4)


def test_a_stored_table_comes_back(tmp_path):
    table = np.arange(12, dtype=np.int32).reshape(6, 2), np.full((6, 2), 0.25, np.float32)
    save_table(tmp_path / TABLE, table)
    tokens, probs = load_table(tmp_path / TABLE, vocabulary=6)
    assert (tokens == table[0]).all()
    assert (probs == table[1]).all()
    with pytest.raises(UserError, match="not this model's"):
        load_table(tmp_path / TABLE, vocabulary=7)


@pytest.mark.parametrize("content", [None, b"", b"no table"])
def test_a_missing_or_broken_file_is_one_clear_error(tmp_path, content):
    if content is not None:
        (tmp_path / TABLE).write_bytes(content)
    with pytest.raises(UserError, match="no readable static table"):
        load_table(tmp_path / TABLE, vocabulary=6)


def test_without_a_chat_template_the_prefix_is_one_token():
    assert assistant_prefix(SimpleNamespace(chat_template=None, bos_token_id=None, eos_token_id=7)) == [7]
    assert assistant_prefix(SimpleNamespace(chat_template=None, bos_token_id=0, eos_token_id=7)) == [0]
