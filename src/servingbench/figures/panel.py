"""The half-width figure that most figures are: title, how to read it, legend, one pair of axes, footer."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from servingbench.figures.data import ResultSet
from servingbench.figures.style import NARROW_HEIGHT_IN, NARROW_IN, SIDE_IN, Look, frame, new_figure

LEGEND_LINE_IN = 0.172
ROW_IN = 0.18
ROOM_IN = 0.35
LABEL_CHARACTERS = 24


def panel(
    results: ResultSet,
    *,
    title: str,
    subtitle: str,
    labels: Mapping[str, str],
    footer: str | None = None,
    looks: Mapping[str, Look] | None = None,
    left_in: float = 0.62,
    rows: int = 0,
) -> tuple[Figure, Axes]:
    """A half-width figure with a legend of ``labels``, growing with the legend and with ``rows``.

    Args:
        results: gives the looks and the footer.
        title: what is shown.
        subtitle: how to read it; wrapped.
        labels: the legend's texts by key, in order.
        footer: replaces the machine's line.
        looks: replaces the methods' looks, by legend key.
        left_in: room for the y labels.
        rows: rows of a categorical y axis.
    """
    columns = _columns(list(labels.values()))
    lines = -(-len(labels) // columns)
    subtitle_lines = textwrap.wrap(subtitle, 70)
    extra_in = LEGEND_LINE_IN * max(0, lines - 1) + max(0.0, rows * ROW_IN - 1.4) + ROOM_IN
    figure = new_figure(NARROW_IN, NARROW_HEIGHT_IN + extra_in)
    left, bottom, right, top = frame(
        figure,
        title=title,
        subtitle=subtitle_lines,
        footer=footer or results.footer,
        left_in=left_in,
        right_in=0.22,
        bottom_in=0.42,
        gap_in=LEGEND_LINE_IN * lines + 0.17,
    )
    axes = figure.add_axes((left, bottom, right - left, top - bottom))
    axes.tick_params(length=0)
    looks = looks or {name: results.look(name) for name in labels}
    legend(figure, labels, looks, left_in=SIDE_IN, y=top + 0.06 / figure.get_size_inches()[1], columns=columns)
    return figure, axes


def legend(
    figure: Figure, labels: Mapping[str, str], looks: Mapping[str, Look], *, left_in: float, y: float, columns: int
) -> None:
    """A legend in ``figure``, its lower left corner at ``left_in`` inches and ``y`` (figure fraction)."""
    handles = [
        Line2D([], [], color=looks[name].color, marker=looks[name].marker, linestyle="", markersize=7, label=text)
        for name, text in labels.items()
    ]
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(left_in / figure.get_size_inches()[0], y),
        ncols=columns,
        frameon=False,
        fontsize=9,
        handletextpad=0.1,
        handlelength=1.4,
        columnspacing=1.1,
        borderaxespad=0,
        borderpad=0,
        labelspacing=0.35,
    )


def category_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Rows from top to bottom, a hairline through each."""
    axes.set_yticks(
        range(len(labels)), [textwrap.shorten(label, LABEL_CHARACTERS, placeholder="…") for label in labels]
    )
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def label_room_in(labels: Sequence[str]) -> float:
    """Inches that row labels take at the tick size, left margin included."""
    return 0.28 + 0.078 * max(min(len(label), LABEL_CHARACTERS) for label in labels)


def dodge(index: int, count: int, *, spread: float = 0.56) -> float:
    """The offset of item ``index`` of ``count`` inside a row of height 1, top to bottom."""
    return 0.0 if count == 1 else spread * (index / (count - 1) - 0.5)


def _columns(labels: Sequence[str]) -> int:
    """As many legend columns as fit; a column is as wide as its longest label."""
    for columns in (4, 3, 2):
        # matplotlib fills legends column by column
        per = -(-len(labels) // columns)
        widths = [max(len(text) for text in labels[start : start + per]) for start in range(0, len(labels), per)]
        if sum(0.38 + 0.070 * width for width in widths) <= NARROW_IN - 0.1 and (columns < 4 or len(labels) == 4):
            return columns
    return 1
