"""Suffix drafts by the published policy: the longest match alone, children by their relative counts.

As in SuffixDecoding (Oliaro et al., 2024) and the transformers forks that config/reported describes: a node's
probability is its share of its parent's occurrences; drafting stops at ``num_tokens`` nodes or below ``min_prob`` for
the whole path.
"""

from __future__ import annotations

from servingbench.decoding.drafts.suffix import Source, SuffixDrafter


def published(
    *,
    branch_factor: int = 1,
    num_tokens: int = 10,
    max_depth: int = 64,
    min_prob: float = 0.1,
    source: Source = "local",
) -> SuffixDrafter:
    """The same index and search as our own drafts, without their blending: one order, no recency, no table.

    Args:
        branch_factor: most children of a node; 1 drafts a path.
        num_tokens: nodes of a draft.
        max_depth: the deepest draft.
        min_prob: the least path probability.
        source: local, global or both.
    """
    return SuffixDrafter(
        width=branch_factor,
        num_tokens=num_tokens,
        source=source,
        max_depth=max_depth,
        min_prob=min_prob,
        rec=0.0,
        alphas=(0.0,),
        max_orders=1,
        max_edges=64,
        recent_share=0.0,
        eagerness=1.0,
    )
