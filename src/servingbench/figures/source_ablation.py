"""Where a suffix draft comes from: this prompt and its output, earlier responses, or both."""

from __future__ import annotations

import json
from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from servingbench.figures.data import ResultSet
from servingbench.figures.panel import category_rows, dodge, label_room_in, panel
from servingbench.figures.speedup import ratio_limits, ratio_ticks
from servingbench.figures.style import INK, note_figure

TITLE = "Where a suffix draft comes from"
SOURCES = {"local": "Local: this request", "global": "Global: earlier ones", "both": "Both"}


def source_ablation(results: ResultSet) -> Figure:
    """One row per scope, one dot and interval per source of the index."""
    arms = ablation_arms(results)
    if not arms:
        note = (
            "One source of drafts was run.\nThe ablation needs the same method with source:\n"
            "local, global and both (config/methods.yaml)."
        )
        return note_figure(title=TITLE, note=note, footer=results.footer)
    rows = [results.workload_label(scope) for scope in results.scopes]
    figure, axes = panel(
        results,
        title=TITLE,
        subtitle=f"Speedup over {results.method_label(results.baseline).lower()}, with intervals. "
        "Earlier responses are those of the same workload.",
        labels={method: SOURCES.get(source, source) for source, method in arms.items()},
        left_in=label_room_in(rows),
        rows=len(rows),
    )
    category_rows(axes, rows)
    limits = ratio_limits(results)
    axes.set_xscale("log", base=2)
    axes.set_xlim(*limits)
    axes.xaxis.set_major_locator(FixedLocator(ratio_ticks(*limits)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(1, color=INK, linewidth=0.9, zorder=1.5)
    for position, method in enumerate(arms.values()):
        look, offset = results.look(method), dodge(position, len(arms))
        for row, scope in enumerate(results.scopes):
            comparison = results.comparison(method, scope)
            if comparison is None or comparison["status"] != "ok" or comparison["speedup"] is None:
                continue
            if comparison["ci"]:
                axes.plot(
                    comparison["ci"],
                    [row + offset] * 2,
                    color=look.color,
                    linewidth=1.6,
                    zorder=2,
                    gid=f"ci/{scope}/{method}",
                )
            axes.plot(
                [comparison["speedup"]],
                [row + offset],
                color=look.color,
                marker=look.marker,
                markersize=6,
                markeredgecolor="white",
                markeredgewidth=0.7,
                zorder=3,
                gid=f"point/{scope}/{method}",
            )
    axes.set_xlabel("speedup (log scale)")
    return figure


def ablation_arms(results: ResultSet) -> dict[str, str]:
    """Source -> method, for the first family of methods that differ by ``options.source`` alone; empty without two."""
    families: dict[str, dict[str, str]] = {}
    for method in results.contenders:
        row = results.methods_table.get(method, {})
        options: Mapping[str, object] = row.get("options") or {}
        if "source" not in options:
            continue
        rest = {key: value for key, value in options.items() if key != "source"}
        family = json.dumps([row.get("kind"), row.get("draft"), rest], sort_keys=True)
        families.setdefault(family, {})[str(options["source"])] = method
    found = next((family for family in families.values() if len(family) > 1), {})
    known = [source for source in SOURCES if source in found]
    return {source: found[source] for source in [*known, *sorted(set(found) - set(known))]}
