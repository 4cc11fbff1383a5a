"""docs/methods.md keeps step with the tables and the code: methods, options, defaults, links, worked examples."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
import yaml

from servingbench.decoding.drafting import best_size
from servingbench.decoding.drafts import DRAFTS
from servingbench.decoding.drafts.prompt_lookup import PromptLookup
from servingbench.decoding.drafts.suffix import ALL_ORDERS, ALPHAS
from servingbench.decoding.drafts.suffix_published import published
from servingbench.figures.tree_step import tree_step
from servingbench.provenance import ROOT

PAGE = (ROOT / "docs/methods.md").read_text()
SENTENCES = " ".join(PAGE.split())
METHODS = yaml.safe_load((ROOT / "config/methods.yaml").read_text())
SECTIONS = {"prompt_lookup": "Prompt lookup", "suffix": "Suffix", "suffix_published": "The published suffix policies",
            "arctic": "Arctic's suffix trees"}  # fmt: skip


def section(title: str) -> str:
    return re.split(r"^##+ ", PAGE.split(f"\n## {title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def written(value: object) -> str:
    """A default as the page writes it."""
    if isinstance(value, tuple):
        return ", ".join(f"{part:g}" for part in value)
    return "none" if value in (None, ALL_ORDERS) else str(value).lower()


def test_every_method_and_option_is_explained():
    for name, row in METHODS.items():
        assert f"`{name}`" in PAGE, name
        for option in row.get("options", {}):  # those of a fork's rows are its own
            assert re.search(rf"`{option}\b", PAGE), (name, option)


@pytest.mark.parametrize("draft", SECTIONS)
def test_the_options_and_their_defaults_are_those_of_the_code(draft):
    rows = {}
    table = section(SECTIONS[draft]).split("| option | default |")[1]
    for options, default in re.findall(r"^\| (`.*?) \| (.*?) \|", table, flags=re.MULTILINE):
        names = re.findall(r"`(\w+)`", options.split(" (HF")[0])
        values = [default] if len(names) == 1 else default.split(", ")
        rows |= dict(zip(names, values, strict=True))
    code = {name: written(option.default) for name, option in inspect.signature(DRAFTS[draft]).parameters.items()}
    assert rows == code


def test_links_lead_somewhere():
    headings = re.findall(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#(.*?)\)", PAGE)) <= anchors
    for path in re.findall(r"\]\((?!#)(.*?)\)", PAGE):
        assert (ROOT / "docs" / path).is_file(), path
    for path in re.findall(r"`((?:config|decoding|src|workflow_scripts)/[\w/.-]+)`", PAGE):
        assert (ROOT / path).exists() or (ROOT / "src/servingbench" / path).exists(), path


def test_every_source_is_listed_and_used():
    body, sources = PAGE.split("\n## Sources\n")
    listed = re.findall(r"^- ([\w-]+),.*? ((?:19|20)\d\d)\.", sources, flags=re.MULTILINE)
    assert len(listed) == sources.count("\n- ")
    for author, year in listed:
        assert re.search(rf"{author}\b[^;:.]*,\s{year}", body) or re.search(rf"{author}\b[^;:]*?{year}", body), author


def test_prompt_lookup_example():
    drafter = PromptLookup()
    drafter.start(list(b"abcdab"))
    draft = drafter.propose(max_depth=10)
    assert "".join(map(chr, draft.tokens)) == "cdab"
    assert "After `a b c d a b` the pair `a b` occurred at the start: propose `c d a b`" in SENTENCES


def test_suffix_example():
    assert f"alpha = {ALPHAS[1]:g} for lengths 2 and 3" in SENTENCES and ALPHAS[1] == ALPHAS[2] and ALPHAS[3] == 1
    for shown in ("0.286", "0.143", "0.524", "0.095"):
        assert f"= {shown}" in SENTENCES
    step = tree_step()
    probs = {(step.drafted[node], step.draft.depths[node]): prob for node, prob in enumerate(step.probs)}
    assert f"{probs['ran', 1]:.3f} {probs['sat', 1]:.3f} {probs['to', 2]:.3f}" == "0.524 0.095 0.349"
    tree = ", ".join(f"`{step.drafted[node]}` ({step.probs[node]:.3f})" for node in range(1, 3))
    assert f"After `ran` ({step.probs[0]:.3f}), {tree} and `rug` ({step.probs[3]:.3f})" in SENTENCES
    assert step.drafted[4] == "sat" and "Rows 0, 5, 6 and 7 move to the slots 15 to 18" in SENTENCES
    assert (step.kept, step.cached, len(step.rows)) == ([0, 5, 6, 7], 15, 10)


def test_published_example():
    step = tree_step()
    ids = {word: number for number, word in enumerate(dict.fromkeys(step.words))}
    drafter = published(branch_factor=2)
    drafter.start([ids[word] for word in step.words])
    draft = drafter.propose(max_depth=4)
    first = [token for token, parent in zip(draft.tokens, draft.parents, strict=True) if parent == -1]
    assert first == [ids["ran"]]
    assert drafter.path_probabilities(1) == [1.0]


def test_size_example():
    costs, probs = np.array([0.0, 40, 42, 44, 50]), np.array([0.5, 0.2, 0.1])
    assert best_size(probs, 3, costs, 0.7) == 2
    for n, shown in enumerate(("0.0250", "0.0321", "0.0339", "0.0312")):
        assert f"{(1 + 0.7 * probs[:n].sum()) / costs[1 + n]:.4f}" == shown
        assert shown in section("The size of a draft")
