"""Sampling along a draft draws from the model's own distribution, and a wrong acceptance rule does not."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.fixtures.loop_methods import ROWS, SMALL, random_table
from tests.fixtures.tiny_models import SHAPES, build, naive_greedy, tiny_model

from servingbench.decoding import Request, build_method
from servingbench.decoding.drafts import DRAFTS
from servingbench.decoding.drafts.base import Draft, Drafter, NoDraft
from servingbench.decoding.loop import LoopMethod
from servingbench.errors import UserError

VOCABULARY = 8
PROMPT = (1, 2, 3, 4, 5, 1, 2, 3, 4, 6, 1, 2, 4, 3, 1, 2)
DRAWS = 3000
NEW = 6  # tokens; the joint distribution of the first four is judged, and drafts reach beyond them
prompts = st.lists(st.integers(0, SMALL - 1), min_size=1, max_size=30)


class TableTarget:
    """A model of two tokens' memory with known probabilities, (vocabulary,) * 3; its cache is the text itself."""

    device = torch.device("cpu")

    def __init__(self, probs: torch.Tensor) -> None:
        self.logits = probs.log()

    def new_cache(self, **sizes: int) -> TableTarget:
        return self

    def synchronize(self) -> None:
        pass

    def prefill(self, cache: TableTarget, prompt_ids: tuple[int, ...]) -> torch.Tensor:
        self.text = list(prompt_ids)
        return self.logits[self.text[-2], self.text[-1]][None]

    def verify(self, cache: TableTarget, last: int, draft: Draft | None) -> torch.Tensor:
        self.rows = [last, *(draft.tokens if draft else [])]
        before = [self.text[-1], *(self.rows[parent + 1] for parent in (draft.parents if draft else []))]
        return self.logits[before, self.rows]

    def commit(self, rows: list[int]) -> None:
        self.text += [self.rows[row] for row in rows]


def table_of_probs(*, seed: int) -> torch.Tensor:
    """Half of the time what followed in the prompt, so that drafts are good but far from certain; else anything."""
    generator = torch.Generator().manual_seed(seed)
    probs = torch.softmax(1.5 * torch.randn((VOCABULARY,) * 3, generator=generator, dtype=torch.float64), dim=-1)
    for first, second, third in zip(PROMPT, PROMPT[1:], PROMPT[2:], strict=False):
        probs[first, second] *= 0.6
        probs[first, second, third] += 0.4
    return probs


def p_value(outputs: list[list[int]], exact: np.ndarray) -> float:
    """Of the chi-square test of the first tokens' joint distribution; rare texts are one cell."""
    observed = np.zeros(exact.shape)
    for output in outputs:
        observed[tuple(output[: exact.ndim])] += 1
    expected = exact / exact.sum() * len(outputs)
    usual = expected >= 5
    assert usual.sum() > 20
    cells = [np.append(counts[usual], counts[~usual].sum()) for counts in (observed, expected)]
    return float(chisquare(*cells).pvalue)


PROBS = table_of_probs(seed=1)
START = PROBS[PROMPT[-2], PROMPT[-1]]
EXACT = torch.einsum("a,ab,abc,bcd->abcd", START, PROBS[PROMPT[-1]], PROBS, PROBS).numpy()


def draw(method: LoopMethod, *, first_seed: int = 0) -> list[list[int]]:
    seeds = range(first_seed, first_seed + DRAWS)
    requests = (Request(PROMPT, NEW, frozenset(), temperature=1.0, seed=seed) for seed in seeds)
    return [method.generate(request).new_token_ids for request in requests]


def drafter_of(name: str) -> Drafter:
    options = dict(ROWS[name]["options"])
    if options.get("static_table"):
        options["static_table"] = random_table(VOCABULARY)
    return DRAFTS[ROWS[name]["draft"]](**options)


