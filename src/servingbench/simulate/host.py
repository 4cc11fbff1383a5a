"""What drafting and the loop cost on the host: index, proposals, and everything between two forwards of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any

import torch
from tqdm import tqdm

from servingbench.decoding import Request
from servingbench.decoding.drafts import Drafter
from servingbench.measure.order import arm_order
from servingbench.peers.arctic import put_on_path
from servingbench.simulate.corpus import Recording

CONTEXT_TOKENS = 10_000
STEPS = 500
BUILDS = 11
MAX_DEPTH = 128


@dataclass(frozen=True)
class DrafterCost:
    """Median microseconds: of a bulk build and of an append, by token, and of one proposal."""

    build_us: float
    append_us: float
    propose_us: float


def long_text(recordings: Sequence[Recording]) -> list[int]:
    """The corpus as one text: its prompts and outputs, taken from the tasks in turn."""
    tasks: dict[str, list[Recording]] = {}
    for recording in recordings:
        tasks.setdefault(recording.task, []).append(recording)
    turns = range(max(map(len, tasks.values())))
    mixed = [found[turn] for turn in turns for found in tasks.values() if turn < len(found)]
    return [token for recording in mixed for token in (*recording.prompt, *recording.out)]


def drafter_costs(drafters: Mapping[str, Drafter], text: Sequence[int], *, context: int) -> dict[str, DrafterCost]:
    """Time drafters on one text, interleaved.

    Each is built ``BUILDS`` times on the first ``context`` tokens, where all but the first reuse the room of an earlier
    request, as in use; then the text goes on token by token, and each appends it and proposes.
    """
    names = list(drafters)
    builds: dict[str, list[float]] = {name: [] for name in names}
    appends: dict[str, list[float]] = {name: [] for name in names}
    proposals: dict[str, list[float]] = {name: [] for name in names}
    for drafter in drafters.values():
        drafter.warm_up()
    prefix = list(text[:context])
    for block in range(BUILDS):
        for name in arm_order(names, block=block):
            start_ns = perf_counter_ns()
            drafters[name].start(prefix)
            builds[name].append((perf_counter_ns() - start_ns) / context / 1e3)
    for block, token in enumerate(text[context : context + STEPS]):
        for name in arm_order(names, block=block):
            start_ns = perf_counter_ns()
            drafters[name].extend([token])
            appended_ns = perf_counter_ns()
            drafters[name].propose(max_depth=MAX_DEPTH)
            proposed_ns = perf_counter_ns()
            appends[name].append((appended_ns - start_ns) / 1e3)
            proposals[name].append((proposed_ns - appended_ns) / 1e3)
    return {name: DrafterCost(median(builds[name]), median(appends[name]), median(proposals[name])) for name in names}


def arctic_index_bytes(text: Sequence[int], *, max_tree_depth: int = 64) -> int:
    """What Arctic's suffix tree of a text takes, by its own estimate."""
    put_on_path()
    from arctic_inference.suffix_decoding._C import SuffixTree

    tree = SuffixTree(max_tree_depth)
    tree.extend(0, list(text))
    return int(tree.estimate_memory())


@contextmanager
def forward_gaps(model: Any) -> Iterator[list[int]]:
    """Collects the nanoseconds between each forward's end and the next one's start, by hooks on this instance."""
    gaps: list[int] = []
    ended: list[int] = []

    def before(*_: Any) -> None:
        if ended:
            gaps.append(perf_counter_ns() - ended.pop())

    def after(*_: Any) -> None:
        ended.append(perf_counter_ns())

    hooks = [model.register_forward_pre_hook(before), model.register_forward_hook(after)]
    try:
        yield gaps
    finally:
        for hook in hooks:
            hook.remove()


def host_us(
    arms: Mapping[str, Callable[[Request], object]], model: Any, requests: Sequence[Request], *, label: str
) -> dict[str, float]:
    """The median microseconds between two forwards of each arm, over all requests, interleaved."""
    found: dict[str, list[int]] = {name: [] for name in arms}
    with tqdm(total=len(arms) * len(requests), desc=label, unit="run", leave=False) as bar:
        for block, request in enumerate(requests):
            for name in arm_order(list(arms), block=block):
                with forward_gaps(model) as gaps:
                    arms[name](request)
                found[name] += gaps
                bar.update()
    return {name: median(gaps) / 1e3 for name, gaps in found.items() if gaps}


def transformers_generate(model: Any) -> Callable[[Request], object]:
    """transformers' own greedy generate with nothing attached to it: no streamer, no processor."""
    from transformers import GenerationConfig

    def generate(request: Request) -> object:
        prompt = torch.tensor([request.prompt_ids], device=model.device)
        config = GenerationConfig(
            do_sample=False,
            max_new_tokens=request.max_new_tokens,
            eos_token_id=sorted(request.eos_token_ids) or None,
            pad_token_id=0,
        )
        return model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=config)

    return generate
