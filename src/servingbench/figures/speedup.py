"""The main figure: speedups over the baseline, per workload and overall, with intervals and the A/A band."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from servingbench.figures.data import OVERALL, Record, ResultSet, prompt_counts
from servingbench.figures.style import BAND, INK, MUTED, RULE, WIDE_IN, frame, ink, new_figure, note_figure

TITLE = "Speedup over autoregressive decoding"
NICE_RATIOS = (0.1, 0.125, 0.2, 0.25, 0.33, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
STATUS_TEXT = {
    "not_lossless": "not lossless",
    "too_few": "too few (n = {n})",
    "failed": "failed",
    "unsupported": "not supported by {revision}",
}
VALUES_IN = 1.45  # room right of the large panel for the estimates and their intervals
CLIP = 2.0  # an interval is drawn at most this factor beyond the outermost estimate; an arrow says that it goes on


def speedup(results: ResultSet) -> Figure:
    """Dots and intervals on a ratio axis: overall in the large panel, one small panel per workload."""
    methods = results.contenders
    if not methods:
        return note_figure(
            title=TITLE,
            note="Only the baseline was run:\nthere is nothing to compare.",
            footer=results.footer,
            wide=True,
        )
    labels = [textwrap.fill(results.method_label(name), 21) for name in methods]
    rows, columns = _grid(len(results.workloads))
    height_in = 1.72 + max(2.05, rows * (0.40 + 0.145 * len(methods)), 0.38 * len(methods))
    figure = new_figure(WIDE_IN, height_in)
    left, bottom, right, top = frame(
        figure,
        title=_title(results),
        subtitle=_subtitle(results),
        footer=results.footer,
        left_in=0.25 + 0.088 * max(len(line) for label in labels for line in label.split("\n")),
        bottom_in=0.46,
        gap_in=0.33,
    )
    limits = ratio_limits(results)
    alone = len(results.scopes) == 1
    end = right - VALUES_IN / WIDE_IN if alone else left + (2.5 if columns < 4 else 1.9) / WIDE_IN
    axes = figure.add_axes((left, bottom, end - left, top - bottom))
    ratio_panel(
        axes,
        results,
        results.scopes[0],
        methods,
        limits=limits,
        ticks=ratio_ticks(*limits, most=12 if alone else 6),
        detailed=True,
    )
    axes.set_yticks(range(len(methods)), labels)
    for label, name in zip(axes.get_yticklabels(), methods, strict=True):
        label.set(color=ink(results.look(name).color), fontweight="bold")
    axes.set_xlabel(f"times as fast as {results.method_label(results.baseline).lower()} (log scale)", size=9.5)
    if not alone:
        _small_panels(figure, results, (end + (VALUES_IN + 0.25) / WIDE_IN, bottom, right, top), limits=limits)
    return figure


def _small_panels(
    figure: Figure, results: ResultSet, area: tuple[float, float, float, float], *, limits: tuple[float, float]
) -> None:
    """One panel per workload, row by row in ``area`` (left, bottom, right, top in figure fractions)."""
    rows, columns = _grid(len(results.workloads))
    left, bottom, right, top = area
    gap = 0.42 / figure.get_size_inches()[1]
    width, height = (right - left) / columns, (top - bottom - (rows - 1) * gap) / rows
    values = 0.44 / WIDE_IN
    for index, scope in enumerate(results.workloads):
        row, column = divmod(index, columns)
        corner = (left + column * width, top - row * (height + gap) - height)
        axes = figure.add_axes((*corner, width - values - 0.012, height))
        ticks = ratio_ticks(*limits, most=3)
        ratio_panel(axes, results, scope, results.contenders, limits=limits, ticks=ticks, detailed=False)
        axes.tick_params(labelbottom=index + columns >= len(results.workloads))


def ratio_panel(
    axes: Axes,
    results: ResultSet,
    scope: str,
    methods: Sequence[str],
    *,
    limits: tuple[float, float],
    ticks: Sequence[float],
    detailed: bool,
) -> None:
    """One scope: the band, the line at 1, and a row per method, top to bottom."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(*limits)
    axes.set_ylim(len(methods) - 0.45, -0.55)
    axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(length=0, labelsize=9.5 if detailed else 8.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_color(RULE)
    axes.grid(axis="x")
    band = results.aa_interval(scope)
    if band:
        axes.axvspan(*band, color=BAND, linewidth=0, zorder=0.6, gid=f"band/{scope}")
    axes.axvline(1, color=INK, linewidth=0.9, zorder=1.5)
    dense = _grid(len(results.workloads))[1] > 3
    axes.set_title(_panel_title(results, scope, dense=dense), size=12 if detailed else 7.8 if dense else 9.5, pad=6)
    for row, method in enumerate(methods):
        _row(axes, results, results.comparison(method, scope), method=method, scope=scope, y=row, detailed=detailed)


def _row(
    axes: Axes, results: ResultSet, comparison: Record | None, *, method: str, scope: str, y: float, detailed: bool
) -> None:
    look = results.look(method)
    low, high = axes.get_xlim()
    beside: dict[str, Any] = {
        "xycoords": axes.get_yaxis_transform(),
        "textcoords": "offset points",
        "va": "center",
        "annotation_clip": False,
    }
    value = comparison["speedup"] if comparison else None
    if comparison is None or comparison["status"] != "ok" or value is None:
        text = (
            STATUS_TEXT.get(comparison["status"], "no comparison").format(
                n=comparison["n"], revision=results.key["revision"]
            )
            if comparison
            else "not run"
        )
        roomy = math.log(high) > -math.log(low)  # the longer side of the line at 1
        axes.annotate(
            text,
            (1, y),
            xytext=(6 if roomy else -6, 0),
            textcoords="offset points",
            va="center",
            style="italic",
            ha="left" if roomy else "right",
            size=9 if detailed else 7.5,
            color=MUTED,
            annotation_clip=False,
        )
        return
    size = 9 if detailed else 6
    if comparison["ci"]:
        start, end = max(comparison["ci"][0], low), min(comparison["ci"][1], high)
        axes.plot(
            [start, end],
            [y, y],
            color=look.color,
            linewidth=3 if detailed else 2,
            zorder=2.5,
            gid=f"ci/{scope}/{method}",
        )
        for edge, inside, marker in ((low, comparison["ci"][0] >= low, "<"), (high, comparison["ci"][1] <= high, ">")):
            if not inside:
                axes.plot([edge], [y], color=look.color, marker=marker, markersize=size - 1, clip_on=False, zorder=2.6)
    axes.plot(
        [value],
        [y],
        color=look.color,
        marker=look.marker,
        markersize=size,
        markeredgecolor="white",
        markeredgewidth=0.8,
        zorder=3,
        gid=f"point/{scope}/{method}",
    )
    text = f"{value:.2f}"
    axes.annotate(
        text,
        (1, y),
        xytext=(8 if detailed else 4, 0),
        ha="left",
        size=12 if detailed else 8.5,
        weight="bold" if detailed else "normal",
        color=ink(look.color),
        **beside,
    )
    if detailed and comparison["ci"]:
        text = f"[{comparison['ci'][0]:.2f}, {comparison['ci'][1]:.2f}]"
        axes.annotate(text, (1, y), xytext=(44, 0), ha="left", size=9, color=MUTED, **beside)


def _panel_title(results: ResultSet, scope: str, *, dense: bool) -> str:
    """The scope's label, cut to its panel; with its n where the workloads differ in it (else the footer says it)."""
    label, room = results.workload_label(scope), 16 if dense else 26
    if len(results.scopes) == 1:
        return label
    suffix = ""
    if scope != OVERALL and " " in prompt_counts(results):
        counts = [row["n"] for name in results.contenders if (row := results.comparison(name, scope))]
        suffix = f", n = {max(counts, default=0)}"
    return textwrap.shorten(label, room - len(suffix), placeholder="…") + suffix


def ratio_limits(results: ResultSet, *, scope: str | None = None, methods: Sequence[str] = ()) -> tuple[float, float]:
    """The limits of a ratio axis: for all panels together, or for one scope and some methods."""
    rows = [
        row
        for row in results.statistics["comparisons"]
        if row["speedup"] and row["status"] == "ok"
        if scope in (None, row["scope"]) and (not methods or row["method"] in methods)
    ]
    points = [row["speedup"] for row in rows] + [1.0]
    ends = [end for row in rows if row["ci"] for end in row["ci"]]
    low = max(min(points + ends), min(points) / CLIP) / 1.06
    high = min(max(points + ends), max(points) * CLIP) * 1.06
    return min(low, 0.9), max(high, 1.6)


def ratio_ticks(low: float, high: float, *, most: int = 6) -> list[float]:
    """At most ``most`` round ratios in [low, high], 1 among them, about evenly spaced on a log axis."""
    inside = [ratio for ratio in NICE_RATIOS if low <= ratio <= high]
    least = math.log(high / low) / most
    kept = [1.0]
    for ratio in sorted(
        (r for r in inside if r != 1.0), key=lambda r: (not math.log2(r).is_integer(), abs(math.log(r)))
    ):
        if all(abs(math.log(ratio / other)) >= least for other in kept):
            kept.append(ratio)
    return sorted(kept)


def _grid(workloads: int) -> tuple[int, int]:
    """Rows and columns of the small panels."""
    columns = workloads if workloads <= 3 else min(5, math.ceil(workloads / 2))
    return math.ceil(workloads / columns), columns


def _title(results: ResultSet) -> str:
    return f"Speedup over {results.method_label(results.baseline).lower()} decoding"


def _subtitle(results: ResultSet) -> list[str]:
    settings = results.statistics["settings"]
    percent = f"{100 * settings['confidence']:g}%"
    text = f"Dot: geometric mean over prompts, paired. Bar: {percent} {settings['interval']} interval."
    if results.aa_interval(results.scopes[0]):
        baseline = results.method_label(results.baseline).lower()
        text += f" Grey band: the same interval for {baseline} against itself (A/A): nothing inside it is resolved."
    else:
        why = "the A/A arm has no interval" if results.aa else "no A/A arm was run"
        text += f" How small a difference can be resolved is not known: {why}."
    primary = settings["primary"]
    overall = OVERALL if len(results.workloads) > 1 else results.workloads[0]
    if results.comparison(primary, overall):
        text += f" Primary contrast, declared beforehand: {results.method_label(primary)}."
    return textwrap.wrap(text, 150)
