"""Filters, each from both sides of its border."""

import pytest

from servingbench.errors import UserError
from servingbench.prompts.filters import CONDITIONS, passes
from servingbench.prompts.row import Row

ROW = Row("f", "line 1", {"text": "Write Code", "turns": ["a", "b"], "redacted": False})
CASES = [
    ("redacted", "equals", False, True),
    ("redacted", "equals", True, False),
    ("text", "min_chars", 10, True),
    ("text", "min_chars", 11, False),
    ("text", "max_chars", 10, True),
    ("text", "max_chars", 9, False),
    ("turns", "min_items", 2, True),
    ("turns", "min_items", 3, False),
    ("turns", "max_items", 2, True),
    ("turns", "max_items", 1, False),
    ("text", "any_of", ["poem", "code"], True),
    ("text", "any_of", ["poem"], False),
    ("text", "none_of", ["poem"], True),
    ("text", "none_of", ["poem", "CODE"], False),
]


@pytest.mark.parametrize(("column", "name", "argument", "expected"), CASES)
def test_condition(column, name, argument, expected):
    assert passes(ROW, [{"column": column, name: argument}]) is expected


def test_every_condition_is_tested_here():
    assert {name for _, name, _, _ in CASES} == set(CONDITIONS)


def test_all_filters_must_hold():
    assert passes(ROW, [])
    assert passes(ROW, [{"column": "text", "min_chars": 1, "max_chars": 20}, {"column": "turns", "max_items": 2}])
    assert not passes(ROW, [{"column": "text", "min_chars": 1}, {"column": "turns", "max_items": 1}])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"column": "txt", "min_chars": 1}, "line 1: missing key 'txt'"),
        ({"column": "turns", "min_chars": 1}, "line 1: 'turns' must be text"),
        ({"column": "text", "max_items": 1}, "line 1: 'text' must be a list"),
        ({"column": "text", "min_char": 1}, r"unknown condition .*did you mean 'min_chars'"),
    ],
)
def test_filter_that_cannot_be_asked(spec, message):
    with pytest.raises(UserError, match=f"(?i){message}"):
        passes(ROW, [spec])
