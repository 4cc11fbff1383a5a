"""The committed corpus replays to the same figures everywhere: drafts are functions of the text and their parameters.

Every parameter is spelled out, so that better defaults change nothing here. A change of the index, the probabilities or
the search does: look at what it did to these numbers, then write the new ones down.
"""

from __future__ import annotations

import inspect
import math

import pytest

from servingbench.decoding.drafts.prompt_lookup import PromptLookup
from servingbench.decoding.drafts.suffix import SuffixDrafter
from servingbench.simulate.arms import logs, replay_corpus, tokens_per_forward
from servingbench.simulate.corpus import loops, read_corpus
from servingbench.simulate.figures import groups, mean_log

NEVER = 1 << 30
BLENDED = {
    "alphas": (8.0, 4.0, 4.0, 1.0, 1.5, 0.4),
    "rec": 1.0,
    "max_orders": NEVER,
    "max_edges": 8,
    "recent_share": 0.4,
    "recent_decay": 0.98,
    "eagerness": 0.5,
    "min_prob": 0.0,
    "max_depth": NEVER,
    "max_tokens": 64,  # this and the next are for num_tokens "cost" alone
    "root_factor": 0.8,
    "shared_tokens": 1 << 16,
    "static_table": None,
    "source": "local",
}
LONGEST_MATCH = BLENDED | {
    "alphas": (0.0,),
    "rec": 0.0,
    "max_orders": 1,
    "max_edges": 64,
    "recent_share": 0.0,
    "eagerness": 1.0,
    "min_prob": 0.1,
    "max_depth": 64,
}
PINNED = {
    "prompt lookup": (PromptLookup, {"num_tokens": 10, "max_ngram": 2}, 2.031),
    "published path": (SuffixDrafter, LONGEST_MATCH | {"width": 1, "num_tokens": 10}, 2.172),
    "published tree": (SuffixDrafter, LONGEST_MATCH | {"width": 2, "num_tokens": 10}, 2.289),
    "path": (SuffixDrafter, BLENDED | {"width": 1, "num_tokens": 16}, 2.416),
    "tree": (SuffixDrafter, BLENDED | {"width": 8, "num_tokens": 64}, 3.071),
    "tree, earlier outputs too": (SuffixDrafter, BLENDED | {"width": 8, "num_tokens": 64, "source": "both"}, 3.280),
}


@pytest.fixture(scope="module")
def corpus(repository):
    return read_corpus(repository / "config" / "corpus" / "demo.jsonl")


def test_the_corpus_is_what_it_was(corpus):
    assert len({recording.task for recording in corpus}) == 9
    assert (len(corpus), sum(len(recording.out) for recording in corpus)) == (36, 3708)
    assert sum(loops(recording.out) for recording in corpus) == 6


@pytest.mark.parametrize("name", PINNED)
def test_tokens_per_forward_are_pinned(corpus, name):
    make, options, pinned = PINNED[name]
    assert options.keys() == inspect.signature(make).parameters.keys()
    odd = groups(corpus, half=1)
    rates = logs(replay_corpus(corpus, lambda: make(**options), cap=128, chosen=odd), tokens_per_forward)
    assert math.exp(mean_log(rates, odd)) == pytest.approx(pinned, abs=5e-4)
