"""From the prompt file to the prompts that a run measures: earlier turns answered, rendered, too long ones seen to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from servingbench.errors import UserError
from servingbench.prompts.render import TooLong, render
from servingbench.records.files import sha256_token_ids

Answer = Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class PreparedPrompt:
    """A rendered prompt: its id, its token ids, and their SHA-256."""

    id: str
    token_ids: tuple[int, ...]
    sha256: str


@dataclass
class Prepared:
    """The prompts of a run.

    Attributes:
        prompts: rendered, in sample order.
        dropped: ids of those that were too long.
        truncated: ids of those that were cut, with the tokens that went.
    """

    prompts: list[PreparedPrompt] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    truncated: dict[str, int] = field(default_factory=dict)


def prepare_prompts(
    tokenizer: Any,
    rows: Sequence[Mapping[str, Any]],
    rendering: Mapping[str, Any],
    *,
    context: int | None,
    max_new_tokens: int,
    file: object,
    answer: Answer | None = None,
) -> Prepared:
    """Render every prompt, as the workload's ``rendering`` says.

    Args:
        tokenizer: the model's.
        rows: prompts as the sample holds them.
        rendering: the workload's rendering settings; ``too_long`` says what becomes of a prompt that is too long.
        context: the model's positions, in tokens; None when it names none.
        max_new_tokens: room for the answer.
        file: the prompt file, for errors.
        answer: the model's own answer to token ids, for the earlier turns of a prompt with ``followups``.

    Raises:
        UserError: for a prompt that cannot be rendered or is too long, and where every one was dropped.
    """
    prepared = Prepared()
    policy = rendering.get("too_long", "error")
    room = {"context": context or sys.maxsize, "max_new_tokens": max_new_tokens}

    def rendered(row: Mapping[str, Any]) -> list[int]:
        return render(tokenizer, row, rendering, **room, file=file)

    turns = any("followups" in row for row in rows)
    for row in tqdm(rows, desc="earlier turns", unit="prompt", disable=not turns, mininterval=1):
        try:
            whole = _with_earlier_turns(row, rendered, answer)
            token_ids = rendered(whole)
        except TooLong:
            if policy == "error":
                raise
            if policy == "drop" or "followups" in row:  # a conversation that is cut would be another one
                prepared.dropped.append(row["id"])
                continue
            token_ids, prepared.truncated[row["id"]] = _truncated(tokenizer, row, rendered)
        prepared.prompts.append(PreparedPrompt(row["id"], tuple(token_ids), sha256_token_ids(token_ids)))
    if not prepared.prompts:
        remedy = "raise rendering.max_prompt_tokens, or choose a model with a longer context"
        raise UserError("every prompt is too long", file=file, key="rendering.too_long", value=policy, remedy=remedy)
    return prepared


def _with_earlier_turns(
    row: Mapping[str, Any], rendered: Callable[[Mapping[str, Any]], list[int]], answer: Answer | None
) -> dict[str, Any]:
    """The conversation up to its last turn, the earlier ones answered."""
    messages = list(row.get("messages", []))
    for turn in row.get("followups", []):
        if answer is None:
            raise UserError("a prompt of several turns needs the model that answers the earlier ones", key=row["id"])
        said = answer(rendered({"id": row["id"], "messages": messages}))
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": turn}]
    return {"id": row["id"], "messages": messages} if messages else dict(row)


def _truncated(
    tokenizer: Any, row: Mapping[str, Any], rendered: Callable[[Mapping[str, Any]], list[int]]
) -> tuple[list[int], int]:
    """The prompt with as much of its last message as fits, and how many tokens of it went."""
    *earlier, last = row["messages"]
    tokens = tokenizer(last["content"], add_special_tokens=False)["input_ids"]
    fits, most = 0, len(tokens)
    best: list[int] = []
    while fits < most:  # tokens kept; another cut may merge differently, so that arithmetic would not do
        kept = (fits + most + 1) // 2
        message = {**last, "content": tokenizer.decode(tokens[:kept])}
        try:
            best = rendered({**row, "messages": [*earlier, message]})
            fits = kept
        except TooLong:
            most = kept - 1
    if not best:
        return rendered(row), 0  # not even one token fits: raises TooLong
    return best, len(tokens) - fits
