"""The drawing of docs/methods.md says what the code does."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from tests.fixtures.tiny_models import build

from servingbench.decoding.automaton_reference import ReferenceIndex, blended
from servingbench.decoding.cache import KVCache
from servingbench.decoding.drafting import MIN_WEIGHT
from servingbench.decoding.drafts.suffix import ALPHAS
from servingbench.decoding.target import Target
from servingbench.figures.save import save_figure
from servingbench.figures.style import style
from servingbench.figures.tree_step import DEPTH, NODES, TreeStep, draw_tree_step, tree_step
from servingbench.provenance import ROOT


@pytest.fixture(scope="module")
def step() -> TreeStep:
    return tree_step()


def path_to(step: TreeStep, node: int) -> list[int]:
    """Nodes from the root to one, itself included."""
    return [] if node < 0 else [*path_to(step, step.draft.parents[node]), node]


def blend(words: list[str], drafted: list[str]) -> dict[str, float]:
    """The reference's next-word probabilities."""
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    text = [ids[word] for word in words]
    found = blended(
        ReferenceIndex(texts=[text]), None, text, [ids[word] for word in drafted], alphas=ALPHAS, rec=1.0,
        max_orders=99, min_weight=MIN_WEIGHT, recent_share=0.0, recent_decay=0.98, table={},
    )  # fmt: skip
    return {word: found[number] for word, number in ids.items() if number in found}


def test_the_drawn_probabilities_are_the_formula(step):
    assert len(step.probs) == NODES
    assert max(step.draft.depths) == DEPTH
    assert step.probs == sorted(step.probs, reverse=True)
    for node, prob in enumerate(step.probs):
        *above, own = [step.drafted[one] for one in path_to(step, node)]
        parent = step.draft.parents[node]
        expected = blend(step.words, above)[own] * (1.0 if parent < 0 else step.probs[parent])
        assert prob == pytest.approx(expected)


def test_the_drawing_shows_a_branch_that_moves_and_a_word_that_was_not_drafted(step):
    assert step.kept != list(range(len(step.kept)))
    assert [step.rows[row] for row in step.kept[1:]] == step.written[:-1]
    last = step.accepted[-1]
    children = {word for word, parent in zip(step.drafted, step.draft.parents, strict=True) if parent == last}
    assert children and step.written[-1] not in children


def test_mask_positions_and_cache_are_those_of_a_real_forward(step):
    model = build("llama")  # not the shared one, which must stay without hooks
    received = {}
    model.register_forward_pre_hook(lambda _, args, kwargs: received.update(kwargs), with_kwargs=True)
    target = Target(model)
    ids = {word: number for number, word in enumerate(dict.fromkeys(step.slots))}
    cache = target.new_cache(prompt=step.cached, new=1, draft=len(step.rows))
    target.prefill(cache, [ids[word] for word in step.words[:-1]])
    target.verify(cache, ids[step.words[-1]], step.draft)
    assert received["position_ids"].tolist() == [step.positions]
    mask = received["attention_mask"]
    assert mask.shape == (1, 1, len(step.rows), len(step.slots))
    drawn = [[*range(step.cached), *(step.cached + other for other in seen)] for seen in step.seen]
    assert [np.flatnonzero(row == 0).tolist() for row in mask[0, 0].numpy()] == drawn


def test_the_drawn_cache_is_the_real_one(step):
    cache = KVCache(layers=1, capacity=len(step.slots))
    ids = {word: number for number, word in enumerate(dict.fromkeys(step.slots))}

    def forward(words: list[str]) -> torch.Tensor:
        rows = torch.tensor([float(ids[word]) for word in words]).view(1, 1, -1, 1)
        return cache.update(rows, rows, 0)[0].flatten()

    forward(step.words[:-1])
    cache.commit(range(step.cached))
    keys = forward(step.rows)  # a view: it shows what the commit moves
    names = list(ids)
    assert [names[int(key)] for key in keys] == step.slots
    cache.commit(step.kept)
    assert [names[int(key)] for key in keys] == step.committed
    assert cache.length == step.cached + len(step.kept)


def test_the_picture_in_docs_is_up_to_date(step, tmp_path):
    with style():
        (path,) = save_figure(draw_tree_step(step), tmp_path / "tree-step", ["svg"])

    def texts(svg: str) -> list[str]:
        """What is written in a picture; the rest of its bytes may differ between versions of matplotlib."""
        return re.findall("<!-- (.*?) -->", svg)

    made, kept = texts(path.read_text()), texts((ROOT / "docs/images/tree-step.svg").read_text())
    assert "0.524" in " ".join(made)
    assert made == kept, "run python workflow_scripts/draw_docs.py"
