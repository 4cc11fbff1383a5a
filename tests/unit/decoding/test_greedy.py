"""The fast greedy token against torch's argmax in float32."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from servingbench.decoding.greedy import greedy_token

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.sampled_from([-3.0, -1.5, -0.0, 0.0, 0.25, 7.0, -1e4]), min_size=1, max_size=40))
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_the_largest_wins(dtype, values):
    logits = torch.tensor(values, dtype=dtype)
    assert greedy_token(logits) == int(logits.float().argmax())


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_random_logits(dtype):
    logits = torch.randn(50, 997, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert [greedy_token(row) for row in logits] == logits.float().argmax(dim=-1).tolist()
    assert [greedy_token(row) for row in -logits.abs()] == (-logits.abs()).float().argmax(dim=-1).tolist()
