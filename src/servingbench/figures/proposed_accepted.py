"""Proposed against accepted draft tokens per step: how much of the verified work is kept."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from servingbench.figures.data import ResultSet
from servingbench.figures.panel import panel
from servingbench.figures.style import MUTED, RULE, note_figure

TITLE = "Proposed and accepted per step"
RATES = (1.0, 0.5, 0.25, 0.1)


def proposed_accepted(results: ResultSet) -> Figure:
    """Small dots: one per workload; large: the method's mean over workloads; rays of equal acceptance rate."""
    points = {
        (workload, method): (proposed, accepted)
        for workload in results.workloads
        for method in results.contenders
        if (proposed := results.metric(workload, method, "proposed_per_step")) is not None
        and (accepted := results.metric(workload, method, "accepted_per_step")) is not None
    }
    methods = [name for name in results.contenders if any(method == name for _, method in points)]
    if not methods:
        return note_figure(title=TITLE, note="No method proposed a token.", footer=results.footer)
    many = len(results.workloads) > 1
    reading = "Large: mean over workloads; small: each workload. " if many else ""
    figure, axes = panel(
        results,
        title=TITLE,
        subtitle=f"Steps that carried a draft. {reading}Grey rays: share of the proposed tokens that was accepted.",
        labels={name: results.method_label(name) for name in methods},
        left_in=0.55,
    )
    right = 1.1 * max(proposed for proposed, _ in points.values())
    top = 1.15 * max(max(accepted for _, accepted in points.values()), 0.2)
    axes.set_xlim(0, right)
    axes.set_ylim(0, top)
    for rate in RATES:
        _ray(axes, rate, right, top)
    for method in methods:
        look = results.look(method)
        own = [(workload, points[workload, method]) for workload in results.workloads if (workload, method) in points]
        for workload, (x, y) in own if many else ():
            axes.plot(
                [x],
                [y],
                color=look.color,
                marker=look.marker,
                markersize=4,
                alpha=0.55,
                markeredgewidth=0,
                zorder=2,
                gid=f"point/{workload}/{method}",
            )
        x_mean, y_mean = (math.fsum(point[axis] for _, point in own) / len(own) for axis in (0, 1))
        axes.plot(
            [x_mean],
            [y_mean],
            color=look.color,
            marker=look.marker,
            markersize=9.5,
            markeredgecolor="white",
            markeredgewidth=0.9,
            zorder=3,
            linestyle="",
            gid=f"mean/{method}",
        )
    axes.set_xlabel("proposed tokens per step")
    axes.set_ylabel("accepted per step", size=9)
    return figure


def _ray(axes: Axes, rate: float, right: float, top: float) -> None:
    """A ray of one acceptance rate, its label near the end, inside the axes."""
    end = min(right, top / rate)
    axes.plot([0, end], [0, rate * end], color=RULE, linewidth=0.9, zorder=1)
    axes.text(
        0.93 * end,
        0.93 * rate * end,
        f"{100 * rate:g}%",
        size=7.5,
        color=MUTED,
        ha="center",
        va="center",
        zorder=1.2,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )
