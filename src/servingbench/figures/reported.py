"""Figures of published numbers, every one labelled as reported and not measured here."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from servingbench.figures.data import ResultSet
from servingbench.figures.panel import category_rows, dodge, label_room_in, legend, panel
from servingbench.figures.reported_numbers import METHOD_LABELS, SOURCE_LABELS, ReportedNumber, select
from servingbench.figures.speedup import ratio_ticks
from servingbench.figures.style import INK, SIDE_IN, WIDE_IN, Look, frame, look, new_figure, note_figure

TITLE = "Reported speedups (not measured here)"
ABLATION_TITLE = "Reported: where drafts come from"
REPORTED_HEIGHT_IN = 4.4
NOTHING = "config/reported holds no such numbers."
SOURCE_LOOKS = {"local": "suffix_speculative", "global": "suffix_global", "both": "suffix_both"}


def reported_speedup(results: ResultSet) -> Figure:
    """One panel per published experiment that gives speedups over autoregressive decoding."""
    numbers = select(results.reported, quantity="speedup", reference="autoregressive")
    experiments = list(dict.fromkeys(number.experiment for number in numbers))
    if not experiments:
        return note_figure(title=TITLE, note=NOTHING, footer=results.footer, wide=True)
    methods = [name for name in METHOD_LABELS if any(number.method == name for number in numbers)]
    figure = new_figure(WIDE_IN, REPORTED_HEIGHT_IN)
    left, bottom, right, top = frame(
        figure,
        title=TITLE,
        subtitle="Published speedups over autoregressive decoding, as printed; "
        "their raw records are not public, so no intervals.",
        footer=_sources(numbers, columns=160),
        left_in=0.1,
        bottom_in=0.5,
        gap_in=0.62,
    )
    ends = [number.value for number in numbers]
    limits = (min(0.9, *ends) / 1.08, max(ends) * 1.08)
    width = (right - left) / len(experiments)
    for index, experiment in enumerate(experiments):
        own = select(numbers, experiment=experiment)
        labels = list(dict.fromkeys(number.workload_label for number in own))
        room = label_room_in(labels) / WIDE_IN
        axes = figure.add_axes((left + index * width + room, bottom, width - room - 0.02, top - bottom))
        _dots(axes, own, labels=labels, methods=methods, limits=limits)
        first = own[0]
        per = f"{first.n_prompts} prompts per task" if first.n_prompts else ""
        axes.set_title(
            ", ".join(filter(None, (f"{first.model} on {first.gpu}, {first.date}", per))),
            pad=8,
            x=-room / (width - room - 0.02),
            ha="left",
        )
    legend(
        figure,
        {name: METHOD_LABELS[name] for name in methods},
        {name: look(name) for name in methods},
        left_in=SIDE_IN,
        y=top + 0.44 / REPORTED_HEIGHT_IN,
        columns=len(methods),
    )
    return figure


def _dots(
    axes: Axes,
    numbers: Sequence[ReportedNumber],
    *,
    labels: Sequence[str],
    methods: Sequence[str],
    limits: tuple[float, float],
) -> None:
    category_rows(axes, labels)
    axes.tick_params(length=0)
    axes.set_xscale("log", base=2)
    axes.set_xlim(*limits)
    axes.xaxis.set_major_locator(FixedLocator(ratio_ticks(*limits)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(1, color=INK, linewidth=0.9, zorder=1.5)
    axes.set_xlabel("reported speedup (log scale)")
    present = [name for name in methods if any(number.method == name for number in numbers)]
    for number in numbers:
        style = look(number.method)
        y = labels.index(number.workload_label) + dodge(present.index(number.method), len(present))
        axes.plot(
            [number.value],
            [y],
            color=style.color,
            marker=style.marker,
            markersize=7,
            markeredgecolor="white",
            markeredgewidth=0.7,
            zorder=3,
            gid=f"point/{number.experiment}/{number.workload}/{number.method}",
        )


def reported_source_ablation(results: ResultSet) -> Figure:
    """Published throughput of each index source, relative to the local one."""
    numbers = [number for number in select(results.reported, quantity="throughput") if number.index_source]
    if not numbers:
        return note_figure(title=ABLATION_TITLE, note=NOTHING, footer=results.footer)
    sources = [name for name in SOURCE_LABELS if any(number.index_source == name for number in numbers)]
    labels = list(dict.fromkeys(number.workload_label for number in numbers))
    first = numbers[0]
    figure, axes = panel(
        results,
        title=ABLATION_TITLE,
        subtitle="Published tok/s of suffix decoding relative to the local index. "
        f"{first.model} on {first.gpu}, {first.date}, {first.n_prompts} prompts.",
        labels={name: SOURCE_LABELS[name] for name in sources},
        looks={name: _source_look(name) for name in sources},
        footer=_sources(numbers, columns=74),
        left_in=label_room_in(labels),
        rows=len(labels),
    )
    category_rows(axes, labels)
    axes.axvline(1, color=INK, linewidth=0.9, zorder=1.5)
    for number in numbers:
        local = select(numbers, workload=number.workload, index_source="local")[0]
        style, row = _source_look(number.index_source), labels.index(number.workload_label)
        axes.plot(
            [number.value / local.value],
            [row + dodge(sources.index(number.index_source), len(sources), spread=0.4)],
            color=style.color,
            marker=style.marker,
            markersize=7,
            markeredgecolor="white",
            markeredgewidth=0.7,
            zorder=3,
            gid=f"point/{number.workload}/{number.index_source}",
        )
    axes.set_xlim(left=0)
    axes.margins(x=0.08)
    axes.set_xlabel("throughput relative to local")
    return figure


def _source_look(source: str) -> Look:
    return look(SOURCE_LOOKS[source])


def _sources(numbers: Sequence[ReportedNumber], *, columns: int) -> str:
    sources = "; ".join(dict.fromkeys(number.source for number in numbers))
    return textwrap.fill(f"Reported, not measured by this pipeline. Source: {sources}.", columns)
