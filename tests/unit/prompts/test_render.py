"""Rendering, with a stand-in tokenizer and, where transformers can be imported, with a real one built on the spot."""

import jinja2
import pytest

from servingbench.errors import UserError
from servingbench.prompts.render import render

TEMPLATE = (
    "{% if enable_thinking is defined %}<think {{ enable_thinking }} > {% endif %}"
    "{% for m in messages %}{% if m.role == 'system' and refuse %}{{ raise_exception('no system') }}{% endif %}"
    "<{{ m.role }}> {{ m.content }} {% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
CHAT = {"chat_template": True}
PLAIN = {"chat_template": False}
PROMPT = {"id": "p1", "messages": [{"role": "user", "content": "hello there"}]}


class Tokenizer:
    """Words as tokens; the id of a word is its place in ``words``; <bos> is added unless told otherwise."""

    def __init__(self, template=TEMPLATE, *, refuse=False):
        self.chat_template = template
        self.name_or_path = "models/tiny"
        self.refuse = refuse
        self.words = ["<bos>"]

    def apply_chat_template(self, messages, *, tokenize, add_generation_prompt, **options):
        assert tokenize is False

        def raise_exception(text):
            raise jinja2.TemplateError(text)

        template = jinja2.Environment().from_string(self.chat_template)
        return template.render(
            messages=messages,
            add_generation_prompt=add_generation_prompt,
            refuse=self.refuse,
            raise_exception=raise_exception,
            **options,
        )

    def __call__(self, text, add_special_tokens=True):
        words = (["<bos>"] if add_special_tokens else []) + text.split()
        self.words += [word for word in dict.fromkeys(words) if word not in self.words]
        return {"input_ids": [self.words.index(word) for word in words]}

    def text(self, ids):
        return " ".join(self.words[token] for token in ids)


def rendered(rendering, prompt=PROMPT, tokenizer=None, context=50, **options):
    tokenizer = tokenizer or Tokenizer()
    return tokenizer.text(render(tokenizer, prompt, rendering, context=context, file="f.jsonl", **options))


def test_chat_template_with_the_generation_prompt_and_no_second_bos():
    assert rendered(CHAT) == "<user> hello there <assistant>"


@pytest.mark.parametrize("unset", [{}, {"enable_thinking": None, "system": None}])
def test_options_are_passed_only_where_set(unset):
    assert rendered(CHAT | unset) == "<user> hello there <assistant>"
    assert rendered(CHAT | unset | {"enable_thinking": False}) == "<think False > <user> hello there <assistant>"
    assert rendered(CHAT | unset | {"enable_thinking": True}).startswith("<think True >")


def test_system_message_of_the_workload_stands_before_and_yields_to_the_prompts_own():
    assert rendered(CHAT | {"system": "be brief"}) == "<system> be brief <user> hello there <assistant>"
    own = {"id": "p", "messages": [{"role": "system", "content": "own"}, *PROMPT["messages"]]}
    assert rendered(CHAT | {"system": "be brief"}, own) == "<system> own <user> hello there <assistant>"
    assert len(PROMPT["messages"]) == 1


def test_plain_text_gets_the_tokenizers_special_tokens():
    assert rendered(PLAIN, {"id": "p", "prompt": "hello there"}) == "<bos> hello there"


def test_context_is_full_only_beyond_its_last_token():
    assert rendered(CHAT, context=7, max_new_tokens=3)
    with pytest.raises(UserError, match=r"f\.jsonl: prompt p1: 4 prompt tokens and 3 new .*context of 6.*too_long"):
        rendered(CHAT, context=6, max_new_tokens=3)


@pytest.mark.parametrize("template", [None, ""])
def test_tokenizer_without_a_chat_template(template):
    with pytest.raises(UserError, match=r"models/tiny: chat_template: .*no chat template.*chat_template: false"):
        rendered(CHAT, tokenizer=Tokenizer(template))


def test_template_that_refuses_the_messages():
    with pytest.raises(UserError, match=r"prompt p1: .*refuses the messages: no system.*system: null"):
        rendered(CHAT | {"system": "be brief"}, tokenizer=Tokenizer(refuse=True))


@pytest.mark.parametrize(
    ("rendering", "prompt"),
    [
        (CHAT, {"id": "p", "messages": [{"role": "user", "content": " "}]}),
        (PLAIN, {"id": "p", "prompt": "\n"}),
    ],
)
def test_empty_prompt(rendering, prompt):
    with pytest.raises(UserError, match=r"prompt p: the prompt is empty"):
        rendered(rendering, prompt)


def test_no_token_at_all():
    with pytest.raises(UserError, match="renders to no token"):
        rendered(CHAT, tokenizer=Tokenizer(" "))


def test_what_needs_a_chat_template():
    with pytest.raises(UserError, match="has messages"):
        rendered(PLAIN)
    with pytest.raises(UserError, match="need a chat template"):
        rendered(PLAIN | {"system": "x"}, {"id": "p", "prompt": "hi"})


def test_real_tokenizer():
    transformers = pytest.importorskip("transformers", reason="transformers lives in the environments of the revisions")
    tokenizers = pytest.importorskip("tokenizers")
    words = ["<unk>", "<bos>", "<user>", "<assistant>", "hello", "there"]
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>")
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    inner.post_processor = tokenizers.processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<bos>", unk_token="<unk>")
    prompt = {"id": "p", "prompt": "hello there"}
    assert render(tokenizer, prompt, PLAIN, context=9, file="f") == [1, 4, 5]
    with pytest.raises(UserError, match="no chat template"):
        render(tokenizer, PROMPT, CHAT, context=9, file="f")
    tokenizer.chat_template = TEMPLATE
    assert render(tokenizer, PROMPT, CHAT, context=9, file="f") == [2, 4, 5, 3]
    assert render(tokenizer, PROMPT, CHAT | {"enable_thinking": False}, context=9, file="f")[-4:] == [2, 4, 5, 3]
