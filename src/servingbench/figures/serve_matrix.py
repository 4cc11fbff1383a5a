"""The serve matrix as a figure: one line per row, one mark per status, and what was measured of those that serve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from servingbench.figures.panel import category_rows, label_room_in
from servingbench.figures.style import MUTED, WIDE_IN, Look, frame, new_figure, note_figure, style

Summary = Mapping[str, Any]
TITLE = "The serve matrix"
# Shape and colour both tell a status, so that no distinction rests on hue alone.
STATUS_LOOKS = {
    "ok": Look("#009E73", "o"),
    "degraded": Look("#E69F00", "D"),
    "failed": Look("#D55E00", "X"),
    "abandoned": Look("#7B4FA3", "s"),
    "predicted_fail": Look("#5B636C", "v"),
}
LEVEL_COLORS = ("#9CC9E8", "#3E95CD", "#0072B2", "#004A75", "#002B45")
ROW_IN, AXIS_IN = 0.34, 0.55


def serve_matrix(summaries: Sequence[Summary], labels_by_row: Mapping[str, str]) -> Figure:
    """Draw the rows in the order given."""
    if not summaries:
        return note_figure(title=TITLE, note="No row of the serve matrix was run.", footer="", wide=True)
    levels = sorted({level["concurrency"] for summary in summaries for level in summary["load"]})
    labels = [labels_by_row.get(summary["row_id"], summary["row_id"]) for summary in summaries]
    room = label_room_in(labels)
    with style():
        height = ROW_IN * len(labels) + 1.55 + AXIS_IN
        figure = new_figure(WIDE_IN, height)
        left, bottom, right, top = frame(
            figure,
            title=TITLE,
            subtitle="Status of every row, and of those that serve: accuracy ± standard error, and speed at each "
            "number of requests at once (medians for TTFT and TPOT).",
            footer=_footer(summaries),
            left_in=room,
            bottom_in=AXIS_IN,
            gap_in=0.5,
        )
        panels: list[tuple[str, float, Callable[[Axes], None] | None]] = [
            ("", 1.3, lambda axes: _status(axes, summaries)),
            ("accuracy", 1.0, lambda axes: _accuracy(axes, summaries)),
            ("tok/s", 1.0, lambda axes: _levels(axes, summaries, levels, lambda level: level["tok_s"])),
            ("TTFT, ms", 1.0, lambda axes: _levels(axes, summaries, levels, lambda level: level["ttft_ms"]["p50"])),
            ("TPOT, ms", 1.0, lambda axes: _levels(axes, summaries, levels, lambda level: level["tpot_ms"]["p50"])),
            ("ready, s", 0.8, lambda axes: _ready(axes, summaries)),
        ]
        gap = 0.012
        unit = (right - left - gap * (len(panels) - 1)) / sum(width for _, width, _ in panels)
        x = left
        for index, (name, width, draw) in enumerate(panels):
            axes = figure.add_axes((x, bottom, unit * width, top - bottom))
            category_rows(axes, labels if index == 0 else [""] * len(labels))
            axes.tick_params(length=0)
            axes.set_xlabel(name)
            assert draw
            draw(axes)
            x += unit * width + gap
        _legend(figure, summaries, levels, y=top + 0.42 / height)
    return figure


def _status(axes: Axes, summaries: Sequence[Summary]) -> None:
    """One mark per row, and the class of a failure behind it."""
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    for row, summary in enumerate(summaries):
        look = STATUS_LOOKS[summary["status"]]
        axes.plot([0.07], [row], color=look.color, marker=look.marker, markersize=9, gid=f"status/{summary['row_id']}")
        said = (summary["failure"] or {}).get("signature") or ""
        axes.text(0.16, row, said, va="center", ha="left", size=7.2, color=MUTED, clip_on=False)


def _accuracy(axes: Axes, summaries: Sequence[Summary]) -> None:
    axes.set_xlim(-0.05, 1.05)
    axes.set_xticks([0, 0.5, 1])
    for row, summary in enumerate(summaries):
        evaluation = summary["eval"] or {}
        if evaluation.get("accuracy") is not None:
            look = STATUS_LOOKS[summary["status"]]
            error = evaluation["stderr"] or 0
            axes.errorbar(
                [evaluation["accuracy"]], [row], xerr=[error], color=look.color, marker=look.marker, capsize=2
            )


def _levels(
    axes: Axes, summaries: Sequence[Summary], levels: Sequence[int], value: Callable[[Mapping[str, Any]], float | None]
) -> None:
    axes.set_xscale("log")
    drawn = False
    for row, summary in enumerate(summaries):
        for level in summary["load"]:
            found = value(level)
            if found:
                drawn = True
                color = _level_color(levels, level["concurrency"])
                axes.plot([found], [row], color=color, marker="o", markersize=6.5, markeredgecolor="white")
    if not drawn:
        axes.set_xscale("linear")
        axes.set_xticks([])
    else:
        axes.margins(x=0.12)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")


def _ready(axes: Axes, summaries: Sequence[Summary]) -> None:
    for row, summary in enumerate(summaries):
        if summary["launch"]["ready_s"] is not None:
            look = STATUS_LOOKS[summary["status"]]
            axes.plot([summary["launch"]["ready_s"]], [row], color=look.color, marker=look.marker, markersize=6)
    axes.set_xlim(left=0)
    axes.margins(x=0.12)


def _level_color(levels: Sequence[int], concurrency: int) -> str:
    return LEVEL_COLORS[min(levels.index(concurrency), len(LEVEL_COLORS) - 1)]


def _legend(figure: Figure, summaries: Sequence[Summary], levels: Sequence[int], *, y: float) -> None:
    present = [name for name in STATUS_LOOKS if any(summary["status"] == name for summary in summaries)]
    marks = [
        Line2D([], [], linestyle="", marker=STATUS_LOOKS[name].marker, color=STATUS_LOOKS[name].color, markersize=8)
        for name in present
    ]
    dots = [
        Line2D([], [], linestyle="", marker="o", color=_level_color(levels, level), markersize=7) for level in levels
    ]
    names = [name.replace("_", " ") for name in present] + [f"{level} at once" for level in levels]
    figure.legend(
        [*marks, *dots], names, loc="upper left", bbox_to_anchor=(0.0, y), ncols=len(names), frameon=False,
        fontsize=9, handletextpad=0.1, columnspacing=1.2,
    )  # fmt: skip


def _footer(summaries: Sequence[Summary]) -> str:
    key = summaries[0]["key"]
    engines = dict.fromkeys(f"{one['engine']['name']} {one['engine']['version']}" for one in summaries)
    problems = {one["eval"]["completed"] for one in summaries if one["eval"] and one["eval"].get("completed")}
    counts = " to ".join(map(str, sorted({min(problems), max(problems)}))) if problems else "no"
    return (
        f"{', '.join(engines)} on {key['gpu']} · {counts} problems per row (limit {key['limit']}, seed {key['seed']})"
    )
