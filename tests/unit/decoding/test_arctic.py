"""Arctic Inference's drafts in our loop: what its library proposes, verified like any other draft."""

from __future__ import annotations

import random

import pytest
from tests.fixtures.tiny_models import naive_greedy, tiny_model

from servingbench.decoding import Request, build_method
from servingbench.decoding.drafts.arctic import ArcticDrafter, arctic_available, cut
from servingbench.decoding.drafts.base import Draft
from servingbench.errors import UserError
from servingbench.peers import arctic
from servingbench.provenance import package_versions

built = pytest.mark.skipif(not arctic_available(), reason="Arctic Inference is not built here: make arctic")
VOCABULARY = 12


@built
@pytest.mark.parametrize("source", ["local", "both"])
@pytest.mark.parametrize("tree", [False, True])
def test_lossless_in_the_loop(tree, source):
    model = tiny_model("llama", vocab_size=VOCABULARY)
    options = {"tree": tree, "source": source, "max_spec_tokens": 9, "max_spec_factor": 3.0, "min_token_prob": 0.05}
    method = build_method("mine", {"kind": "loop", "draft": "arctic", "options": options}, model=model)
    method.warm_up()
    accepted = branched = 0
    for seed in range(4):
        rng = random.Random(seed)
        prompt = tuple(rng.randrange(VOCABULARY) for _ in range(1 + 9 * seed))
        for new in (1, 2, 5, 30):
            expected = naive_greedy(model, prompt, new=new)
            generation = method.generate(Request(prompt, new, frozenset()))
            assert generation.new_token_ids == expected
            accepted += sum(step[2] for step in generation.steps)
            branched += sum(proposed > depth for proposed, depth, _ in generation.steps)
        method.observe(prompt, expected)
    assert accepted > 0
    assert (branched > 0) == tree


@built
def test_the_library_continues_the_longest_match():
    drafter = ArcticDrafter(max_spec_tokens=3, max_spec_factor=9.0)
    drafter.start([1, 2, 3, 4, 5, 6, 1, 2])
    assert drafter.propose(max_depth=9) == Draft.path([3, 4, 5])
    assert drafter.propose(max_depth=2) == Draft.path([3, 4])
    drafter.extend([3])
    assert drafter.propose(max_depth=9).tokens == [4, 5, 6]
    drafter.extend([9])
    assert drafter.propose(max_depth=9) is None
    tree = ArcticDrafter(tree=True, max_spec_factor=9.0)
    tree.start([1, 2, 3, 4, 5, 1, 2, 4, 5, 6, 1, 2])
    draft = tree.propose(max_depth=2)
    assert {token for token, depth in zip(draft.tokens, draft.depths, strict=True) if depth == 1} == {3, 4}
    assert max(draft.depths) == 2


@built
def test_only_observed_responses_are_shared():
    prompt, answer = [7, 1, 2], [3, 4, 5, 6]
    for source in ("local", "both"):
        drafter = ArcticDrafter(source=source, max_spec_factor=9.0)
        drafter.start(prompt)
        drafter.extend(answer)
        drafter.start([9, 3])  # as a repeat or another prompt, before anything is observed
        drafter.extend([4])
        assert drafter.propose(max_depth=9) is None
        drafter.observe(prompt, answer)
        drafter.start([9, 3])
        drafter.extend([4])
        draft = drafter.propose(max_depth=9)
        assert draft == (Draft.path([5, 6]) if source == "both" else None)


@built
def test_a_run_says_which_version_it_used():
    ArcticDrafter()
    assert package_versions()["arctic-inference"] == "0.3.0"


@pytest.mark.parametrize("max_depth", [1, 2, 4])
def test_a_tree_is_cut_at_the_cap(max_depth):
    rng = random.Random(max_depth)
    parents = [rng.randrange(-1, node) for node in range(30)]
    tree = Draft.tree(list(range(30)), parents)
    short = cut(tree, max_depth)
    assert short.tokens == [token for token, depth in enumerate(tree.depths) if depth <= max_depth]
    for node, token in enumerate(short.tokens):
        parent = short.parents[node]
        assert (short.tokens[parent] if parent >= 0 else -1) == parents[token]
        assert short.depths[node] == tree.depths[token]


def test_without_the_library_the_row_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(arctic, "FOLDER", arctic.ROOT / tmp_path.name)
    with pytest.raises(UserError, match=r"not built.*make arctic"):
        build_method("mine", {"kind": "loop", "draft": "arctic"}, model=tiny_model("llama"))
