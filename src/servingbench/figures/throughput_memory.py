"""Throughput against peak memory: what a method's speed costs in room."""

from __future__ import annotations

from matplotlib.figure import Figure

from servingbench.figures.data import ResultSet, geometric_mean, mean
from servingbench.figures.panel import panel
from servingbench.figures.style import note_figure

TITLE = "Throughput against peak memory"
MIB_PER_GIB = 1024
GIB_FROM_MIB = 4 * MIB_PER_GIB  # axes that reach further are in GiB


def throughput_memory(results: ResultSet) -> Figure:
    """Small dots: one per workload; large: geometric mean of tok/s over the mean of peak memory."""
    points = {
        (workload, method): (memory, rate)
        for workload in results.workloads
        for method in (results.baseline, *results.contenders)
        if (memory := results.metric(workload, method, "peak_memory_mib")) is not None
        and (rate := results.metric(workload, method, "overall_tokens_per_second")) is not None
    }
    methods = [name for name in (results.baseline, *results.contenders) if any(method == name for _, method in points)]
    if not methods:
        return note_figure(title=TITLE, note="Peak memory was not recorded on this machine.", footer=results.footer)
    many = len(results.workloads) > 1
    reading = " Large: mean over workloads; small: each workload." if many else ""
    figure, axes = panel(
        results,
        title=TITLE,
        subtitle=f"All new tokens / all wall time; the highest memory of the run.{reading}",
        labels={name: results.method_label(name) for name in methods},
        left_in=0.6,
    )
    large = max(memory for memory, _ in points.values()) >= GIB_FROM_MIB
    scale = MIB_PER_GIB if large else 1
    for method in methods:
        look = results.look(method)
        own = [(workload, points[workload, method]) for workload in results.workloads if (workload, method) in points]
        for workload, (memory, rate) in own if many else ():
            axes.plot(
                [memory / scale],
                [rate],
                color=look.color,
                marker=look.marker,
                markersize=4,
                alpha=0.55,
                markeredgewidth=0,
                zorder=2,
                gid=f"point/{workload}/{method}",
            )
        memory_mean, rate_mean = mean(memory for _, (memory, _) in own), geometric_mean(rate for _, (_, rate) in own)
        if memory_mean is not None and rate_mean is not None:
            axes.plot(
                [memory_mean / scale],
                [rate_mean],
                color=look.color,
                marker=look.marker,
                markersize=9.5,
                markeredgecolor="white",
                markeredgewidth=0.9,
                zorder=3,
                gid=f"mean/{method}",
            )
    axes.margins(0.12)
    axes.set_ylim(bottom=0)
    axes.grid()
    axes.set_xlabel("peak memory (GiB)" if large else "peak memory (MiB)")
    axes.set_ylabel("tokens per second", size=9)
    return figure
