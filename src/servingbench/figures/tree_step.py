"""The drawing of one tree step for docs/methods.md: draft, one forward over it, acceptance, cache.

It depends on no results. The draft, its probabilities and the accepted path are what the project's own drafter and walk
make of a small text of one token per word; who the model is does not matter, only how it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from servingbench.decoding.drafts.base import Draft
from servingbench.decoding.drafts.suffix import SuffixDrafter
from servingbench.decoding.loop import accept
from servingbench.decoding.target import hidden_rows
from servingbench.figures.style import INK, MUTED, RULE, ink, look, new_figure

COMMITTED = "a cat sat on the mat , a cat ran to the rug , a cat"
CONTINUATION = "sat on the bed"  # what the model writes next, one word more than the draft gets right
WIDTH, NODES, DEPTH = 3, 9, 4


@dataclass(frozen=True)
class TreeStep:
    """A step over ``words``, of which all but the last are in the cache.

    Rows are the forward's: row 0 is the last committed word, row n + 1 is node n of the draft.

    Attributes:
        words: the committed text; a word is a token.
        matched: length of the longest ending of the text that occurred earlier in it.
        draft: the draft tree.
        drafted: the word of each of its nodes.
        probs: the path probability of each.
        accepted: nodes along which the model went.
        written: what the step commits: the accepted nodes' words and the model's own next one.
    """

    words: list[str]
    matched: int
    draft: Draft
    drafted: list[str]
    probs: list[float]
    accepted: list[int]
    written: list[str]

    @property
    def cached(self) -> int:
        """Rows of the cache before the forward."""
        return len(self.words) - 1

    @property
    def kept(self) -> list[int]:
        """Rows that stay in the cache."""
        return [0, *(node + 1 for node in self.accepted)]

    @cached_property
    def rows(self) -> list[str]:
        """The word of each row."""
        return [self.words[-1], *self.drafted]

    @cached_property
    def positions(self) -> list[int]:
        """The position of each row in the text that it continues."""
        return [self.cached, *(self.cached + depth for depth in self.draft.depths)]

    @cached_property
    def seen(self) -> list[list[int]]:
        """Which rows of the same forward each row sees: its ancestors and itself."""
        hidden = hidden_rows(np.array(self.draft.parents))
        return [np.flatnonzero(~row).tolist() for row in hidden]

    @cached_property
    def slots(self) -> list[str]:
        """The cache after the forward and before the commit, one word per slot."""
        return self.words[:-1] + self.rows

    @cached_property
    def committed(self) -> list[str]:
        """The same after the commit: the rows that stay have moved next to the prefix, and nothing is erased."""
        kept = [self.rows[row] for row in self.kept]
        return self.words[:-1] + kept + self.slots[self.cached + len(kept) :]


def tree_step(text: str = COMMITTED, continuation: str = CONTINUATION) -> TreeStep:
    """One step of the loop after ``text`` with a model that goes on as ``continuation`` says (words and spaces)."""
    words, future = text.split(), continuation.split()
    vocabulary = list(dict.fromkeys(words + future))
    ids = {word: number for number, word in enumerate(vocabulary)}
    # The exact search, and nothing at order 0: a reader can recompute the drawn probabilities by hand.
    drafter = SuffixDrafter(width=WIDTH, num_tokens=NODES, eagerness=1.0, recent_share=0.0)
    drafter.start([ids[word] for word in words])
    draft = drafter.propose(max_depth=DEPTH)
    assert draft is not None  # the text's last words occurred before
    tokens, nodes = accept(draft, lambda row, place: ids[future[place]], frozenset(), len(future))
    return TreeStep(
        words=words,
        matched=drafter.local.context()[1],
        draft=draft,
        drafted=[vocabulary[token] for token in draft.tokens],
        probs=drafter.path_probabilities(len(draft.tokens)),
        accepted=nodes,
        written=[vocabulary[token] for token in tokens],
    )


# Inches. The matrix and the strips of the cache share their columns: a column is a slot of the cache.
WIDTH_IN, SIDE_IN = 7.5, 0.1
COLUMNS_IN = 1.18  # where the columns begin
BOX_IN, NODE_IN = 0.27, 0.62  # height of a word's box, width of a node's
LANE_IN, ROW_IN = 0.56, 0.225  # between branches of the tree, between rows of the mask
HEADING, TEXT, SMALL, TIGHT = 10.5, 9.0, 8.2, 7.5  # points; shown 700 pixels wide, a point is 1.3 pixels
TAKEN = look("tree_speculative").color
TAKEN_FILL, PREFIX_FILL, DRAFT_FILL = "#F9D9C0", "#DCE6EE", "#F1F2F4"
EDGE, SEEN, STALE = "#AEB5BD", "#6F7882", "#9AA1A9"
DASHED = (0, (3, 2))


def draw_tree_step(step: TreeStep) -> Figure:
    """Four panels from top to bottom: text, tree, forward, cache."""
    figure = new_figure(WIDTH_IN, 1)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    bottom = 0.1
    for panel in (_text, _tree, _forward, _cache):
        bottom = panel(axes, step, bottom) + 0.22
    axes.set(xlim=(0, WIDTH_IN), ylim=(bottom - 0.12, 0))
    figure.set_size_inches(WIDTH_IN, bottom - 0.12)
    return figure


def _text(axes: Axes, step: TreeStep, y: float) -> float:
    line = "Each word is a token, its position below it. The end of the text occurred before: what followed is a guess."
    y = _heading(axes, y, "1  The committed text", line)
    count, pitch = len(step.words), (WIDTH_IN - 2 * SIDE_IN) / len(step.words)
    ending = step.words[count - step.matched :]
    outlined = [end for end in range(count) if step.matched and step.words[end + 1 - step.matched : end + 1] == ending]
    for place, word in enumerate(step.words):
        x = SIDE_IN + place * pitch
        matched = any(end - step.matched < place <= end for end in outlined)
        _word(axes, x + 0.02, y, pitch - 0.04, word, fill=PREFIX_FILL, edge=INK if matched else "none")
        _note(axes, x + pitch / 2, y, str(place))
    return y + BOX_IN + 0.2


def _tree(axes: Axes, step: TreeStep, y: float) -> float:
    line = (
        f"The {NODES} likeliest paths at most {DEPTH} deep. Below a node: its row and its path's probability.\n"
        "Coloured: the way the model goes. Dashed: its own next word, which the same forward gives."
    )
    y = _heading(axes, y, "2  The draft tree", line)
    pitch = (WIDTH_IN - 3.5 * SIDE_IN - NODE_IN) / max(step.draft.depths)
    lanes = [0.0, *_lanes(step.draft)]
    places = [(SIDE_IN + pitch * (at - step.cached), y + LANE_IN * lanes[row]) for row, at in enumerate(step.positions)]
    for node, parent in enumerate(step.draft.parents):
        taken: dict[str, Any] = {"color": TAKEN, "linewidth": 2.2, "zorder": 2} if node in step.accepted else {}
        _branch(axes, places[parent + 1], places[node + 1], **taken)
    for row, (x, top) in enumerate(places):
        fill, edge = (TAKEN_FILL, TAKEN) if row in step.kept else (DRAFT_FILL, EDGE)
        if row == 0:
            fill, edge = PREFIX_FILL, INK
        _word(axes, x, top, NODE_IN, step.rows[row], fill=fill, edge=edge, bold=row in step.kept)
        _note(axes, x + NODE_IN / 2, top, f"row {row} · {step.probs[row - 1]:.3f}" if row else "row 0")
    end = places[step.kept[-1]]
    x, top = end[0] + pitch, y + LANE_IN * (max(lanes) + 1)
    _branch(axes, end, (x, top), color=TAKEN, linewidth=1.4, linestyle=DASHED)
    _word(axes, x, top, NODE_IN, step.written[-1], fill="white", edge=TAKEN, bold=True, dash=DASHED)
    _note(axes, x + NODE_IN / 2, top, "model's own", color=ink(TAKEN))
    return top + BOX_IN + 0.2


def _branch(axes: Axes, start: tuple[float, float], end: tuple[float, float], **looks: Any) -> None:
    """A line from a node's box to its child's."""
    turn = end[0] - 0.26
    ys = [y + BOX_IN / 2 for y in (start[1], start[1], end[1], end[1])]
    plain: dict[str, Any] = {"color": EDGE, "linewidth": 1.1, "zorder": 1}
    axes.plot([start[0] + NODE_IN, turn, turn, end[0]], ys, **(plain | looks))


def _lanes(draft: Draft) -> list[float]:
    """The height of each node, in lanes: a branch keeps its parent's for the first child, and opens one for others."""
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(draft.parents):
        children.setdefault(parent, []).append(node)
    lanes = [0.0] * len(draft.tokens)
    waiting, lane = [-1], -1
    while waiting:
        node = waiting.pop()
        if node >= 0:
            lanes[node] = lane
        following = children.get(node, [])
        if not following or node < 0:
            lane += 1
        waiting += reversed(following)
    return lanes


