"""From a prompt of the prompt file to the token ids that a model gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jinja2

from servingbench.errors import UserError


class TooLong(UserError):
    """A prompt that leaves the answer no room, or is longer than its workload allows."""


def render(
    tokenizer: Any,
    prompt: Mapping[str, Any],
    rendering: Mapping[str, Any],
    *,
    context: int,
    file: object,
    max_new_tokens: int = 1,
) -> list[int]:
    """Render one prompt.

    Text and tokens are made in two steps, as ``apply_chat_template`` does inside, because what it returns when it
    tokenises itself differs between transformers 4 and 5.

    Args:
        tokenizer: a transformers tokenizer.
        prompt: ``{"id", "messages"}`` or ``{"id", "prompt"}``.
        rendering: the workload's: ``chat_template`` (false: the plain text with the tokenizer's own special tokens),
            ``system`` (put before messages that bring no system message) and ``enable_thinking`` (handed to the
            template), the latter two only where they are set; ``max_prompt_tokens``, the most that is allowed.
        context: the tokens that the model can attend to.
        file: the prompt file, for errors.
        max_new_tokens: the room to leave for the answer.

    Returns:
        Token ids, at least one and at most ``context - max_new_tokens``.

    Raises:
        TooLong: for a prompt of more tokens.
        UserError: for a tokenizer without a chat template, one that refuses the messages, or an empty prompt.
    """
    key = f"prompt {prompt['id']}"
    if rendering["chat_template"]:
        text = _apply_template(tokenizer, _messages(prompt, rendering.get("system")), rendering, file=file, key=key)
        token_ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        token_ids = tokenizer(_plain_text(prompt, rendering, file=file, key=key))["input_ids"]
    if len(token_ids) == 0:
        raise UserError("the prompt renders to no token", file=file, key=key, remedy="give it some text")
    allowed = rendering.get("max_prompt_tokens")
    if allowed is not None and len(token_ids) > allowed:
        remedy = "set rendering.too_long of the workload to drop or truncate, or raise max_prompt_tokens"
        raise TooLong("too many prompt tokens", file=file, key=key, value=len(token_ids), remedy=remedy)
    if len(token_ids) + max_new_tokens > context:
        problem = (
            f"{len(token_ids)} prompt tokens and {max_new_tokens} new ones do not fit the model's context of {context}"
        )
        remedy = (
            "set rendering.too_long of the workload to drop or truncate, lower its max_new_tokens, or choose a model "
            "with a longer context"
        )
        raise TooLong(problem, file=file, key=key, remedy=remedy)
    return [int(token) for token in token_ids]


def _messages(prompt: Mapping[str, Any], system: str | None) -> list[dict[str, str]]:
    messages = list(prompt.get("messages") or [{"role": "user", "content": prompt["prompt"]}])
    if system is not None and messages[0]["role"] != "system":
        messages.insert(0, {"role": "system", "content": system})
    return messages


def _apply_template(
    tokenizer: Any, messages: list[dict[str, str]], rendering: Mapping[str, Any], *, file: object, key: str
) -> str:
    if not getattr(tokenizer, "chat_template", None):
        raise UserError(
            "the model's tokenizer has no chat template",
            file=getattr(tokenizer, "name_or_path", None) or file,
            key="chat_template",
            remedy="choose a chat model, or set rendering.chat_template: false in the row in config/workloads.yaml",
        )
    if not any(message["content"].strip() for message in messages if message["role"] != "system"):
        raise UserError("the prompt is empty", file=file, key=key, remedy="give it some text")
    thinking = rendering.get("enable_thinking")
    options = {} if thinking is None else {"enable_thinking": thinking}
    try:
        text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options)
    except jinja2.TemplateError as error:
        problem = f"the tokenizer's chat template refuses the messages: {error}"
        remedy = "a template without system messages needs rendering.system: null"
        raise UserError(problem, file=file, key=key, remedy=remedy) from None
    return text


def _plain_text(prompt: Mapping[str, Any], rendering: Mapping[str, Any], *, file: object, key: str) -> str:
    if rendering.get("system") is not None or rendering.get("enable_thinking") is not None:
        remedy = "set chat_template: true, or leave both out"
        raise UserError("system and enable_thinking need a chat template", file=file, key="rendering", remedy=remedy)
    if "prompt" not in prompt:
        remedy = "sample the workload again after changing rendering.chat_template"
        raise UserError("the prompt has messages, which need a chat template", file=file, key=key, remedy=remedy)
    text = str(prompt["prompt"])
    if not text.strip():
        raise UserError("the prompt is empty", file=file, key=key, remedy="give it some text")
    return text
