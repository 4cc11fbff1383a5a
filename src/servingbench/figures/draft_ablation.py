"""From the published draft tree to ours, one step at a time: what each step buys in tokens and in time."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from servingbench.figures.data import Record, ResultSet, geometric_mean
from servingbench.figures.speedup import ratio_limits, ratio_panel, ratio_ticks
from servingbench.figures.style import INK, MUTED, RULE, WIDE_IN, frame, ink, new_figure, note_figure

TITLE = "From the published draft tree to ours, step by step"
STEPS = {
    "tree_published": "Published tree",
    "tree_longest": "+ more nodes",
    "tree_blended": "+ all contexts blended",
    "tree_table": "+ static table",
    "tree_speculative": "+ size by cost",
}
ROW_IN = 0.42
LABELS_IN, MEANS_IN, RATIOS_IN, GAINS_IN = 2.15, 0.62, 1.55, 1.35  # room for the texts left and right of the panels


def draft_ablation(results: ResultSet) -> Figure:
    """One row per step: tokens per forward, the speedup over the baseline, and over the row above."""
    steps = [name for name in STEPS if name in results.contenders]
    if len(steps) < 2:
        note = (
            "The steps were not run. They are the methods of the suite draft-ablation:\n"
            "snakemake --configfile config/suites/draft-ablation.yaml figures/all"
        )
        return note_figure(title=TITLE, note=note, footer=results.footer, wide=True)
    figure = new_figure(WIDE_IN, 2.1 + ROW_IN * len(steps))
    left, bottom, right, top = frame(
        figure,
        title=TITLE,
        subtitle=_subtitle(results),
        footer=results.footer,
        left_in=LABELS_IN,
        bottom_in=0.46,
        gap_in=0.36,
    )
    width = (right - left) - (MEANS_IN + RATIOS_IN + GAINS_IN) / WIDE_IN
    tokens = figure.add_axes((left, bottom, 0.5 * width, top - bottom))
    _tokens_panel(tokens, results, steps)
    ratios = figure.add_axes((left + 0.5 * width + MEANS_IN / WIDE_IN, bottom, 0.5 * width, top - bottom))
    scope = results.scopes[0]
    limits = ratio_limits(results, scope=scope, methods=steps)
    ratio_panel(ratios, results, scope, steps, limits=limits, ticks=ratio_ticks(*limits, most=6), detailed=True)
    baseline = results.method_label(results.baseline).lower()
    ratios.set_title(f"Speedup over {baseline}", size=10.5)
    ratios.set_xlabel("times as fast (log scale)", size=9.5)
    _gains(ratios, results, steps)
    return figure


def _tokens_panel(axes: Axes, results: ResultSet, steps: Sequence[str]) -> None:
    """Small dots for the workloads, a large one for their geometric mean, and a line that joins the means."""
    values = {
        step: {name: results.metric(name, step, "tokens_per_forward") for name in results.workloads} for step in steps
    }
    means = {step: geometric_mean(values[step].values()) for step in steps}
    known = [value for row in values.values() for value in row.values() if value is not None]
    axes.set_xlim(min(0.95, *known) if known else 0.95, 1.04 * max([1.5, *known]))
    axes.set_ylim(len(steps) - 0.45, -0.55)
    axes.set_title("Tokens per forward", size=10.5, pad=6)
    if len(results.workloads) > 1:
        axes.set_xlabel("small: each workload, large: geometric mean", size=9.5)
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_color(RULE)
    axes.grid(axis="x")
    axes.axvline(1, color=INK, linewidth=0.9, zorder=1.5)
    joined = [(mean, row) for row, mean in enumerate(means.values()) if mean is not None]
    axes.plot([mean for mean, _ in joined], [row for _, row in joined], color=MUTED, linewidth=1, alpha=0.6, zorder=1.8)
    for row, step in enumerate(steps):
        look, mean = results.look(step), means[step]
        dot: dict[str, Any] = {"color": look.color, "marker": look.marker, "markeredgecolor": "white", "linestyle": ""}
        for workload, value in values[step].items():
            if value is not None:
                gid = f"tokens/{workload}/{step}"
                axes.plot([value], [row], markersize=5, alpha=0.55, markeredgewidth=0.4, zorder=2, gid=gid, **dot)
        if mean is not None:
            axes.plot([mean], [row], markersize=10, markeredgewidth=0.8, zorder=3, gid=f"mean/{step}", **dot)
            _beside(axes, f"{mean:.2f}", row, points=8, strong=ink(look.color))
        _label(axes, STEPS[step], _nodes(results, step), row, color=ink(look.color))


def _gains(axes: Axes, results: ResultSet, steps: Sequence[str]) -> None:
    """A column of texts right of the speedups: each step against the row above, and the last against the first."""
    points = 72 * RATIOS_IN + 4
    pairs: list[tuple[str, str, float]] = list(zip(steps[1:], steps, range(1, len(steps)), strict=False))
    if len(steps) > 2:
        pairs.append((steps[-1], steps[0], len(steps) + 0.1))  # below the rows
    found = [(contrast, row) for step, other, row in pairs if (contrast := _contrast(results, step, other))]
    for contrast, row in found:
        _beside(axes, f"{contrast['speedup']:.2f}", row, points=points, strong=INK)
        if contrast["ci"]:
            interval = f"[{contrast['ci'][0]:.2f}, {contrast['ci'][1]:.2f}]"
            _beside(axes, interval, row, points=points + 36)
        if row > len(steps):
            _beside(axes, "all steps", row, points=points - 52)
    if found:
        _beside(axes, "Step's gain", -0.83, points=points, strong=INK, size=10.5)


def _contrast(results: ResultSet, method: str, reference: str) -> Record | None:
    """``method`` against ``reference`` over all workloads; None where it was not compared or has no value."""
    wanted = (method, reference, results.scopes[0], "ok")
    rows = results.statistics["contrasts"]
    return next((row for row in rows if (row["method"], row["reference"], row["scope"], row["status"]) == wanted), None)


def _beside(axes: Axes, text: str, row: float, *, points: float, strong: str | None = None, size: float = 12) -> None:
    """A text right of the axes, at a row's height: an estimate in its colour, or muted."""
    axes.annotate(
        text,
        (1, row),
        xytext=(points, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        va="center",
        size=size if strong else 9,
        weight="bold" if strong else "normal",
        color=strong or MUTED,
        annotation_clip=False,
    )


def _label(axes: Axes, step: str, nodes: str, row: int, *, color: str) -> None:
    """Left of the axes: what the step adds, and below it the size of a draft."""
    for text, points, weight, size, ink_color in ((step, 6, "bold", 10.5, color), (nodes, -8, "normal", 9, MUTED)):
        axes.annotate(
            text,
            (0, row),
            xytext=(-10, points),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="center",
            weight=weight,
            size=size,
            color=ink_color,
            annotation_clip=False,
        )


def _nodes(results: ResultSet, step: str) -> str:
    """How many nodes a draft of this step has, by its row in the methods table."""
    options = results.methods_table.get(step, {}).get("options") or {}
    nodes = options.get("num_tokens")
    if nodes == "cost":
        nodes = f"up to {options['max_tokens']}" if "max_tokens" in options else None
    return f"{nodes} nodes" if nodes else ""


def _subtitle(results: ResultSet) -> list[str]:
    settings = results.statistics["settings"]
    percent = f"{100 * settings['confidence']:g}%"
    text = (
        "Each row adds one step to the row above; a step's gain is its speed over that row's. Ratios: geometric mean "
        f"over prompts, paired, with their {percent} {settings['interval']} interval."
    )
    if results.aa_interval(results.scopes[0]):
        text += " Grey band: the baseline against itself (A/A): nothing inside it is resolved."
    return textwrap.wrap(text, 150)
