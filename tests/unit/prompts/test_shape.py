"""From rows to prompts."""

import pytest

from servingbench.errors import UserError
from servingbench.prompts.row import Row
from servingbench.prompts.shape import Shape

USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be brief"}
ASSISTANT = {"role": "assistant", "content": "hello"}


def shape(values, source=None, *, chat_template=True):
    return Shape(source or {}, chat_template=chat_template)(Row("f.jsonl", "line 4", values))


def test_prompt_becomes_a_message_for_a_chat_template():
    assert shape({"id": "a", "prompt": "hi"}) == {"id": "a", "messages": [USER]}
    assert shape({"id": "a", "prompt": "hi"}, chat_template=False) == {"id": "a", "prompt": "hi"}


def test_messages_are_kept_without_other_keys():
    turns = [SYSTEM, USER, ASSISTANT, {**USER, "name": "x"}]
    assert shape({"id": 3, "messages": turns})["messages"] == [SYSTEM, USER, ASSISTANT, USER]


def test_columns_template_and_filters():
    values = {"number": 7, "turns": ["hi", "more"], "lang": "en", "talk": [USER]}
    assert shape(values, {"columns": {"id": "number", "prompt": "turns[0]"}}) == {"id": "7", "messages": [USER]}
    assert shape(values, {"columns": {"id": "lang", "messages": "talk"}}) == {"id": "en", "messages": [USER]}
    templated = {
        "columns": {"id": "number"},
        "template": "Say {turns[1]}",
        "filters": [{"column": "lang", "equals": "en"}],
    }
    assert shape(values, templated)["messages"][0]["content"] == "Say more"
    assert shape({**values, "lang": "fr"}, templated) is None


def test_text_is_the_identity_where_rows_have_none():
    source = {"columns": {"id": None, "prompt": "question"}}
    first, again, other = (shape({"question": q, "n": n}, source)["id"] for q, n in (("a", 1), ("a", 2), ("b", 1)))
    assert first == again != other
    assert len(first) == 16


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"prompt": "hi"}, "missing key 'id'.*null"),
        ({"id": "a"}, "has neither"),
        ({"id": "a", "prompt": "hi", "messages": [USER]}, "has both"),
        ({"id": None, "prompt": "hi"}, "the id must be"),
        ({"id": True, "prompt": "hi"}, "the id must be"),
        ({"id": 1.5, "prompt": "hi"}, "the id must be"),
        ({"id": " ", "prompt": "hi"}, "the id is empty"),
        ({"id": "a", "prompt": " \n"}, "the prompt is empty"),
        ({"id": "a", "prompt": None}, "the prompt must be text"),
        ({"id": "a", "prompt": "\ud800"}, "surrogate"),
        ({"id": "\udc00", "prompt": "hi"}, "surrogate"),
        ({"id": "a", "messages": []}, "at least one message"),
        ({"id": "a", "messages": "hi"}, "must be a list"),
        ({"id": "a", "messages": [{"role": "user"}]}, "message 1: .*'role' and 'content'"),
        ({"id": "a", "messages": [{"role": "robot", "content": "x"}]}, "message 1: .*'robot'"),
        ({"id": "a", "messages": [USER, SYSTEM]}, "message 2: .*'system'"),
        ({"id": "a", "messages": [USER, ASSISTANT]}, "last message must be the user's"),
        ({"id": "a", "messages": [{"role": "user", "content": ""}]}, "message 1: the content is empty"),
    ],
)
def test_row_without_a_valid_prompt(values, message):
    with pytest.raises(UserError, match=r"f\.jsonl: line 4.*" + message):
        shape(values)


def test_messages_need_a_chat_template():
    with pytest.raises(UserError, match="need a chat template"):
        shape({"id": "a", "messages": [USER]}, chat_template=False)


def test_missing_column_names_the_columns_there_are():
    with pytest.raises(UserError, match=r"missing key 'question'\. The row has: id, text"):
        shape({"id": "a", "text": "hi"}, {"columns": {"prompt": "question"}})
