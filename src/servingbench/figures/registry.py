"""Every figure by name; a new figure is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from servingbench.errors import UserError
from servingbench.figures.data import ResultSet
from servingbench.figures.draft_ablation import draft_ablation
from servingbench.figures.position_profile import position_profile
from servingbench.figures.proposed_accepted import proposed_accepted
from servingbench.figures.reported import reported_source_ablation, reported_speedup
from servingbench.figures.source_ablation import source_ablation
from servingbench.figures.speedup import speedup
from servingbench.figures.style import style
from servingbench.figures.throughput_memory import throughput_memory
from servingbench.figures.tokens_per_forward import tokens_per_forward
from servingbench.records.schema import suggest

FIGURES: dict[str, Callable[[ResultSet], Figure]] = {
    "speedup": speedup,
    "tokens_per_forward": tokens_per_forward,
    "proposed_accepted": proposed_accepted,
    "position_profile": position_profile,
    "throughput_memory": throughput_memory,
    "draft_ablation": draft_ablation,
    "source_ablation": source_ablation,
    "reported_speedup": reported_speedup,
    "reported_source_ablation": reported_source_ablation,
}


def draw(name: str, results: ResultSet) -> Figure:
    """Draw the figure ``name`` in the project's style.

    Raises:
        UserError: for a name that is not registered.
    """
    if name not in FIGURES:
        raise UserError("unknown figure", value=name, remedy=suggest(name, FIGURES))
    with style():
        return FIGURES[name](results)
