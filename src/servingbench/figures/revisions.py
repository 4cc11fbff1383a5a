"""What upgrading transformers did, in one picture: baseline, tokens per forward, speedups, and a verdict on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from servingbench.figures.style import INK, MUTED, RULE, Look, frame, ink, look, new_figure

TITLE = "What another transformers revision does"
VERDICTS = {"equivalent": "#1A7F4B", "regression": "#B42318", "improvement": "#0B5CAD", "undecided": MUTED}
WIDTH_IN, PANELS_IN, ROW_IN, LABEL_IN = 11.0, 2.7, 0.3, 2.0
PANELS = (
    ("tokens_per_second", "Baseline, tokens per second"),
    ("tokens_per_forward", "Tokens per forward"),
    ("speedup", "Speedup over its own baseline"),
)
Row = Mapping[str, Any]


def revisions(comparison: Row, *, methods: Mapping[str, Row], revisions_table: Mapping[str, Row]) -> Figure:
    """Three panels over the revisions, and beneath them the verdict on every pair.

    Args:
        comparison: a record as in config/schemas/across_revisions.schema.yaml.
        methods: rows of config/methods.yaml, for labels.
        revisions_table: rows of config/revisions.yaml, likewise.
    """
    names = list(dict.fromkeys(row["method"] for row in comparison["reached"]))
    pairs = list(dict.fromkeys((row["old"], row["new"]) for row in comparison["changes"]))
    labels = {name: str(revisions_table.get(name, {}).get("label", name)) for name in comparison["revisions"]}
    labels |= {name: f"{labels[name]} (modified)" for name in comparison["modified"]}
    table_in = ROW_IN * (len(names) + 1.0)
    figure = new_figure(WIDTH_IN, PANELS_IN + table_in + 2.0)
    low, high = comparison["margins"]
    subtitle = [
        "Every revision ran the same prompts, one revision after the other. Bars: 95% intervals. Beneath: new over old",
        f"with its {comparison['confidence']:.0%} interval, equivalent inside {low:g} to {high:g}. "
        "A baseline's ratio holds what the machine did between the runs.",
    ]
    key = comparison["key"]
    excluded = sorted({reason for row in comparison["changes"] for reason in row["excluded"]})
    footer = f"{key['model']} on {key['gpu']} · seed {key['seed']}, limit {key['limit']}"
    footer += f" · left out where {'; '.join(excluded)}" if excluded else ""
    left, bottom, right, top = frame(
        figure, title=TITLE, subtitle=subtitle, footer=footer, left_in=0.65, right_in=0.25, bottom_in=table_in + 0.75
    )
    room, gap = right - left, 0.06
    width = (room - 2 * gap) / 3
    for place, (metric, title) in enumerate(PANELS):
        axes = figure.add_axes((left + place * (width + gap), bottom, width, top - bottom - 0.03))
        shown = [comparison["baseline"]] if metric == "tokens_per_second" else names
        shown = [name for name in shown if metric != "speedup" or name != comparison["baseline"]]
        _panel(axes, comparison, shown, metric=metric, title=title, labels=labels, methods=methods)
    _verdicts(figure, comparison, names, pairs, labels=labels, methods=methods, height_in=table_in)
    return figure


def _look(name: str, methods: Mapping[str, Row]) -> Look:
    return look(name, methods)


def _panel(
    axes: Axes,
    comparison: Row,
    names: Sequence[str],
    *,
    metric: str,
    title: str,
    labels: Mapping[str, str],
    methods: Mapping[str, Row],
) -> None:
    """One metric over the revisions, a line per method; gaps where a revision has no value."""
    order = list(comparison["revisions"])
    axes.set_title(title, size=10)
    axes.yaxis.grid(True)
    values = []
    for position, name in enumerate(names):
        rows = {row["revision"]: row for row in comparison["reached"] if row["method"] == name}
        shift = 0.05 * (position - (len(names) - 1) / 2)
        points = [(x + shift, rows[revision]) for x, revision in enumerate(order) if rows[revision][metric] is not None]
        drawn = _look(name, methods)
        xs, ys = [x for x, _ in points], [row[metric] for _, row in points]
        axes.plot(
            xs, ys, color=drawn.color, marker=drawn.marker, markersize=6, markeredgecolor="white", linewidth=1.3,
            gid=f"{metric}/{name}",
        )  # fmt: skip
        values += ys
        if metric == "speedup":
            for x, row in points:
                if row["ci"]:
                    axes.plot([x, x], row["ci"], color=drawn.color, linewidth=1.6, alpha=0.5)
                    values += row["ci"]
    if metric == "speedup":
        axes.axhline(1, color=INK, linewidth=0.9)
    axes.set_xticks(range(len(order)), [labels[name].removeprefix("transformers ") for name in order])
    axes.set_xlim(-0.4, len(order) - 0.6)
    floor = 0.0 if metric == "tokens_per_second" else min([1.0, *values])
    axes.set_ylim(floor if floor == 0 else 0.94 * floor, 1.08 * max([1.0, *values]))


def _verdicts(
    figure: Figure,
    comparison: Row,
    names: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    *,
    labels: Mapping[str, str],
    methods: Mapping[str, Row],
    height_in: float,
) -> None:
    """A row per method, a column per pair of revisions: ratio, interval, verdict."""
    width, height = figure.get_size_inches()
    axes = figure.add_axes((0, 0.28 / height, 1, height_in / height))
    axes.set_xlim(0, width)
    axes.set_ylim(len(names) - 0.3, -1.3)
    axes.axis("off")
    column = (width - LABEL_IN - 0.45) / len(pairs)
    lefts = [LABEL_IN + 0.3 + column * place for place in range(len(pairs))]
    for x, (old, new) in zip(lefts, pairs, strict=True):
        short = [labels[name].removeprefix("transformers ") for name in (old, new)]
        axes.text(x, -0.95, f"{short[0]} → {short[1]}", weight="bold", size=9.5, va="center")
    for y, name in enumerate(names):
        axes.plot([0.1, width - 0.2], [y - 0.5, y - 0.5], color=RULE, linewidth=0.7)
        label = str(methods.get(name, {}).get("label", name))
        what = f"{label}, speed" if name == comparison["baseline"] else label
        axes.text(0.1, y, what, va="center", size=9.5, weight="bold", color=ink(_look(name, methods).color))
        for x, (old, new) in zip(lefts, pairs, strict=True):
            row = next(
                row for row in comparison["changes"] if (row["method"], row["old"], row["new"]) == (name, old, new)
            )
            axes.text(x, y, _cell(row), va="center", size=9.5)
            text, color = (row["verdict"], VERDICTS[row["verdict"]]) if row["ratio"] else ("not compared", MUTED)
            axes.text(x + column - 0.15, y, text, va="center", ha="right", size=9.5, color=color, weight="bold")


def _cell(row: Row) -> str:
    if row["ratio"] is None:
        return "none"
    return f"{row['ratio']:.2f}" + (f" [{row['ci'][0]:.2f}, {row['ci'][1]:.2f}]" if row["ci"] else "")
