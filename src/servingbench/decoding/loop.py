"""The one decoding loop: propose a draft, verify it in one forward, keep what the model would have written itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns

import torch

from servingbench.decoding.cost import forward_costs
from servingbench.decoding.drafts.base import Draft, Drafter
from servingbench.decoding.greedy import greedy_token
from servingbench.decoding.sampling import Sampler
from servingbench.decoding.target import Target
from servingbench.decoding.types import FinishReason, Generation, Request, Step

Choices = Callable[[torch.Tensor, Request, int], Callable[[int, int], int]]
"""(logits of a forward, request, tokens committed before it) -> the chooser that :func:`accept` takes."""


class LoopMethod:
    """A method of the project's own loop, which differs from the others by its drafts alone.

    Args:
        name: the method's name.
        target: the model.
        drafter: what proposes.
    """

    def __init__(self, name: str, target: Target, drafter: Drafter) -> None:
        self.name = name
        self.target = target
        self.drafter = drafter

    @torch.inference_mode()
    def generate(self, request: Request) -> Generation:
        """Answer one request: greedily, by sampling, or as a forced replay of ``request.reference``.

        The draft never reaches beyond the cap, so there is nothing to cut: a draft of remaining - 1 tokens and the
        model's own next token fill the output exactly.
        """
        target, drafter = self.target, self.drafter
        cap = request.max_new_tokens
        length = cap if request.reference is None else min(cap, len(request.reference))
        output: list[int] = []
        steps: list[Step] = []
        propose_ns = verify_ns = indexed = 0

        target.synchronize()
        start_ns = first_ns = last_ns = perf_counter_ns()
        if length > 0:
            cache = target.new_cache(prompt=len(request.prompt_ids), new=cap, draft=drafter.max_nodes)
            drafter.start(request.prompt_ids)
            choices = self.choices(request)
            started_ns = perf_counter_ns()
            choose = choices(target.prefill(cache, request.prompt_ids), request, 0)
            output.append(choose(0, 0))
            steps.append((0, 0, 0))
            first_ns = last_ns = perf_counter_ns()
            propose_ns += started_ns - start_ns
        while len(output) < length and output[-1] not in request.eos_token_ids:
            room = cap - len(output) - 1
            drafter.extend(output[indexed:])
            indexed = len(output)
            draft = drafter.propose(max_depth=room) if room > 0 else None
            if draft is not None and not draft.tokens:
                draft = None
            proposed_ns = perf_counter_ns()
            logits = target.verify(cache, output[-1], draft)
            choose = choices(logits, request, len(output))
            tokens, nodes = accept(draft, choose, request.eos_token_ids, length - len(output))
            cache.commit([0, *(node + 1 for node in nodes)])
            output += tokens
            steps.append((len(draft.tokens), max(draft.depths), len(nodes)) if draft else (0, 0, 0))
            now_ns = perf_counter_ns()
            propose_ns += proposed_ns - last_ns
            verify_ns += now_ns - proposed_ns
            last_ns = now_ns
        target.synchronize()
        end_ns = perf_counter_ns()

        return Generation(
            new_token_ids=output,
            finish_reason=finish_reason(output, request.eos_token_ids),
            wall_ns=end_ns - start_ns,
            ttft_ns=first_ns - start_ns,
            decode_ns=last_ns - first_ns,
            propose_ns=propose_ns,
            verify_ns=verify_ns,
            forwards=len(steps),
            steps=steps,
        )

    def choices(self, request: Request) -> Choices:
        """How one request's tokens are chosen from logits."""
        return chooser if request.is_greedy else Sampler(request, device=self.target.device)

    def observe(self, prompt_ids: Sequence[int], new_token_ids: Sequence[int]) -> None:
        """Hand a finished response to the drafter's shared index."""
        self.drafter.observe(prompt_ids, new_token_ids)

    def warm_up(self) -> None:
        """Compile the drafter, run every kind of forward once, and measure their cost for a drafter that asks."""
        self.drafter.warm_up()
        if self.drafter.costs is not None:
            self.drafter.costs = forward_costs(self.target, max_rows=1 + self.drafter.max_nodes)
        cache = self.target.new_cache(prompt=2, new=3, draft=2)
        with torch.inference_mode():
            self.target.prefill(cache, [0, 0])
            for draft in (None, Draft.path([0, 0]), Draft.tree([0, 0], [-1, -1])):
                self.target.verify(cache, 0, draft).argmax(dim=-1).tolist()


def accept(
    draft: Draft | None, choose: Callable[[int, int], int], eos_token_ids: frozenset[int], room: int
) -> tuple[list[int], list[int]]:
    """Walk the draft along the model's own choices.

    Args:
        draft: what was verified.
        choose: (row, k) -> the model's token after a row, to be the k-th token committed by this step; row 0 is the
            last committed token and row i + 1 is node i.
        eos_token_ids: the output ends with the first of these.
        room: tokens that may still be committed.

    Returns:
        The new tokens and the accepted nodes: one token more than nodes, unless the output ended on a node.
    """
    tokens: list[int] = []
    nodes: list[int] = []
    node = -1
    while True:
        token = choose(node + 1, len(tokens))
        tokens.append(token)
        child = None if draft is None else draft.child(node, token)
        if child is None:
            return tokens, nodes
        nodes.append(child)
        if token in eos_token_ids or len(tokens) == room:
            return tokens, nodes
        node = child


def chooser(logits: torch.Tensor, request: Request, committed: int) -> Callable[[int, int], int]:
    """The greedy token of a row, on demand, for most rows of a draft are never reached; ``sampling.py`` has the others.

    On a GPU one reduction and one transfer for all rows is cheaper than a round trip per row. A forced replay does the
    same work and then answers with the reference.
    """
    everywhere: list[int] | None = None if logits.device.type == "cpu" else logits.argmax(dim=-1).tolist()

    def greedy(row: int) -> int:
        return greedy_token(logits[row]) if everywhere is None else everywhere[row]

    reference = request.reference
    if reference is None:
        return lambda row, place: greedy(row)

    def replay(row: int, place: int) -> int:
        greedy(row)
        return reference[committed + place]

    return replay


def finish_reason(new_token_ids: Sequence[int], eos_token_ids: frozenset[int]) -> FinishReason:
    """Why an output ended: its last token tells."""
    return "eos" if new_token_ids and new_token_ids[-1] in eos_token_ids else "length"
