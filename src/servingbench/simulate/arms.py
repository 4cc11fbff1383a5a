"""The drafters that are compared: ours as config/methods.yaml configures them, Arctic's at its best, prompt lookup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from servingbench.decoding.drafts import DRAFTS, Drafter
from servingbench.decoding.jit import Floats, Floats32, Ints
from servingbench.decoding.static_table import load_table
from servingbench.simulate.corpus import Recording
from servingbench.simulate.figures import Groups, mean_log
from servingbench.simulate.replay import Replay, replay

Options = dict[str, Any]

NODES = 64  # of every draft in the replay, ours and Arctic's
ROWS = {"tree": "tree_speculative", "path": "suffix_speculative"}  # of config/methods.yaml
# Arctic's own parameters; the best combination is taken. Its defaults (1, 0, 0.1, depth 64) are among them.
ARCTIC_GRID: Mapping[str, Sequence[float]] = {
    "max_spec_factor": (1.0, 2.0, 4.0, 16.0),
    "max_spec_offset": (0.0, 4.0, 16.0, 64.0),
    "min_token_prob": (0.1, 0.01),
    "max_tree_depth": (64, 128),
}
ARCTIC_SIZES = (8, 16, 32, NODES)  # where a smaller draft may be the faster one


@dataclass(frozen=True)
class Ours:
    """Our drafters.

    Attributes:
        methods: the rows of config/methods.yaml.
        table: the static table, or None to do without.
    """

    methods: Mapping[str, Mapping[str, Any]]
    table: tuple[Ints, Floats32] | None

    def options(self, kind: str, **changes: Any) -> Options:
        """The options of the tree or the path: the row's, then ``changes``, and whether there is a static table."""
        row = self.methods[ROWS[kind]]
        return {**(row.get("options") or {}), **changes, "static_table": self.table is not None}

    def drafter(self, kind: str, **changes: Any) -> Drafter:
        """A new drafter with these options."""
        options = self.options(kind, **changes) | {"static_table": self.table}
        return DRAFTS[self.methods[ROWS[kind]]["draft"]](**options)


def table_of(file: Path | None, model: Any) -> tuple[Ints, Floats32] | None:
    """The model's static table, checked against its vocabulary; None without a file."""
    return None if file is None else load_table(file, vocabulary=model.config.get_text_config().vocab_size)


def replay_corpus(
    recordings: Sequence[Recording], make: Callable[[], Drafter], *, cap: int, chosen: Groups
) -> list[Replay | None]:
    """Replay the chosen recordings; one drafter per task, which observes all of the task's outputs in their order."""
    wanted = {place for places in chosen.values() for place in places}
    drafters = {recording.task: make() for recording in recordings}
    replays: list[Replay | None] = []
    for place, recording in enumerate(recordings):
        drafter = drafters[recording.task]
        replays.append(replay(drafter, recording.prompt, recording.out, cap=cap) if place in wanted else None)
        drafter.observe(recording.prompt, recording.out[:cap])
    return replays


def logs(replays: Sequence[Replay | None], value: Callable[[Replay], float]) -> Floats:
    """The logarithm of a value of each replay; nan where nothing was replayed, or the prefill wrote everything."""
    return np.array([np.log(value(found)) if found and found.steps else np.nan for found in replays])


def tokens_per_forward(found: Replay) -> float:
    """Tokens by forward, prefill excluded."""
    return found.tokens / len(found.steps)


def tokens_per_time(costs: Floats) -> Callable[[Replay], float]:
    """Tokens by predicted time, the sum over forwards of what their rows cost (see ``decoding.cost``)."""
    return lambda found: found.tokens / float(sum(costs[1 + proposed] for proposed, _, _ in found.steps))


def best_arctic(
    recordings: Sequence[Recording],
    value: Callable[[Replay], float],
    *,
    kind: str,
    source: str = "local",
    sizes: Sequence[int] = (NODES,),
    cap: int,
    chosen: Groups,
) -> Options:
    """Arctic's options with the largest geometric mean of ``value`` on the chosen recordings; the first of equals."""
    grid = {"tree": (kind == "tree",), "source": (source,), "max_spec_tokens": sizes, **ARCTIC_GRID}
    combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    scores = []
    for options in tqdm(combinations, desc=f"Arctic's best {kind}, {source}", unit="setting", leave=False):
        replays = replay_corpus(recordings, partial(DRAFTS["arctic"], **options), cap=cap, chosen=chosen)
        score = mean_log(logs(replays, value), chosen)
        scores.append(-np.inf if score is None else score)
    return combinations[int(np.argmax(scores))]
