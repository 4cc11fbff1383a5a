"""Decode times of several methods on the same texts: forced replays, interleaved in a balanced rotated order."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from tqdm import tqdm

from servingbench.decoding import Method, Request
from servingbench.decoding.jit import Floats
from servingbench.errors import UserError
from servingbench.measure.order import arm_order
from servingbench.simulate.corpus import Recording
from servingbench.simulate.figures import Groups

BASELINE = "autoregressive"


def forced_request(recording: Recording, *, cap: int, eos_token_ids: frozenset[int]) -> Request:
    """A request to write a recorded output again, with all the room for drafts that it had."""
    out = tuple(recording.out[:cap])
    room = cap if out[-1] in eos_token_ids else len(out)
    return Request(tuple(recording.prompt), room, eos_token_ids, out)


def round_robin(recordings: Sequence[Recording], chosen: Groups, *, prompts: int) -> list[int]:
    """The first ``prompts`` chosen places of each task, one task after the other, so that an early end is fair to all.

    An output of one token, which the prefill writes, has no decode time and is passed over.
    """
    firsts = [[place for place in places if len(recordings[place].out) > 1][:prompts] for places in chosen.values()]
    return [places[turn] for turn in range(prompts) for places in firsts if turn < len(places)]


def time_arms(arms: Mapping[str, Method], requests: Mapping[int, Request]) -> Iterator[tuple[int, dict[str, int]]]:
    """The decode nanoseconds of every arm on every request: yields the request's place and the arms' times.

    Raises:
        UserError: for an arm that writes another text than the recording.
    """
    gc.collect()
    gc.freeze()  # the collection before each arm then has little to look at
    try:
        with tqdm(total=len(arms) * len(requests), desc="decode times", unit="arm") as bar:
            for block, (place, request) in enumerate(requests.items()):
                times = {}
                for name in arm_order(list(arms), block=block):
                    gc.collect()
                    generation = arms[name].generate(request)
                    if tuple(generation.new_token_ids) != request.reference:
                        problem = "the forced replay wrote other tokens than the recording"
                        raise UserError(problem, key=name, remedy="use the model that the corpus was recorded with")
                    times[name] = generation.decode_ns
                    bar.update()
                yield place, times
    finally:
        gc.unfreeze()


def log_speedups(times: Mapping[int, Mapping[str, int]], arms: Sequence[str], *, recordings: int) -> dict[str, Floats]:
    """ln(baseline's decode time / the arm's), by place in the corpus; nan where nothing was timed."""
    found = {arm: np.full(recordings, np.nan) for arm in arms}
    for place, by_arm in times.items():
        for arm in arms:
            found[arm][place] = np.log(by_arm[BASELINE] / by_arm[arm])
    return found