class Watched(NoDraft):
    """Another drafter, whose drafts are kept for the wrong rules to look at."""

    def __init__(self, drafter: Drafter) -> None:
        self.max_nodes = drafter.max_nodes
        self.drafter = drafter
        self.start, self.extend = drafter.start, drafter.extend

    def propose(self, *, max_depth: int) -> Draft | None:
        self.last = self.drafter.propose(max_depth=max_depth)
        return self.last


@pytest.mark.parametrize(("number", "name"), [*enumerate(sorted(ROWS.keys() - {"tree_by_cost"}))])
def test_every_method_samples_from_the_exact_joint_distribution(number, name):
    method = LoopMethod(name, TableTarget(PROBS), drafter_of(name))
    # Seeds of its own, for from the same ones all methods write the same texts.
    outputs = draw(method, first_seed=number * DRAWS)
    assert p_value(outputs, EXACT) > 0.001


def by_the_book(probs, children, rng):
    """Accept each child with its share of what is left; then draw from the residual."""
    left = probs.copy()
    for child in children:
        if rng.random() < left[child] / left.sum():
            return child
        left[child] = 0
    return rng.choice(len(left), p=left / left.sum())


def the_largest_is_accepted(probs, children, rng):
    best = int(probs.argmax())
    return best if best in children else rng.choice(len(probs), p=probs)


def rejected_tokens_stay_in_the_residual(probs, children, rng):
    for child in children:
        if rng.random() < probs[child]:
            return child
    return rng.choice(len(probs), p=probs)


def siblings_forget_earlier_rejections(probs, children, rng):
    """Only wrong where a node has several children."""
    for child in children:
        if rng.random() < probs[child]:
            return child
    left = probs.copy()
    left[children] = 0
    return rng.choice(len(left), p=left / left.sum())


class Ruled(LoopMethod):
    """The loop with another acceptance rule."""

    def __init__(self, rule, name: str) -> None:
        super().__init__(name, TableTarget(PROBS), Watched(drafter_of(name)))
        self.rule, self.rng = rule, np.random.default_rng(0)
        self.siblings = 0

    def choices(self, request: Request):
        def choices(logits, request, committed):
            draft = self.drafter.last if committed else None

            def choose(row: int, place: int) -> int:
                found = zip(draft.tokens, draft.parents, strict=True) if draft else ()
                children = [token for token, parent in found if parent == row - 1]
                self.siblings += len(children) > 1
                return int(self.rule(torch.softmax(logits[row], dim=-1).numpy(), children, self.rng))

            return choose

        return choices


@pytest.mark.parametrize("name", ["suffix", "tree"])
@pytest.mark.parametrize(
    "rule",
    [
        by_the_book,
        the_largest_is_accepted,
        rejected_tokens_stay_in_the_residual,
        siblings_forget_earlier_rejections,
    ],
)
def test_the_chi_square_tells_right_rules_from_wrong_ones(rule, name):
    method = Ruled(rule, name)
    p = p_value(draw(method), EXACT)
    assert (method.siblings > DRAWS) == (name == "tree")
    if rule is by_the_book or (rule is siblings_forget_earlier_rejections and name == "suffix"):
        assert p > 0.001
    else:
        assert p < 1e-9


def test_a_real_model_is_sampled_exactly():
    model = build("llama", vocab_size=VOCABULARY, num_hidden_layers=1)
    prompt = (1, 2, *naive_greedy(model, (1, 2), new=14))  # its own words, so that it accepts copies of them
    texts = torch.tensor([[*prompt, *tail] for tail in product(range(VOCABULARY), repeat=2)])
    temperature = 1.4
    with torch.no_grad():
        probs = torch.softmax(model(input_ids=texts).logits[:, -3:].double() / temperature, dim=-1)
    probs = probs.view(VOCABULARY, VOCABULARY, 3, VOCABULARY)
    exact = torch.einsum("a,ab,abc->abc", probs[0, 0, 0], probs[:, 0, 1], probs[:, :, 2]).numpy()
    method = build_method("tree", ROWS["tree"], model=model)
    requests = [Request(prompt, 4, frozenset(), temperature=temperature, seed=seed) for seed in range(800)]
    generations = [method.generate(request) for request in requests]
    assert sum(step[2] for generation in generations for step in generation.steps) > 500
    assert p_value([generation.new_token_ids for generation in generations], exact) > 0.001


