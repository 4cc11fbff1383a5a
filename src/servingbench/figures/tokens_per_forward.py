"""Tokens per forward of the target: what a draft buys before its own cost is counted."""

from __future__ import annotations

from matplotlib.figure import Figure

from servingbench.figures.data import ResultSet
from servingbench.figures.panel import category_rows, dodge, label_room_in, panel
from servingbench.figures.style import INK, note_figure

TITLE = "Tokens per forward of the target"


def tokens_per_forward(results: ResultSet) -> Figure:
    """One row per workload, one dot per method; autoregressive decoding is exactly 1."""
    values = {
        (workload, method): value
        for workload in results.workloads
        for method in results.contenders
        if (value := results.metric(workload, method, "tokens_per_forward")) is not None
    }
    methods = [name for name in results.contenders if any(method == name for _, method in values)]
    if not methods:
        return note_figure(title=TITLE, note="No method with a draft\nhas counted forwards.", footer=results.footer)
    rows = [results.workload_label(name) for name in results.workloads]
    figure, axes = panel(
        results,
        title=TITLE,
        subtitle="All new tokens / all target forwards, prefill included. Line: autoregressive, 1 by definition.",
        labels={name: results.method_label(name) for name in methods},
        left_in=label_room_in(rows),
        rows=len(rows),
    )
    category_rows(axes, rows)
    axes.axvline(1, color=INK, linewidth=0.9, zorder=1.5)
    for position, method in enumerate(methods):
        look = results.look(method)
        offset = dodge(position, len(methods))
        for row, workload in enumerate(results.workloads):
            value = values.get((workload, method))
            if value is None:
                continue
            axes.plot([1, value], [row + offset] * 2, color=look.color, linewidth=1, alpha=0.45, zorder=2)
            axes.plot(
                [value],
                [row + offset],
                color=look.color,
                marker=look.marker,
                markersize=6.5,
                markeredgecolor="white",
                markeredgewidth=0.7,
                zorder=3,
                gid=f"point/{workload}/{method}",
            )
    axes.set_xlim(min(0.95, *values.values()), 1.04 * max(1.25, *values.values()))
    axes.set_xlabel("tokens per forward")
    return figure
