"""The embedded model in float32: every method writes its greedy text, on prompts of every workload."""

from __future__ import annotations

import json

import pytest
import torch
import transformers

from servingbench.decoding import Request, build_method, greedy_reference
from servingbench.prompts.render import render

WORKLOADS = ("code-editing", "code-generation", "math", "chat", "text-to-sql")
PROMPTS = 4  # of each workload, the shortest
NEW_TOKENS = 12
ROWS = {
    "prompt_lookup": {"kind": "loop", "draft": "prompt_lookup"},
    "suffix": {"kind": "loop", "draft": "suffix", "options": {"width": 1, "source": "both"}},
    "tree": {"kind": "loop", "draft": "suffix", "options": {"width": 8, "source": "both"}},
    "prompt_lookup_hf": {"kind": "transformers", "options": {"prompt_lookup_num_tokens": 10}},
}


@pytest.fixture(scope="module")
def embedded(repository):
    folder = repository / "resources" / "models" / "smollm2-135m"
    if not (folder / "model.safetensors").exists():
        pytest.skip("the embedded model is not there; `make demo` fetches it")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, transformers.PreTrainedTokenizerFast.from_pretrained(folder)


@pytest.fixture(scope="module")
def requests_and_texts(embedded, repository):
    model, tokenizer = embedded
    found = []
    for workload in WORKLOADS:
        file = repository / "config" / "prompts" / f"{workload}.jsonl"
        for line in sorted(file.read_text(encoding="utf-8").splitlines(), key=len)[:PROMPTS]:
            row = json.loads(line)
            prompt = {"id": row["id"], "messages": row.get("messages") or [{"role": "user", "content": row["prompt"]}]}
            rendering = {"chat_template": True, "system": None, "enable_thinking": None}
            ids = render(tokenizer, prompt, rendering, context=8192, file=file)
            request = Request(tuple(ids), NEW_TOKENS, frozenset([model.config.eos_token_id]))
            found.append((request, greedy_reference(model, request).new_token_ids))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_greedy_on_the_real_model(name, embedded, requests_and_texts):
    method = build_method(name, ROWS[name], model=embedded[0])
    accepted = 0
    for request, text in requests_and_texts:
        generation = method.generate(request)
        assert generation.new_token_ids == text
        accepted += sum(step[2] for step in generation.steps)
        method.observe(request.prompt_ids, text)
    assert accepted > 0
