"""The drawing of one tree step for docs/methods.md: draft, one forward over it, acceptance, cache.

It depends on no results. The draft, its probabilities and the accepted path are what the project's own drafter and walk
make of a small text of one token per word; who the model is does not matter, only how it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from servingbench.decoding.drafts.base import Draft
from servingbench.decoding.drafts.suffix import SuffixDrafter
from servingbench.decoding.loop import accept
from servingbench.figures.style import INK, MUTED, RULE, ink, look, new_figure

COMMITTED = "a cat sat on the mat and a dog sat on the rug so a"
CONTINUATION = "cat sat on the"  # what the model writes next, one word more than the draft gets right
WIDTH, NODES = 3, 9


@dataclass(frozen=True)
class TreeStep:
    """A step over ``words``, of which all but the last are in the cache.

    Rows are the forward's: row 0 is the last committed word, row n + 1 is node n of the draft.

    Attributes:
        words: the committed text.
        matched: length of the longest ending of the text that occurred earlier in it.
        draft: the draft tree; its tokens are indices into ``vocabulary``.
        probs: path probability of each node.
        vocabulary: every word once.
        accepted: nodes along which the model went.
        written: what the step commits: the accepted nodes' words and the model's own next one.
    """

    words: list[str]
    matched: int
    draft: Draft
    probs: list[float]
    vocabulary: list[str]
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
        return [self.words[-1], *(self.vocabulary[token] for token in self.draft.tokens)]

    @cached_property
    def positions(self) -> list[int]:
        """The position of each row in the text that it continues."""
        return [self.cached, *(self.cached + depth for depth in self.draft.depths)]

    @cached_property
    def seen(self) -> list[set[int]]:
        """Which rows of the same forward each row sees: its ancestors and itself."""
        seen = [{0}]
        for node, parent in enumerate(self.draft.parents):
            seen.append(seen[parent + 1] | {node + 1})
        return seen

    @cached_property
    def slots(self) -> list[str]:
        """The cache after the forward and before the commit, one word per slot."""
        return self.words[:-1] + self.rows

    @cached_property
    def committed_slots(self) -> list[str]:
        """The part of the cache that holds after the commit."""
        return self.words[:-1] + [self.rows[row] for row in self.kept]


def tree_step(text: str = COMMITTED, continuation: str = CONTINUATION) -> TreeStep:
    """One step of the loop after ``text`` with a model that goes on as ``continuation`` says (words and spaces)."""
    words, future = text.split(), continuation.split()
    vocabulary = list(dict.fromkeys(words + future))
    ids = {word: number for number, word in enumerate(vocabulary)}
    drafter = SuffixDrafter(width=WIDTH, num_tokens=NODES, eagerness=1.0)
    drafter.start([ids[word] for word in words])
    draft = drafter.propose(max_depth=len(words))
    assert draft is not None  # a text of more than one word always has something to propose
    tokens, nodes = accept(draft, lambda row, place: ids[future[place]], frozenset(), len(future))
    return TreeStep(
        words=words,
        matched=drafter.local.context()[1],
        draft=draft,
        probs=drafter._probs[: len(draft.tokens)].tolist(),
        vocabulary=vocabulary,
        accepted=nodes,
        written=[vocabulary[token] for token in tokens],
    )


# Inches. The matrix and the strips of the cache share their columns: a column is a slot of the cache.
WIDTH_IN, HEIGHT_IN, SIDE_IN = 7.5, 10.2, 0.1
LEFT_IN = 1.18  # of the columns
BOX_IN = 0.27  # height of a word's box
TEXT, SMALL, HEADING = 9.0, 8.2, 10.5  # points; shown 700 pixels wide, a point is 1.3 pixels
ACCEPTED = look("tree_speculative").color
ACCEPTED_INK = ink(ACCEPTED)
ACCEPTED_FILL, PREFIX_FILL, DRAFT_FILL = "#F9D9C0", "#DCE6EE", "#F1F2F4"
FONT = 7.9  # of words in the columns
LANE_IN = 0.56  # between the tree's branches


def draw_tree_step(step: TreeStep) -> Figure:
    """Four panels from top to bottom: text, tree, forward, cache."""
    figure = new_figure(WIDTH_IN, HEIGHT_IN)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, WIDTH_IN)
    axes.set_ylim(HEIGHT_IN, 0)
    axes.axis("off")
    y = _text(axes, step, 0.12)
    y = _tree(axes, step, y + 0.2)
    y = _forward(axes, step, y + 0.22)
    _cache(axes, step, y + 0.24)
    return figure


def _column(step: TreeStep, slot: float) -> float:
    """Left edge of a column."""
    return LEFT_IN + slot * (WIDTH_IN - SIDE_IN - LEFT_IN) / len(step.slots)


def _heading(axes: Axes, y: float, title: str, line: str) -> float:
    """A panel's heading and how to read it; returns where its drawing may begin."""
    axes.text(SIDE_IN, y, title, size=HEADING, weight="bold", va="top")
    axes.text(SIDE_IN, y + 0.2, line, size=SMALL, color=MUTED, va="top", linespacing=1.3)
    return y + 0.26 + 0.16 * (line.count("\n") + 1)


