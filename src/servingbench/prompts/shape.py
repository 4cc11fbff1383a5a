"""From a row of a source to a prompt: filters, identity, and the text or the messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servingbench.errors import UserError
from servingbench.prompts.columns import Template, lookup
from servingbench.prompts.filters import passes
from servingbench.prompts.row import Row
from servingbench.records.files import sha256_json

Prompt = dict[str, Any]

ROLES = ("system", "user", "assistant")
CONTENT_ID_DIGITS = 16  # 64 bits: no collision among millions of texts


class Shape:
    """How one workload's rows become prompts ``{"id", "messages"}``, or ``{"id", "prompt"}`` without a chat template.

    A prompt of several turns also has ``followups``: what the user says after each of the model's answers.

    Args:
        source: the workload's source; ``columns`` names the columns of ``id`` (null: rows have none, and a text is its
            own identity) and of ``prompt``, ``messages`` or ``turns``; ``template`` builds the prompt's text instead;
            ``filters`` choose the rows.
        chat_template: whether the prompts will be rendered through a chat template.
    """

    def __init__(self, source: Mapping[str, Any], *, chat_template: bool) -> None:
        columns = source.get("columns", {})
        self.id_column: str | None = columns.get("id", "id")
        self.prompt_column: str | None = columns.get("prompt")
        self.messages_column: str | None = columns.get("messages")
        self.turns_column: str | None = columns.get("turns")
        self.template = Template(source["template"]) if "template" in source else None
        self.filters = source.get("filters", [])
        self.chat_template = chat_template

    def __call__(self, row: Row) -> Prompt | None:
        """The row's prompt, or None where a filter leaves the row out; a row that has no prompt is a UserError."""
        if not passes(row, self.filters):
            return None
        body = self._body(row)
        return {"id": self._identity(row, body), **body}

    def _body(self, row: Row) -> Prompt:
        key, value = self._content(row)
        if key == "prompt":
            text = check_text(value, "the prompt", file=row.file, key=row.key)
            return {"messages": [{"role": "user", "content": text}]} if self.chat_template else {"prompt": text}
        if key == "turns":
            first, *later = self._turns(value, row)
            return {"messages": [{"role": "user", "content": first}]} | ({"followups": later} if later else {})
        messages = check_messages(value, file=row.file, key=row.key)
        if not self.chat_template:
            raise UserError(
                "messages need a chat template", file=row.file, key=row.key, remedy="set chat_template: true"
            )
        return {"messages": messages}

    def _turns(self, value: Any, row: Row) -> list[str]:
        if not isinstance(value, list) or not value:
            raise UserError("turns must be a list with at least one text", file=row.file, key=row.key)
        if not self.chat_template:
            raise UserError("turns need a chat template", file=row.file, key=row.key, remedy="set chat_template: true")
        return [check_text(turn, f"turn {n}", file=row.file, key=row.key) for n, turn in enumerate(value, start=1)]

    def _content(self, row: Row) -> tuple[str, Any]:
        if self.template is not None:
            return "prompt", self.template.render(row)
        if self.prompt_column is not None:
            return "prompt", lookup(row, self.prompt_column)
        if self.messages_column is not None:
            return "messages", lookup(row, self.messages_column)
        if self.turns_column is not None:
            return "turns", lookup(row, self.turns_column)
        present = [key for key in ("messages", "prompt") if key in row.values]
        if len(present) != 1:
            problem = f"needs exactly one of 'messages' and 'prompt' and has {'both' if present else 'neither'}"
            remedy = "or name the column in source.columns of the workload" if not present else "keep one"
            raise UserError(problem, file=row.file, key=row.key, remedy=remedy)
        return present[0], row.values[present[0]]

    def _identity(self, row: Row, body: Prompt) -> str:
        if self.id_column is None:
            return sha256_json(body)[:CONTENT_ID_DIGITS]
        if self.id_column == "id" and "id" not in row.values:
            remedy = "give every row one, or set columns: {id: null} to identify rows by their text"
            raise UserError("missing key 'id'", file=row.file, key=row.key, remedy=remedy)
        identity = lookup(row, self.id_column)
        if isinstance(identity, bool) or not isinstance(identity, str | int):
            raise UserError("the id must be text or a whole number", file=row.file, key=row.key, value=identity)
        return check_text(str(identity), "the id", file=row.file, key=row.key)


def check_messages(value: Any, *, file: object, key: object) -> list[dict[str, str]]:
    """Check a conversation: an optional system message, then turns that end with the user's.

    Raises:
        UserError: naming ``file``, ``key`` and the message.
    """
    if not isinstance(value, list) or not value:
        raise UserError("messages must be a list with at least one message", file=file, key=key)
    messages = []
    for index, message in enumerate(value):
        where = f"{key}: message {index + 1}"
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise UserError("a message needs 'role' and 'content'", file=file, key=where)
        role = message["role"]
        if role not in ROLES or (role == "system" and index > 0):
            allowed = "allowed: user, assistant, and system for the first message"
            raise UserError("not a role that may stand here", file=file, key=where, value=role, remedy=allowed)
        content = check_text(message["content"], "the content", file=file, key=where)
        messages.append({"role": role, "content": content})
    if messages[-1]["role"] != "user":
        raise UserError("the last message must be the user's", file=file, key=key, value=messages[-1]["role"])
    return messages


def check_text(value: Any, what: str, *, file: object, key: object) -> str:
    """Check that ``value`` is text that is not blank and that UTF-8 can hold."""
    if not isinstance(value, str):
        raise UserError(f"{what} must be text", file=file, key=key, value=value)
    if not value.strip():
        raise UserError(f"{what} is empty", file=file, key=key)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        problem = f"{what} holds half of a surrogate pair at character {error.start}, which is no Unicode text"
        raise UserError(problem, file=file, key=key) from None
    return value
