"""What a forward costs by its number of rows, measured on the model itself: the price list of the draft's size."""

from __future__ import annotations

from statistics import median
from time import perf_counter_ns
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from servingbench.decoding.drafts.base import Draft
from servingbench.decoding.greedy import greedy_token
from servingbench.decoding.jit import Floats
from servingbench.decoding.target import Target

CONTEXT_TOKENS = 256
REPEATS = 7
MEASURED_ROWS = 65  # at least, so that the methods of a run, whose drafts differ in size, go by one curve

_measured: WeakKeyDictionary[Any, dict[int, Floats]] = WeakKeyDictionary()


def forward_costs(target: Target, *, max_rows: int) -> Floats:
    """Nanoseconds of one verification by its rows, the argmax of one row included: an array indexed 0 to ``max_rows``.

    Measured once per model and process at 1, 2, 3, 5, 9, 17, ... rows behind a short context, as medians of interleaved
    repeats; linear in between, and never falling, which would be noise.
    """
    rows = max(max_rows, min(MEASURED_ROWS, target.context // 2))
    curves = _measured.setdefault(target.model, {})
    if rows not in curves:
        curves[rows] = _measure(target, rows)
    return curves[rows][: max_rows + 1]


@torch.inference_mode()
def _measure(target: Target, max_rows: int) -> Floats:
    counts = sorted({1, max_rows, *(1 + 2**power for power in range(max_rows.bit_length()) if 1 + 2**power < max_rows)})
    context = min(CONTEXT_TOKENS, target.context - max_rows)
    cache = target.new_cache(prompt=context, new=1, draft=max_rows)
    target.prefill(cache, [0] * context)
    times: dict[int, list[int]] = {count: [] for count in counts}
    for repeat in range(1 + REPEATS):
        for count in counts:
            draft = Draft.tree([0] * (count - 1), [-1] * (count - 1)) if count > 1 else None
            target.synchronize()
            start_ns = perf_counter_ns()
            greedy_token(target.verify(cache, 0, draft)[0])
            if repeat:  # the first round warms up
                times[count].append(perf_counter_ns() - start_ns)
    medians = np.maximum.accumulate([median(times[count]) for count in counts])
    return np.interp(np.arange(max_rows + 1), counts, medians)
