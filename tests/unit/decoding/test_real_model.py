"""The embedded model in float32: every method writes its greedy text, on prompts of every kind."""

from __future__ import annotations

import json
from functools import cache

import pytest
import torch
import transformers

from servingbench.decoding import Request, build_method
from servingbench.decoding.drafts.arctic import arctic_available
from servingbench.prompts.render import render
from servingbench.statistics.lossless import teacher_forced_gaps

WORKLOADS = ("chat", "code-generation", "math")  # the shortest prompt of each
TEXTS = (  # to be continued; they repeat themselves, so that drafts are long, and right for a while
    "A B C D E F G A B C D E F G A B",
    "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,",
    "x x x y x x x y x x x",
    "0 1 0 1 0 1 0 1 0",
    "red green blue red green blue red",
    "ab ab ab cd ab ab ab cd ab ab",
    "left right left right left",
    "item 1, item 2, item 3, item 4,",
    "0.1, 0.2, 0.3, 0.4,",
    "(1, 2), (2, 3), (3, 4), (4,",
    "Q: 1+1\nA: 2\nQ: 1+2\nA: 3\nQ:",
    "x = 1\ny = 2\nz = 3\nx = 1\ny =",
    "print(1)\nprint(2)\nprint(3)\nprint(4)\n",
    "<p>a</p>\n<p>b</p>\n<p>",
    "import os\nimport sys\nimport re\nimport",
    "SELECT a FROM t;\nSELECT b FROM t;\nSELECT",
    "I do not know. I do not know. I do",
    "Roses are red, violets are blue. Roses are",
)
NEW_TOKENS = 12
ROUNDING = 1e-3  # logits
ROWS = {
    "suffix": {"kind": "loop", "draft": "suffix", "options": {"width": 1, "source": "both"}},
    "tree": {"kind": "loop", "draft": "suffix", "options": {"width": 8, "source": "both"}},
    "prompt_lookup": {"kind": "loop", "draft": "prompt_lookup"},
    "tree_published": {"kind": "loop", "draft": "suffix_published", "options": {"branch_factor": 2}},
    "prompt_lookup_hf": {"kind": "transformers", "options": {"prompt_lookup_num_tokens": 10}},
}
if arctic_available():
    ROWS["arctic_tree"] = {"kind": "loop", "draft": "arctic", "options": {"tree": True, "source": "both"}}


@pytest.fixture(scope="module")
def embedded(repository):
    folder = repository / "resources" / "models" / "smollm2-135m"
    if not (folder / "model.safetensors").exists():
        pytest.skip("the embedded model is not there; `make demo` fetches it")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, transformers.PreTrainedTokenizerFast.from_pretrained(folder)


@pytest.fixture(scope="module")
def requests(embedded, repository):
    model, tokenizer = embedded
    prompts = [tokenizer(text)["input_ids"] for text in TEXTS]
    for workload in WORKLOADS:
        file = repository / "config" / "prompts" / f"{workload}.jsonl"
        row = json.loads(min(file.read_text(encoding="utf-8").splitlines(), key=len))
        prompt = {"id": row["id"], "messages": row.get("messages") or [{"role": "user", "content": row["prompt"]}]}
        rendering = {"chat_template": True, "system": None, "enable_thinking": None}
        prompts.append(render(tokenizer, prompt, rendering, context=8192, file=file))
    return [Request(tuple(ids), NEW_TOKENS, frozenset([model.config.eos_token_id])) for ids in prompts]


@pytest.fixture(scope="module")
def greedy(embedded):
    """Whether a text is what greedy decoding writes; a text is computed once, in one forward without a cache."""

    @cache
    def judge(request: Request, text: tuple[int, ...]) -> bool:
        ended = len(text) == request.max_new_tokens or text[-1] in request.eos_token_ids
        return ended and max(teacher_forced_gaps(embedded[0], request.prompt_ids, text)) < ROUNDING

    return judge


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_greedy_on_the_real_model(name, embedded, requests, greedy):
    assert len(requests) > 20
    method = build_method(name, ROWS[name], model=embedded[0])
    tokens = forwards = 0
    for request in requests[:: 3 if name == "prompt_lookup_hf" else 1]:  # the peer's exactness is transformers' affair
        generation = method.generate(request)
        assert greedy(request, tuple(generation.new_token_ids))
        tokens += len(generation.new_token_ids)
        forwards += generation.forwards
        method.observe(request.prompt_ids, generation.new_token_ids)
    assert tokens / forwards > 1.3
