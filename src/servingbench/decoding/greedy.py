"""The most probable token of one row of logits, fast on a CPU for every dtype.

torch's argmax of 49,152 bfloat16 values took 177 us here, and numpy needs 4 us for as many float32 ones: this was most
of what a step of the loop cost beside its forward.
"""

from __future__ import annotations

import torch


def greedy_token(logits: torch.Tensor) -> int:
    """Index of the first largest value of a row, (vocabulary,)."""
    if logits.device.type != "cpu":
        return int(logits.argmax())
    if logits.dtype == torch.float32:
        return int(logits.numpy().argmax())
    # The bits of positive half-precision numbers order like integers, above those of all negative ones.
    bits = logits.view(torch.int16).numpy()
    best = bits.max()
    return int((bits == best).argmax()) if best > 0 else int(logits.float().argmax())
