"""The model under measurement, seen as rows in and logits out, on every supported transformers revision."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from servingbench.decoding.cache import KVCache
from servingbench.decoding.drafts.base import Draft
from servingbench.decoding.jit import compiled
from servingbench.errors import UserError

MASKABLE_ATTENTION = ("sdpa", "eager")  # implementations that take an additive 4-D mask
FULL, SLIDING = "full_attention", "sliding_attention"


def check_model(model: Any) -> None:
    """Refuse a model whose state cannot be rolled back row by row, naming its layer types.

    Raises:
        UserError: for an encoder-decoder, recurrent or linear-attention layers, or an attention implementation that
            takes no tree mask. A sliding window is refused per request, when the text would leave it.
    """
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or [FULL])
    if getattr(config, "is_encoder_decoder", False):
        raise UserError("encoder-decoder models are not supported", value=config.model_type, remedy="use a decoder")
    unsupported = sorted(kinds - {FULL, SLIDING, "attention"})
    if not unsupported and getattr(model, "_is_stateful", False):
        unsupported = ["recurrent state"]
    if unsupported:
        raise UserError(
            f"the model has layers that cannot drop rejected tokens: {', '.join(unsupported)}",
            key=config.model_type,
            value=sorted(kinds),
            remedy="use a model with full attention, or a method that goes through transformers' generate",
        )
    if config._attn_implementation not in MASKABLE_ATTENTION:
        raise UserError(
            "this attention implementation takes no tree mask",
            key="attn_implementation",
            value=config._attn_implementation,
            remedy=f"set it to one of {', '.join(MASKABLE_ATTENTION)}",
        )


def synchronize(device: torch.device) -> None:
    """Wait for a device, so that a timer beside it tells the truth."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Target:
    """One loaded model: forwards over rows of a text whose prefix is cached.

    Args:
        model: a causal language model of transformers, in evaluation mode.
    """

    def __init__(self, model: Any) -> None:
        check_model(model)
        self.model = model
        self.config = model.config.get_text_config()
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        parameters = inspect.signature(model.forward).parameters
        self._cache_key = "cache" if "cache" in parameters else "past_key_values"
        self._slices_logits = "logits_to_keep" in parameters
        self.context: int = getattr(self.config, "max_position_embeddings", None) or sys.maxsize
        self._blocked = torch.finfo(self.dtype).min

    def new_cache(self, *, prompt: int, new: int, draft: int) -> KVCache:
        """A cache for one request, after checking that its text fits the model.

        Raises:
            UserError: for a text beyond the model's context or its sliding window.
        """
        length = prompt + new
        if length > self.context:
            raise UserError(
                f"the prompt ({prompt} tokens) and {new} new tokens do not fit the model's context",
                value=self.context,
                remedy="shorten the prompt or lower max_new_tokens",
            )
        window = getattr(self.config, "sliding_window", None)
        kinds = getattr(self.config, "layer_types", None)
        if window is not None and length > window and (kinds is None or SLIDING in kinds):
            raise UserError(
                f"the prompt ({prompt} tokens) and {new} new tokens leave the model's sliding window",
                key=", ".join(sorted(set(kinds or [SLIDING]))),
                value=window,
                remedy="shorten the prompt, lower max_new_tokens, or use a method that goes through transformers",
            )
        return KVCache(layers=self.config.num_hidden_layers, capacity=length + draft)

    def synchronize(self) -> None:
        """Wait for the model's device."""
        synchronize(self.device)

    def prefill(self, cache: KVCache, prompt_ids: Sequence[int]) -> torch.Tensor:
        """Run the prompt and return its last row's logits, (1, vocabulary)."""
        logits = self._forward(cache, list(prompt_ids), None, None, keep=1)
        cache.commit(range(len(prompt_ids)))
        return logits

    def verify(self, cache: KVCache, last: int, draft: Draft | None) -> torch.Tensor:
        """Run the last committed token and a draft; logits of every row, (1 + nodes, vocabulary)."""
        start = cache.length
        if draft is None:
            return self._forward(cache, [last], [start], None, keep=1)
        positions = [start, *(start + depth for depth in draft.depths)]
        return self._forward(cache, [last, *draft.tokens], positions, self._mask(start, draft), keep=0)

    def _forward(
        self, cache: KVCache, rows: list[int], positions: list[int] | None, mask: torch.Tensor | None, *, keep: int
    ) -> torch.Tensor:
        arguments: dict[str, Any] = {self._cache_key: cache, "attention_mask": mask, "use_cache": True}
        if self._slices_logits:
            arguments["logits_to_keep"] = keep
        if positions is None:
            positions = list(range(len(rows)))
        both = torch.from_numpy(np.array([rows, positions])).to(self.device)
        logits: torch.Tensor = self.model(input_ids=both[:1], position_ids=both[1:], **arguments).logits[0]
        return logits[-keep:]

    def _mask(self, start: int, draft: Draft) -> torch.Tensor:
        """Additive mask (1, 1, q, start + q): every row sees the prefix, its ancestors and itself."""
        rows = 1 + len(draft.tokens)
        hidden = torch.from_numpy(hidden_rows(np.array(draft.parents))).to(self.device)
        mask = torch.zeros((rows, start + rows), dtype=self.dtype, device=self.device)
        mask[:, start:].masked_fill_(hidden, self._blocked)
        return mask[None, None]


@compiled
def hidden_rows(parents: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which rows of a draft each of its rows must not see: all but its ancestors and itself."""
    hidden = np.ones((1 + parents.size, 1 + parents.size), np.bool_)
    hidden[0, 0] = False
    for node in range(parents.size):
        hidden[node + 1] = hidden[parents[node] + 1]
        hidden[node + 1, node + 1] = False
    return hidden
