"""The order of the arms: a Williams square, so that neither place nor predecessor favours any of them.

Williams, E. J. (1949), "Experimental designs balanced for the estimation of residual effects of treatments",
Australian Journal of Scientific Research A 2, 149-168.
"""

from __future__ import annotations

from collections.abc import Sequence


def williams_square(arms: int) -> list[list[int]]:
    """The rows of a Williams design over ``arms`` arms, each row a permutation of ``range(arms)``.

    Over all rows every arm takes every place equally often, and every ordered pair of different arms stands side by
    side equally often. An even number of arms needs ``arms`` rows. An odd number needs ``2 * arms``: the square and
    then its mirror image; the first half alone already balances the places.
    """
    # 0, 1, n-1, 2, n-2, ...: the differences between neighbours are all different modulo n when n is even.
    first = [0]
    for step in range(1, arms):
        first.append((step + 1) // 2 if step % 2 else arms - step // 2)
    square = [[(arm + shift) % arms for arm in first] for shift in range(arms)]
    return square + [row[::-1] for row in square] if arms % 2 and arms > 1 else square


def arm_order(names: Sequence[str], *, block: int) -> list[str]:
    """The arms of the ``block``-th block (prompt number x repeats + repeat), first to last."""
    rows = williams_square(len(names))
    return [names[arm] for arm in rows[block % len(rows)]]
