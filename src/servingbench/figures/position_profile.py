"""Acceptance by position in the draft, pooled over workloads."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from servingbench.figures.data import ResultSet
from servingbench.figures.panel import panel
from servingbench.figures.style import note_figure

TITLE = "Acceptance by position in the draft"
LEAST = 10  # drafts; a share of fewer says next to nothing


def position_profile(results: ResultSet) -> Figure:
    """r_k = #(A >= k) / #(depth >= k), pooled over workloads, one line per method."""
    profiles = {name: profile for name in results.contenders if (profile := pooled_reach(results, name))}
    if not profiles:
        note = f"No method proposed {LEAST} drafts or more."
        return note_figure(title=TITLE, note=note, footer=results.footer)
    figure, axes = panel(
        results,
        title=TITLE,
        subtitle="Share of drafts at least k deep whose first k tokens were all accepted; "
        f"positions with {LEAST}+ drafts.",
        labels={name: results.method_label(name) for name in profiles},
        left_in=0.66,
    )
    for name, profile in profiles.items():
        look = results.look(name)
        axes.plot(
            range(1, len(profile) + 1),
            profile,
            color=look.color,
            marker=look.marker,
            markersize=5.5,
            linewidth=1.6,
            markeredgecolor="white",
            markeredgewidth=0.6,
            gid=f"line/{name}",
            clip_on=False,
            zorder=3,
        )
    axes.set_ylim(0, 1)
    axes.set_xlim(0.5, max(len(profile) for profile in profiles.values()) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("position k in the draft")
    axes.set_ylabel("accepted up to k", size=9)
    return figure


def pooled_reach(results: ResultSet, method: str) -> list[float]:
    """r_k over all workloads: each one's r_k weighted by its #(depth >= k), up to the first k with too few drafts."""
    accepted: list[float] = []
    drafts: list[int] = []
    for workload in results.workloads:
        summary = results.summaries.get((workload, method))
        profile = summary["metrics"]["position_profile"] if summary else {"reach": [], "count": []}
        for k, (reach, count) in enumerate(zip(profile["reach"], profile["count"], strict=True)):
            if k == len(drafts):
                accepted.append(0.0)
                drafts.append(0)
            accepted[k] += reach * count
            drafts[k] += count
    few = next((k for k, count in enumerate(drafts) if count < LEAST), len(drafts))
    return [accepted[k] / drafts[k] for k in range(few)]
