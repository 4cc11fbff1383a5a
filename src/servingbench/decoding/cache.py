"""A key/value cache that is allocated once per request and can move accepted rows next to the prefix.

transformers' own caches grow by concatenation, which copies the whole cache at every forward, and their ``crop`` has
meant different things in different revisions. This one runs unchanged on transformers 4.57 to 5.24: a decoder's forward
only asks for lengths and hands over new rows, so it need not even derive from their class; its signatures accept what
each revision passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from servingbench.errors import UserError


class KVCache:
    """Keys and values of every layer in two tensors of shape (layers, heads, capacity, head size).

    A forward of q rows writes them at ``length .. length + q``; :meth:`commit` then decides which of them stay. Nothing
    is ever erased: rows beyond ``length`` are simply overwritten by the next forward.

    Args:
        layers: number of layers that keep keys and values.
        capacity: rows to allocate: prompt + new tokens + the largest draft.
    """

    is_compileable = False  # transformers 4.57 and 5 ask before they pick a mask

    def __init__(self, *, layers: int, capacity: int) -> None:
        self.layers = layers
        self.capacity = capacity
        self.length = 0
        self._keys: torch.Tensor | None = None
        self._values: torch.Tensor | None = None

    def get_seq_length(self, *args: Any, **kwargs: Any) -> int:
        """Rows that the next forward's rows come after, the same in every layer."""
        return self.length

    get_query_offset = get_seq_length

    def get_mask_sizes(self, query: int | torch.Tensor, *args: Any, **kwargs: Any) -> tuple[int, int]:
        """Key length and offset; ``query`` is a count of rows (transformers 5) or their positions (4)."""
        rows = query.shape[0] if isinstance(query, torch.Tensor) else query
        return self.length + rows, 0

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store one layer's new rows, (1, heads, q, size), and return all of its rows up to them."""
        if self._keys is None or self._values is None:
            self._keys, self._values = self._allocate(key_states), self._allocate(value_states)
        end = self.length + key_states.shape[2]
        keys, values = self._keys[layer_idx], self._values[layer_idx]
        if key_states.shape[1] != keys.shape[0] or key_states.shape[3] != keys.shape[2]:
            raise UserError(
                "the model's layers keep keys and values of different shapes",
                value=(tuple(keys.shape), tuple(key_states.shape)),
                remedy="use a method that goes through transformers' generate",
            )
        keys[:, self.length : end] = key_states[0]
        values[:, self.length : end] = value_states[0]
        return keys[None, :, :end], values[None, :, :end]

    def commit(self, rows: Sequence[int]) -> None:
        """Keep these rows of the last forward (increasing, counted from its first) and drop its others."""
        count = len(rows)
        if rows and rows[-1] != count - 1 and self._keys is not None and self._values is not None:
            # Rows before the first gap already lie next to the prefix.
            first = next(place for place, row in enumerate(rows) if row != place)
            start, end = self.length + first, self.length + count
            source = torch.tensor([self.length + row for row in rows[first:]], device=self._keys.device)
            for tensor in (self._keys, self._values):
                tensor[:, :, start:end] = tensor.index_select(2, source)
        self.length += count

    def _allocate(self, states: torch.Tensor) -> torch.Tensor:
        _, heads, _, size = states.shape
        return states.new_empty((self.layers, heads, self.capacity, size))
