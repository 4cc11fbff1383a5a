"""Walk a known output with a drafter, counting what the decoding loop would count; no model is needed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from servingbench.decoding.drafts.base import Drafter
from servingbench.decoding.loop import accept
from servingbench.decoding.types import Step


@dataclass(frozen=True)
class Replay:
    """The forwards after the prefill.

    Attributes:
        tokens: what they committed: every output token but the first, which the prefill gives.
        steps: per forward: proposed, depth, accepted.
    """

    tokens: int
    steps: list[Step]


def replay(
    drafter: Drafter, prompt: Sequence[int], out: Sequence[int], *, cap: int, eos_token_ids: Collection[int] = ()
) -> Replay:
    """Replay one output as a forced run of ``LoopMethod`` would: the same drafts, the same end.

    Args:
        drafter: what proposes.
        prompt: token ids, at least one.
        out: the known output.
        cap: ``max_new_tokens``; drafts never reach beyond it, nor does the replay.
        eos_token_ids: the output ends with the first of these.
    """
    stops = frozenset(eos_token_ids)
    length = min(cap, len(out))
    steps: list[Step] = []
    done = min(1, length)
    indexed = 0
    if done:
        drafter.start(prompt)
    while done < length and out[done - 1] not in stops:
        room = cap - done - 1
        drafter.extend(out[indexed:done])
        indexed = done
        draft = drafter.propose(max_depth=room) if room > 0 else None
        known = out[done:]

        def choose(row: int, place: int, known: Sequence[int] = known) -> int:
            return known[place]

        tokens, nodes = accept(draft, choose, stops, length - done)
        steps.append((len(draft.tokens), max(draft.depths), len(nodes)) if draft else (0, 0, 0))
        done += len(tokens)
    return Replay(max(done - 1, 0), steps)
