"""Position profile: how far into a draft the acceptance reaches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servingbench.metrics.records import MissingValue, Record, draft_steps

Profile = dict[str, list[int] | list[float] | list[float | None]]


def position_profile(records: Sequence[Record]) -> Profile:
    """The profile for k = 1, 2, ... up to the deepest draft; empty lists where no forward carried a draft.

    Returns:
        ``reach``: r_k = #(A >= k) / #(depth >= k).
        ``conditional``: c_k = #(A >= k) / #(A >= k - 1 and depth >= k), null where no draft got that far.
        ``count``: #(depth >= k), the denominator of r_k.
    """
    try:
        drafted = np.array(draft_steps(records))
    except MissingValue:
        return {"reach": [], "conditional": [], "count": []}
    depth, accepted = drafted[:, 1, None], drafted[:, 2, None]
    k = np.arange(1, depth.max() + 1)
    reached = (accepted >= k).sum(axis=0)
    count = (depth >= k).sum(axis=0)
    eligible = ((accepted >= k - 1) & (depth >= k)).sum(axis=0)
    return {
        "reach": (reached / count).tolist(),
        "conditional": [int(a) / int(b) if b else None for a, b in zip(reached, eligible, strict=True)],
        "count": count.tolist(),
    }
