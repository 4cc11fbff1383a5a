"""The drawing of docs/methods.md says what the code does."""

from __future__ import annotations

import numpy as np

from servingbench.figures.tree_step import NODES, draw_tree_step, tree_step


def test_the_drawn_step_is_a_real_one():
    step = tree_step()
    assert len(step.draft.tokens) == len(step.probs) == NODES
    assert step.probs == sorted(step.probs, reverse=True)
    assert [step.words[row] for row in step.kept] == ["cat", "sat", "on", "the"]
    assert step.own == "rug"
    assert step.kept != list(range(len(step.kept)))  # the accepted branch is not the first: its rows must move
    # Every row sees itself and its parent's ancestors, and nothing else of the draft.
    for node, parent in enumerate(step.draft.parents):
        seen = set(np.flatnonzero(~step.hidden[node + 1]))
        assert seen == set(np.flatnonzero(~step.hidden[parent + 1])) | {node + 1}


def test_the_drawing_shows_every_word_and_probability():
    step, figure = tree_step(), draw_tree_step()
    texts = [text.get_text() for text in figure.axes[0].texts]
    for word in step.words[1:]:
        assert texts.count(word) >= 3 * step.words[1:].count(word)  # tree, mask, cache
    for prob in step.probs:
        assert f"{prob:.2f}" in texts
