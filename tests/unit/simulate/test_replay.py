"""Replay counts what the loop counts, prompt lookup is transformers' own, and a corpus is checked line by line."""

from __future__ import annotations

import json
import random

import pytest
import torch
from tests.fixtures.tiny_models import tiny_model
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from servingbench.decoding import Request
from servingbench.decoding.drafts.arctic import ArcticDrafter, arctic_available
from servingbench.decoding.drafts.prompt_lookup import PromptLookup
from servingbench.decoding.drafts.suffix import SuffixDrafter
from servingbench.decoding.loop import LoopMethod
from servingbench.decoding.target import Target
from servingbench.errors import UserError
from servingbench.simulate.corpus import loops, read_corpus
from servingbench.simulate.replay import replay

VOCABULARY = 12
DRAFTERS = {
    "tree": lambda: SuffixDrafter(width=4, num_tokens=12),
    "path": lambda: SuffixDrafter(num_tokens=8),
    "prompt lookup": PromptLookup,
    "arctic": lambda: ArcticDrafter(tree=True, max_spec_factor=4.0, max_spec_offset=2.0),
}


@pytest.mark.parametrize("which", DRAFTERS)
@pytest.mark.parametrize("eos", [(), (3, 5)])
def test_replay_takes_the_loops_steps(which, eos):
    if which == "arctic" and not arctic_available():
        pytest.skip("Arctic Inference is not built here: make arctic")
    target = Target(tiny_model("llama", vocab_size=VOCABULARY))
    accepted = 0
    for seed in range(6):
        rng = random.Random(seed)
        prompt = [rng.randrange(VOCABULARY) for _ in range(1 + 4 * seed)]
        for cap in (1, 2, 40):
            loop = LoopMethod("m", target, DRAFTERS[which]())
            written = loop.generate(Request(tuple(prompt), cap, frozenset(eos)))
            known = replay(DRAFTERS[which](), prompt, written.new_token_ids, cap=cap, eos_token_ids=eos)
            forced = loop.generate(Request(tuple(prompt), cap, frozenset(eos), tuple(written.new_token_ids)))
            assert known.steps == forced.steps[1:]
            assert known.tokens == len(written.new_token_ids) - 1
            accepted += sum(step[2] for step in known.steps)
    assert accepted > 0


@pytest.mark.parametrize("num_tokens", [3, 10])
@pytest.mark.parametrize("max_ngram", [1, 2, 3])
def test_prompt_lookup_is_transformers_own(num_tokens, max_ngram):
    theirs = PromptLookupCandidateGenerator(
        num_output_tokens=num_tokens,
        max_matching_ngram_size=max_ngram,
        max_length=10_000,
        eos_token_id=torch.tensor([VOCABULARY]),
    )
    proposed = 0
    for seed in range(40):
        rng = random.Random(seed)
        ours = PromptLookup(num_tokens=num_tokens, max_ngram=max_ngram)
        text = [rng.randrange(VOCABULARY) for _ in range(1 + seed)]
        ours.start(text)
        for _ in range(20):
            candidates, _ = theirs.get_candidates(torch.tensor([text]))
            draft = ours.propose(max_depth=100)
            assert (draft.tokens if draft else []) == candidates[0, len(text) :].tolist()
            proposed += bool(draft)
            text.append(rng.randrange(VOCABULARY))
            ours.extend(text[-1:])
    assert proposed > 100


def test_loops_are_repeated_tails():
    assert loops([9, 8] + [1, 2, 3] * 8)
    assert loops([7] * 24)
    assert not loops(list(range(128)))
    assert not loops([1, 2, 3] * 8 + [4])
    assert not loops([7] * 23)
    assert loops(list(range(20)) * 3)
    assert not loops(list(range(20)) * 2 + list(range(19)))


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[]",
        {"task": "a", "prompt": [1]},
        {"task": "", "prompt": [1], "out": [1]},
        {"task": "a", "prompt": [], "out": [1]},
        {"task": "a", "prompt": [1], "out": [-1]},
        {"task": "a", "prompt": [1], "out": [True]},
    ],
)
def test_a_malformed_record_is_named_by_its_line(tmp_path, bad):
    good = json.dumps({"task": "a", "prompt": [1], "out": [2]})
    file = tmp_path / "corpus.jsonl"
    file.write_text(f"{good}\n{bad if isinstance(bad, str) else json.dumps(bad)}\n")
    with pytest.raises(UserError, match="line 2"):
        read_corpus(file)