@torch.no_grad()
def naive_sampling(model, request: Request) -> list[int]:
    """Sampling without a cache: the whole text at every step."""
    generator = torch.Generator().manual_seed(request.seed)
    text = list(request.prompt_ids)
    while len(text) < len(request.prompt_ids) + request.max_new_tokens:
        logits = model(input_ids=torch.tensor([text]), use_cache=False).logits[:, -1]
        text.append(int(torch.multinomial(torch.softmax(logits / request.temperature, -1), 1, generator=generator)))
        if text[-1] in request.eos_token_ids:
            break
    return text[len(request.prompt_ids) :]


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(ROWS)),
    shape=st.sampled_from(SHAPES),
    prompt=prompts,
    new=st.integers(1, 25),
    temperature=st.sampled_from([0.1, 0.7, 1.0, 1.5]),
    seed=st.integers(0, 2**63 - 1),
    eos=st.sets(st.integers(0, SMALL - 1), max_size=2),
)
def test_from_one_seed_every_method_writes_what_plain_sampling_writes(name, shape, prompt, new, temperature, seed, eos):
    model = tiny_model(shape, vocab_size=SMALL)
    method = build_method(name, ROWS[name], model=model, static_table=random_table(SMALL))
    request = Request(tuple(prompt), new, frozenset(eos), temperature=temperature, seed=seed)
    expected = naive_sampling(model, request)
    assert method.generate(request).new_token_ids == expected
    # A forced replay of the sampled text does the same work.
    replay = method.generate(Request(tuple(prompt), new, frozenset(eos), tuple(expected), temperature=0.9, seed=1))
    assert replay.new_token_ids == expected
    assert replay.steps == method.generate(request).steps


def test_a_processor_sees_each_committed_token_once_and_in_order():
    model = tiny_model("llama", vocab_size=SMALL)
    seen = []

    def processor(ids, scores):
        assert (ids.shape[0], scores.shape, scores.dtype) == (1, (1, SMALL), torch.float32)
        seen.append(ids[0].tolist())
        return scores.fill_(0.0)  # in place, and uniform

    method = build_method("tree", ROWS["tree"], model=model)
    prompt = [1, 2, 3, 1, 2, 3, 1]
    for temperature in (0.0, 1.0):
        seen.clear()
        request = Request(tuple(prompt), 15, frozenset(), temperature=temperature, seed=3, processors=processor)
        text = prompt + method.generate(request).new_token_ids
        assert seen == [text[:end] for end in range(len(prompt), len(text))]
        assert (set(text[len(prompt) :]) == {0}) == (temperature == 0)


def test_a_seed_makes_a_request_reproducible():
    model = tiny_model("llama", vocab_size=SMALL)
    method = build_method("tree", ROWS["tree"], model=model)

    def sample(seed: int | None) -> list[int]:
        return method.generate(Request((1, 2, 3), 20, frozenset(), temperature=1.5, seed=seed)).new_token_ids

    torch.manual_seed(0)
    first, known = sample(None), sample(4)
    assert sample(4) == known
    assert sample(5) != known
    torch.manual_seed(0)
    assert sample(None) == first
    assert sample(None) != first


@pytest.mark.parametrize("temperature", [-1.0, math.inf, math.nan])
def test_a_temperature_that_is_none_is_refused(temperature):
    method = build_method("a", ROWS["autoregressive"], model=tiny_model("llama"))
    with pytest.raises(UserError, match="temperature"):
        method.generate(Request((1, 2), 3, frozenset(), temperature=temperature))