def _forward(axes: Axes, step: TreeStep, y: float) -> float:
    line = (
        "A row sees (filled) what is in the cache, its ancestors and itself: it computes what it would if its branch\n"
        "were the whole text. Its position is that of its depth, so rows of different branches share one."
    )
    y = _heading(axes, y, "3  One forward over all rows, with the tree's attention mask", line)
    places = (0.24, 0.62, 0.98)
    for x, text in zip(places, ("row", "word", "pos."), strict=True):
        axes.text(x, y + 0.26, text, size=SMALL, color=MUTED, ha="center", va="center")
    for slot, word in enumerate(step.slots):
        axes.text(_column(step, slot + 0.5), y + 0.26, word, size=TIGHT, ha="center", va="center")
    _bracket(axes, _column(step, 0), _column(step, step.cached), y + 0.09, "in the cache")
    _bracket(axes, _column(step, step.cached), WIDTH_IN - SIDE_IN, y + 0.09, "rows of this forward")
    top = y + 0.38
    bottom = top + ROW_IN * len(step.rows)
    _cells(axes, step, 0, step.cached, top, bottom - top, PREFIX_FILL)
    for row, seen in enumerate(step.seen):
        level, taken = top + ROW_IN * row, row in step.kept
        looks: dict[str, Any] = {"color": ink(TAKEN), "weight": "bold"} if taken else {}
        for x, text in zip(places, (str(row), step.rows[row], str(step.positions[row])), strict=True):
            axes.text(x, level + ROW_IN / 2, text, size=TEXT, ha="center", va="center", **looks)
        for other in seen:
            slot = step.cached + other
            _cells(axes, step, slot, slot + 1, level, ROW_IN, TAKEN if taken else SEEN)
    grid: dict[str, Any] = {"color": RULE, "linewidth": 0.6}
    axes.vlines([_column(step, slot) for slot in range(len(step.slots) + 1)], top, bottom, **grid)
    levels = [top + ROW_IN * row for row in range(len(step.rows) + 1)]
    axes.hlines(levels, _column(step, 0), WIDTH_IN - SIDE_IN, **grid)
    return bottom