def _word(
    axes: Axes, x: float, y: float, width: float, text: str, *, fill: str, edge: str = "none", color: str = INK,
    size: float = TEXT, height: float = BOX_IN, bold: bool = False, dashed: bool = False,
) -> None:  # fmt: skip
    """A rounded box with a word, its upper left corner at (x, y)."""
    shape = FancyBboxPatch(
        (x, y), width, height, boxstyle="round,pad=0,rounding_size=0.04", facecolor=fill, edgecolor=edge,
        linewidth=1.2, linestyle=(0, (3, 2)) if dashed else "-",
    )  # fmt: skip
    axes.add_patch(shape)
    weight = "bold" if bold else "normal"
    axes.text(x + width / 2, y + height / 2 + 0.005, text, size=size, color=color, ha="center", va="center", weight=weight)


def _text(axes: Axes, step: TreeStep, y: float) -> float:
    line = "Each word is a token, its position below it. The end of the text occurred earlier: what followed there is a guess."
    y = _heading(axes, y, "1  The committed text", line)
    ending = step.words[-step.matched :] if step.matched else []
    count, width = len(step.words), (WIDTH_IN - 2 * SIDE_IN) / len(step.words)
    for place, word in enumerate(step.words):
        x = SIDE_IN + place * width
        earlier = place < count - 1 and step.words[place - step.matched + 1 : place + 1] == ending
        last = place >= count - step.matched
        edge = INK if last or earlier else "none"
        _word(axes, x + 0.02, y, width - 0.04, word, fill=PREFIX_FILL, edge=edge, bold=last)
        axes.text(x + width / 2, y + BOX_IN + 0.04, str(place), size=SMALL, color=MUTED, ha="center", va="top")
    return y + BOX_IN + 0.2


def _lanes(draft: Draft) -> list[float]:
    """Height of each node in lanes: leaves from top to bottom in the order of their branches."""
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(draft.parents):
        children.setdefault(parent, []).append(node)
    lanes = [0.0] * len(draft.tokens)
    leaves = 0

    def place(node: int) -> float:
        nonlocal leaves
        below = [place(child) for child in children.get(node, [])]
        if not below:
            leaves += 1
        lane = below[0] if below else leaves - 1.0
        if node >= 0:
            lanes[node] = lane
        return lane

    place(-1)
    return lanes


def _tree(axes: Axes, step: TreeStep, y: float) -> float:
    line = (
        "Best first: the most probable paths of all. Below a node: its row in the forward and the probability of its path.\n"
        "Coloured: where the model goes. Its own next word comes with the same forward."
    )
    y = _heading(axes, y, "2  The draft tree", line)
    lanes = _lanes(step.draft)
    depth = max(step.draft.depths)
    pitch, width = (WIDTH_IN - 2 * SIDE_IN - 0.62) / depth, 0.62

    def corner(row: int) -> tuple[float, float]:
        if row == 0:
            return SIDE_IN, y + 0.02
        return SIDE_IN + pitch * step.draft.depths[row - 1], y + 0.02 + LANE_IN * lanes[row - 1]

    for node, parent in enumerate(step.draft.parents):
        (x0, y0), (x1, y1) = corner(parent + 1), corner(node + 1)
        taken = node in step.accepted
        middle = x1 - 0.22
        axes.plot(
            [x0 + width, middle, middle, x1] if y0 != y1 else [x0 + width, x1],
            [y0 + BOX_IN / 2, y0 + BOX_IN / 2, y1 + BOX_IN / 2, y1 + BOX_IN / 2] if y0 != y1 else [y0 + BOX_IN / 2] * 2,
            color=ACCEPTED if taken else "#AEB5BD",
            linewidth=2.2 if taken else 1.1,
            zorder=2 if taken else 1,
            solid_joinstyle="round",
        )
    for row, word in enumerate(step.rows):
        x, top = corner(row)
        taken = row in step.kept
        fill = PREFIX_FILL if row == 0 else ACCEPTED_FILL if taken else DRAFT_FILL
        edge = INK if row == 0 else ACCEPTED if taken else "#AEB5BD"
        _word(axes, x, top, width, word, fill=fill, edge=edge, bold=taken)
        note = "row 0" if row == 0 else f"{row}: {step.probs[row - 1]:.1%}"
        axes.text(x + width / 2, top + BOX_IN + 0.035, note, size=SMALL, color=MUTED, ha="center", va="top")
    x, top = corner(step.kept[-1])
    axes.plot([x + width, x + pitch], [top + BOX_IN / 2] * 2, color=ACCEPTED, linewidth=1.4, linestyle=(0, (3, 2)))
    _word(axes, x + pitch, top, width, step.written[-1], fill="white", edge=ACCEPTED, bold=True, dashed=True)
    axes.text(
        x + pitch + width / 2, top + BOX_IN + 0.035, "the model's own", size=SMALL, color=ACCEPTED_INK, ha="center", va="top"
    )  # fmt: skip
    return y + LANE_IN * max(lanes) + BOX_IN + 0.2


