"""The one style of every figure: palette, markers, type, and the footer that says which machine made the numbers."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

INK = "#1F2328"  # text
MUTED = "#5B636C"  # secondary text; 5.9:1 on white
RULE = "#D4D8DD"  # grid lines, frames
BAND = "#DDE1E7"  # the A/A band

WIDE_IN = 11.0
NARROW_IN = 4.6
NARROW_HEIGHT_IN = 2.95

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#8A929B",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "axes.labelsize": 10,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "xtick.color": "#8A929B",
    "ytick.color": "#8A929B",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "serving-bench",
    "pdf.fonttype": 42,
    "lines.solid_capstyle": "round",
}


@dataclass(frozen=True)
class Look:
    """How one method is drawn, in every figure."""

    color: str
    marker: str


# Okabe and Ito's palette (https://jfly.uni-koeln.de/color/) for the methods of the default matrix; variants take a
# darker or lighter relative of their family's hue and another marker, so that no distinction rests on hue alone.
LOOKS: dict[str, Look] = {
    "autoregressive": Look("#3B4148", "s"),
    "autoregressive_aa": Look("#9AA1A9", "s"),
    "draft_speculative": Look("#CC79A7", "D"),
    "prompt_lookup": Look("#0072B2", "s"),
    "suffix_speculative": Look("#009E73", "o"),
    "tree_speculative": Look("#D55E00", "^"),
    "suffix_global": Look("#A8A000", "v"),
    "suffix_both": Look("#00553E", "P"),
    "suffix_published": Look("#6CC5AC", "h"),
    "tree_published": Look("#E69F00", "<"),
    "tree_longest": Look("#B8860B", ">"),
    "tree_blended": Look("#E07B39", "v"),
    "tree_table": Look("#A0430A", "d"),
    "arctic_suffix_path": Look("#8E7CC3", "o"),
    "arctic_suffix_tree": Look("#5B3A9E", "^"),
    "autoregressive_hf": Look("#000000", "X"),
    "prompt_lookup_hf": Look("#56B4E9", "p"),
    "early_exit": Look("#8C564B", "*"),
    "draft_speculative_universal": Look("#A3527F", "d"),
    "mtp": Look("#5F8A00", "H"),
    "dflash": Look("#E377C2", "8"),
    "suffix_fork": Look("#3E8E7E", "H"),
    "tree_fork": Look("#C98500", "*"),
}
# For methods added to the table later, in the table's order (Tol's muted scheme, the hues not used above).
SPARE_LOOKS: tuple[Look, ...] = tuple(
    Look(color, marker)
    for color, marker in (
        ("#332288", ">"),
        ("#882255", "d"),
        ("#117733", "H"),
        ("#AA4499", "*"),
        ("#88CCEE", "8"),
        ("#661100", "o"),
        ("#999933", "D"),
        ("#44AA99", "s"),
    )
)
# The published tables name their methods more shortly; a family keeps its colour there.
REPORTED_FAMILY = {"draft_model": "draft_speculative", "suffix": "suffix_speculative", "tree": "tree_speculative"}


def look(method: str, table: Iterable[str] = ()) -> Look:
    """The colour and marker of ``method``; ``table`` (method names in table order) fixes those of added methods."""
    name = REPORTED_FAMILY.get(method, method)
    if name in LOOKS:
        return LOOKS[name]
    added = [row for row in table if row not in LOOKS]
    position = added.index(name) if name in added else len(added)
    if position < len(SPARE_LOOKS):
        return SPARE_LOOKS[position]
    hue = (position * 0.618034) % 1.0  # golden-angle steps: any number of rows, no two alike
    return Look(to_hex(colorsys.hls_to_rgb(hue, 0.38, 0.55)), SPARE_LOOKS[position % len(SPARE_LOOKS)].marker)


def ink(color: str, *, contrast: float = 4.5) -> str:
    """``color`` darkened until text in it reaches ``contrast``:1 on white (WCAG relative luminance)."""
    red, green, blue = to_rgb(color)
    while 1.05 / (_luminance(red, green, blue) + 0.05) < contrast:
        red, green, blue = 0.95 * red, 0.95 * green, 0.95 * blue
    return to_hex((red, green, blue))


def _luminance(*rgb: float) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@contextmanager
def style() -> Iterator[None]:
    """Draw and save inside this context."""
    with mpl.rc_context():
        mpl.rcdefaults()
        for name, value in RC.items():
            mpl.rcParams[name] = value  # type: ignore[index]  # RC holds only names of parameters
        yield


HEAD_IN, SUBTITLE_IN, FOOT_LINE_IN, SIDE_IN = 0.33, 0.165, 0.135, 0.06


def new_figure(width_in: float, height_in: float) -> Figure:
    """A blank figure (no pyplot: nothing global, nothing interactive)."""
    return Figure(figsize=(width_in, height_in))


def frame(
    figure: Figure,
    *,
    title: str,
    subtitle: str | Sequence[str],
    footer: str,
    left_in: float,
    right_in: float = SIDE_IN,
    bottom_in: float = 0.55,
    gap_in: float = 0.16,
) -> tuple[float, float, float, float]:
    """Write title, subtitle lines and footer, and return the (left, bottom, right, top) that is left for axes.

    Args:
        figure: the figure.
        title: what is shown, in a few words.
        subtitle: how to read it; one line or several.
        footer: the machine's line.
        left_in: room for labels left of the axes.
        right_in: room right of the axes.
        bottom_in: room for tick labels and the axis label below the axes.
        gap_in: space between the subtitle and the axes.

    Returns:
        Figure fractions.
    """
    width, height = figure.get_size_inches()
    lines = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    wide = width > 8
    figure.text(SIDE_IN / width, 1 - 0.04 / height, title, ha="left", va="top", size=15 if wide else 12, weight="bold")
    y = height - HEAD_IN
    for line in lines:
        figure.text(SIDE_IN / width, y / height, line, ha="left", va="top", size=10 if wide else 8.8, color=MUTED)
        y -= SUBTITLE_IN * (1.12 if wide else 1)
    for row, line in enumerate(reversed(footer.split("\n"))):
        figure.text(
            SIDE_IN / width, (0.04 + FOOT_LINE_IN * row) / height, line, ha="left", va="bottom", size=7.5, color=MUTED
        )
    below = 0.08 + FOOT_LINE_IN * (footer.count("\n") + 1) + bottom_in
    return left_in / width, below / height, 1 - right_in / width, (y - gap_in) / height


def note_figure(*, title: str, note: str, footer: str, wide: bool = False) -> Figure:
    """A figure that says why there is nothing to draw."""
    figure = new_figure(WIDE_IN if wide else NARROW_IN, NARROW_HEIGHT_IN)
    frame(figure, title=title, subtitle="", footer=footer, left_in=SIDE_IN)
    figure.text(0.5, 0.5, note, ha="center", va="center", size=10, color=MUTED, linespacing=1.5)
    return figure