def _cache(axes: Axes, step: TreeStep, y: float) -> float:
    line = (
        "The accepted rows move next to the prefix. Nothing is erased: the next forward, whose row 0 is "
        f"“{step.written[-1]}”, overwrites the rest."
    )
    y = _heading(axes, y, "4  The cache of keys and values", line)
    after_forward, after_commit = y + 0.4, y + 1.02
    kept = step.cached + len(step.kept)
    _strip(axes, step, y, "before", step.words[:-1], held=step.cached)
    _strip(axes, step, after_forward, "after forward", step.slots, held=len(step.slots))
    _strip(axes, step, after_commit, "after commit", step.committed, held=kept)
    for place, row in enumerate(step.kept):
        source, target = step.cached + row, step.cached + place
        for slot, level in ((source, after_forward), (target, after_commit)):
            _cells(axes, step, slot, slot + 1, level, BOX_IN, TAKEN_FILL)
        start = (_column(step, source + 0.5), after_forward + BOX_IN)
        end = (_column(step, target + 0.5), after_commit)
        axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=8, color=TAKEN, linewidth=1.2))
    return after_commit + BOX_IN


def _strip(axes: Axes, step: TreeStep, y: float, name: str, words: list[str], *, held: int) -> None:
    """The cache's slots: the prefix, what else is held, and what is not."""
    axes.text(SIDE_IN, y + BOX_IN / 2, name, size=TEXT, va="center")
    _cells(axes, step, 0, step.cached, y, BOX_IN, PREFIX_FILL)
    _cells(axes, step, step.cached, held, y, BOX_IN, DRAFT_FILL)
    for slot, word in enumerate(words):
        color = INK if slot < held else STALE
        axes.text(_column(step, slot + 0.5), y + BOX_IN / 2, word, size=TIGHT, color=color, ha="center", va="center")
    edges = [_column(step, slot) for slot in range(len(step.slots) + 1)]
    axes.vlines(edges, y, y + BOX_IN, color=EDGE, linewidth=0.7)
    axes.hlines([y, y + BOX_IN], edges[0], edges[-1], color=EDGE, linewidth=0.7)