def _forward(axes: Axes, step: TreeStep, y: float) -> float:
    line = (
        "A row sees (filled) the whole cache, its ancestors and itself, not its siblings: each row computes what it would\n"
        "in a text of its own. So its position is that of its depth, and two rows may share one."
    )
    y = _heading(axes, y, "3  One forward over all rows, with the tree's attention mask", line)
    width = _column(step, 1) - _column(step, 0)
    height = 0.225
    for slot, word in enumerate(step.slots):
        axes.text(_column(step, slot + 0.5), y + 0.3, word, size=FONT, ha="center", va="center")
    _span(axes, step, 0, step.cached, y + 0.14, "in the cache")
    _span(axes, step, step.cached, len(step.slots), y + 0.14, "rows of this forward")
    for x, text in ((0.24, "row"), (0.62, "word"), (0.98, "pos.")):
        axes.text(x, y + 0.3, text, size=SMALL, color=MUTED, ha="center", va="center")
    y += 0.42
    for row, word in enumerate(step.rows):
        taken = row in step.kept
        top = y + row * height
        color = ACCEPTED_INK if taken else INK
        for x, text in ((0.24, str(row)), (0.62, word), (0.98, str(step.positions[row]))):
            weight = "bold" if taken else "normal"
            axes.text(x, top + height / 2, text, size=TEXT, color=color, ha="center", va="center", weight=weight)
        for slot in range(len(step.slots)):
            if slot < step.cached:
                fill = PREFIX_FILL
            elif slot - step.cached in step.seen[row]:
                fill = ACCEPTED if taken else "#6F7882"
            else:
                fill = "white"
            axes.add_patch(
                Rectangle((_column(step, slot), top), width, height, facecolor=fill, edgecolor=RULE, linewidth=0.6)
            )
    return y + height * len(step.rows)


def _span(axes: Axes, step: TreeStep, first: int, end: int, y: float, text: str) -> None:
    """A bracket over columns with its name."""
    left, right = _column(step, first) + 0.03, _column(step, end) - 0.03
    axes.plot([left, left, right, right], [y + 0.05, y, y, y + 0.05], color=MUTED, linewidth=0.8)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2}
    axes.text((left + right) / 2, y, text, size=SMALL, color=MUTED, ha="center", va="center", bbox=box)


def _cache(axes: Axes, step: TreeStep, y: float) -> float:
    line = (
        f"The accepted rows move next to the prefix; the rest is overwritten by the next forward. Its row 0 will be "
        f"“{step.written[-1]}”."
    )
    y = _heading(axes, y, "4  The cache of keys and values, before and after the commit", line)
    width = _column(step, 1) - _column(step, 0)
    forward, after = y + 0.42, y + 0.42 + 0.62
    strips = (("before", y, step.slots[: step.cached]), ("forward", forward, step.slots), ("commit", after, step.slots))
    for name, top, words in strips:
        held = len(step.committed_slots)
        axes.text(SIDE_IN, top + BOX_IN / 2, name, size=TEXT, va="center")
        for slot in range(len(step.slots)):
            row = slot - step.cached
            word = words[slot] if slot < len(words) else ""
            fill, color, hatch = (PREFIX_FILL if row < 0 else DRAFT_FILL), INK, ""
            if name == "before" and row >= 0:
                fill = "white"
            elif name == "forward" and row in step.kept:
                fill = ACCEPTED_FILL
            elif name == "commit" and row >= 0:
                fill = ACCEPTED_FILL if slot < held else "white"
                word = step.committed_slots[slot] if slot < held else ""
            axes.add_patch(
                Rectangle(
                    (_column(step, slot), top), width, BOX_IN, facecolor=fill, edgecolor="#AEB5BD", linewidth=0.7,
                    hatch=hatch,
                )
            )  # fmt: skip
            axes.text(_column(step, slot + 0.5), top + BOX_IN / 2, word, size=FONT, color=color, ha="center", va="center")
    for place, row in enumerate(step.kept):
        start = (_column(step, step.cached + row + 0.5), forward + BOX_IN + 0.02)
        end = (_column(step, step.cached + place + 0.5), after - 0.02)
        axes.add_patch(
            FancyArrowPatch(
                start, end, arrowstyle="-|>", mutation_scale=8, color=ACCEPTED, linewidth=1.2, shrinkA=0, shrinkB=0
            )
        )
    return after + BOX_IN
