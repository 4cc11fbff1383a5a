"""Column paths and templates."""

import pytest

from servingbench.errors import UserError
from servingbench.prompts.columns import Template, lookup
from servingbench.prompts.row import Row

ROW = Row(
    "data.jsonl",
    "line 7",
    {"question": "Why?", "turns": ["one", "two"], "chat": [{"content": "hi"}], "n": 3, "nothing": None},
)


@pytest.mark.parametrize(
    ("path", "value"), [("question", "Why?"), ("turns[1]", "two"), ("turns[-1]", "two"), ("chat[0][content]", "hi")]
)
def test_lookup(path, value):
    assert lookup(ROW, path) == value


@pytest.mark.parametrize(
    "path", ["answer", "turns[2]", "turns[x]", "chat[0][role]", "question[0]", "n[0]", "nothing[0]"]
)
def test_lookup_names_the_line_where_nothing_is(path):
    with pytest.raises(UserError, match=r"data\.jsonl: line 7: .*" + path.split("[")[0]):
        lookup(ROW, path)


@pytest.mark.parametrize("path", ["", "a[", "a]", "[0]", "a[]"])
def test_lookup_refuses_what_is_no_path(path):
    with pytest.raises(UserError, match="not a column path"):
        lookup(ROW, path)


def test_template():
    assert Template("{{Q}} {question} {n} {chat[0][content]}").render(ROW) == "{Q} Why? 3 hi"


@pytest.mark.parametrize("text", ["no field", "{", "{}", "{a[}", "{question} {"])
def test_malformed_template(text):
    with pytest.raises(UserError, match=r"source\.template: malformed"):
        Template(text)


@pytest.mark.parametrize("column", ["nothing", "turns", "chat[0]"])
def test_only_text_and_numbers_stand_in_a_template(column):
    with pytest.raises(UserError, match=r"line 7: .* must be text or a number"):
        Template(f"{{{column}}}").render(ROW)


def test_template_reaches_no_attributes():
    with pytest.raises(UserError, match=r"missing key 'question\.__class__'"):
        Template("{question.__class__}").render(ROW)