def _column(step: TreeStep, slot: float) -> float:
    """Left edge of a column."""
    return COLUMNS_IN + slot * (WIDTH_IN - SIDE_IN - COLUMNS_IN) / len(step.slots)


def _cells(axes: Axes, step: TreeStep, first: int, end: int, y: float, height: float, fill: str) -> None:
    """Fill columns from ``first`` up to ``end``."""
    left = _column(step, first)
    axes.add_patch(Rectangle((left, y), _column(step, end) - left, height, facecolor=fill, edgecolor="none"))


def _heading(axes: Axes, y: float, title: str, line: str) -> float:
    """A panel's heading and how to read it; returns where its drawing begins."""
    axes.text(SIDE_IN, y, title, size=HEADING, weight="bold", va="top")
    axes.text(SIDE_IN, y + 0.21, line, size=SMALL, color=MUTED, va="top", linespacing=1.3)
    return y + 0.28 + 0.16 * (line.count("\n") + 1)


def _note(axes: Axes, x: float, y: float, text: str, *, color: str = MUTED) -> None:
    """A line below a box."""
    axes.text(x, y + BOX_IN + 0.035, text, size=SMALL, color=color, ha="center", va="top")


def _bracket(axes: Axes, left: float, right: float, y: float, text: str) -> None:
    """A bracket over columns with its name."""
    left, right = left + 0.03, right - 0.03
    axes.plot([left, left, right, right], [y + 0.05, y, y, y + 0.05], color=MUTED, linewidth=0.8)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2}
    axes.text((left + right) / 2, y, text, size=SMALL, color=MUTED, ha="center", va="center", bbox=box)


def _word(
    axes: Axes, x: float, y: float, width: float, word: str, *,
    fill: str, edge: str, bold: bool = False, dash: Any = "-",
) -> None:  # fmt: skip
    """A rounded box with a word, its upper left corner at (x, y)."""
    style = {"facecolor": fill, "edgecolor": edge, "linewidth": 1.2, "linestyle": dash, "zorder": 3}
    axes.add_patch(FancyBboxPatch((x, y), width, BOX_IN, boxstyle="round,pad=0,rounding_size=0.04", **style))
    weight = "bold" if bold else "normal"
    axes.text(x + width / 2, y + BOX_IN / 2, word, size=TEXT, ha="center", va="center", weight=weight, zorder=4)
