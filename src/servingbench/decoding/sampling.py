"""Sampling: the same walk along the draft, with the model's own tokens drawn instead of maximised.

Speculative sampling accepts a drafted token x with probability min(1, p(x) / q(x)) and on rejection draws from the
normalised positive part of p - q, which leaves exactly p (Leviathan et al., 2023; Chen et al., 2023). The drafts of our
loop follow from the committed text: q is a point mass at x. Then x is accepted with probability p(x), and the residual
is p without x. To draw y from p and to accept if y = x is the same thing: y = x happens with probability p(x), and
otherwise y already has the residual's distribution.

The children x1, x2, ... of a tree's node are tried one after another, each against what the rejections before it left
of p (SpecInfer, Miao et al., 2024). Of a point mass again nothing is left, so x2 is accepted with probability
p(x2) / (1 - p(x1)) if x1 was not, p(x2) in all: again the chance that one draw from p is x2. So one draw per committed
token, and the child that proposes it if there is one, is exact for paths and trees, in any order of the children. No
rule that keeps p accepts more often.

Every committed token thus takes one draw, in order, from the distribution that plain sampling would draw it from: from
the same seed every method writes the same text, as transformers' own sampling does, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from servingbench.decoding.types import Request
from servingbench.errors import UserError


class Sampler:
    """One request's choices where they are not simply the largest logits.

    Logits processors see what they see in transformers' own loop: float32 scores (1, vocabulary), with the ids of the
    text before the token, (1, length), exactly once per committed token and in order. Those with a memory work too.

    In a forced replay everything is computed and drawn as in a free run, and the answer is the reference. That may be a
    sampled text: a draft is accepted where a child is the token that was drawn, whenever it was drawn, so that a replay
    along a sample accepts what the free run that wrote it would have.

    Args:
        request: its temperature, seed and processors.
        device: the model's.

    Raises:
        UserError: for a temperature that is none.
    """

    def __init__(self, request: Request, *, device: torch.device) -> None:
        if not 0 <= request.temperature < math.inf:
            remedy = "use 0 for greedy decoding, or a finite number above"
            raise UserError("no such temperature", key="temperature", value=request.temperature, remedy=remedy)
        self._request = request
        self._text = torch.tensor([[*request.prompt_ids, *[0] * request.max_new_tokens]], device=device)
        self._generator = None if request.seed is None else torch.Generator(device).manual_seed(request.seed)

    def __call__(self, logits: torch.Tensor, request: Request, committed: int) -> Callable[[int, int], int]:
        """The chooser of one forward (see ``loop.chooser``): its rows' logits, and the count of tokens before it."""
        return lambda row, place: self._choose(logits[row], committed + place)

    def _choose(self, logits: torch.Tensor, place: int) -> int:
        """The token at a place of the output, from its logits (vocabulary,)."""
        request = self._request
        end = len(request.prompt_ids) + place
        scores = logits.float()[None]
        if request.processors is not None:
            scores = request.processors(self._text[:, :end], scores)
        if request.temperature > 0:
            probs = torch.softmax(scores / request.temperature, dim=-1)
            token = int(torch.multinomial(probs, 1, generator=self._generator))
        else:
            token = int(scores.argmax(dim=-1))
        if request.reference is not None:
            token = request.reference[place]
        self._text[0, end] = token
        return token
