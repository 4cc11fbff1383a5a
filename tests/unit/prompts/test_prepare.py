"""Earlier turns, and prompts that are too long."""

import pytest
from tests.unit.prompts.test_render import Tokenizer

from servingbench.errors import UserError
from servingbench.prompts.prepare import prepare_prompts
from servingbench.prompts.render import TooLong


class Words(Tokenizer):
    """Tokens that can be written again."""

    def decode(self, ids):
        return self.text(ids)


def row(name, text, **more):
    return {"id": name, "messages": [{"role": "user", "content": text}], **more}


def prepared(rows, *, context=100, answer=None, **rendering):
    tokenizer = Words()
    found = prepare_prompts(
        tokenizer,
        rows,
        {"chat_template": True, **rendering},
        context=context,
        max_new_tokens=2,
        file="f.jsonl",
        answer=answer,
    )
    return found, [tokenizer.text(prompt.token_ids) for prompt in found.prompts]


def test_earlier_turns_are_answered_by_the_model():
    asked = []

    def answer(ids):
        asked.append(len(ids))
        return f"answer{len(asked)}"

    _, texts = prepared([row("a", "one", followups=["two", "three"])], answer=answer)
    assert texts == ["<user> one <assistant> answer1 <user> two <assistant> answer2 <user> three <assistant>"]
    assert asked == [3, 7]
    with pytest.raises(UserError, match="needs the model"):
        prepared([row("a", "one", followups=["two"])])


LONG = "w1 w2 w3 w4 w5 w6 w7 w8"


def test_too_long_is_an_error_unless_the_workload_says_otherwise():
    for room in ({"context": 10}, {"max_prompt_tokens": 8}):
        with pytest.raises(TooLong, match=r"f\.jsonl: prompt b: .*too_long"):
            prepared([row("a", "short"), row("b", LONG)], **room)


def test_too_long_prompts_are_dropped_or_cut_and_said():
    for room in ({"context": 10}, {"max_prompt_tokens": 8}):
        found, texts = prepared([row("a", "short"), row("b", LONG)], too_long="drop", **room)
        assert (found.dropped, found.truncated, len(texts)) == (["b"], {}, 1)
        found, texts = prepared([row("a", "short"), row("b", LONG)], too_long="truncate", **room)
        assert (found.dropped, found.truncated) == ([], {"b": 2})
        assert texts[1] == "<user> w1 w2 w3 w4 w5 w6 <assistant>"


def test_nothing_left_is_an_error():
    with pytest.raises(UserError, match="every prompt is too long"):
        prepared([row("b", LONG)], too_long="drop", context=6)
    with pytest.raises(TooLong):
        prepared([row("b", LONG)], too_long="truncate", context=4)
    dropped = row("b", LONG, followups=["more"])
    found, _ = prepared([row("a", "x"), dropped], too_long="truncate", context=10, answer=lambda ids: "y")
    assert found.dropped == ["b"]  # a conversation is not cut
