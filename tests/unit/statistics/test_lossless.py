"""The lossless gate: honest methods pass, a corrupted cache and a single wrong token do not."""

import dataclasses

import pytest
import torch
from tests.fixtures.tiny_folder import tiny_model

from servingbench.decoding import Request, build_method, greedy_reference
from servingbench.decoding.drafts.base import Draft, NoDraft
from servingbench.decoding.loop import LoopMethod
from servingbench.decoding.target import Target
from servingbench.errors import UserError
from servingbench.prompts.prepare import PreparedPrompt
from servingbench.records.files import sha256_token_ids
from servingbench.statistics.lossless import Gate, audit, float32_twin, teacher_forced_gaps

EPSILON = {"float32": 0.01, "bfloat16": 1.0}
NEW = 24


class TwoBranches(NoDraft):
    """Drafts trees of depth 3 with two branches: nonsense first, then what the model wrote when it was asked before."""

    max_nodes = 6

    def __init__(self, model, prompts):
        self.answers = {}
        for prompt in prompts:
            request = Request(prompt.token_ids, NEW + 4, frozenset())
            self.answers[prompt.token_ids] = greedy_reference(model, request).new_token_ids

    def start(self, prompt_ids):
        self.answer, self.place = self.answers[tuple(prompt_ids)], 0

    def extend(self, token_ids):
        self.place += len(token_ids)

    def propose(self, *, max_depth):
        right = self.answer[self.place : self.place + min(3, max_depth)]
        wrong = [(token + 17) % 300 for token in right]
        count = len(right)
        return Draft.tree(wrong + right, [*range(-1, count - 1), -1, *range(count, 2 * count - 1)])


class SiblingsLeftBehind(Target):
    """The classic fault: after a step its first rows stay, the rejected siblings', and not the accepted path's."""

    def new_cache(self, **sizes):
        cache = super().new_cache(**sizes)
        honest = cache.commit
        cache.commit = lambda rows: honest(range(len(rows)))
        return cache


class Altered:
    """A method whose answers are altered on their way out."""

    def __init__(self, method, alter):
        self.method, self.name, self.alter = method, method.name, alter

    def generate(self, request):
        return self.alter(self.method.generate(request))

    def observe(self, prompt_ids, new_token_ids):
        pass

    def warm_up(self):
        pass


def gate(dtype, methods, *, count=3, eos=frozenset()):
    model = tiny_model(dtype=dtype, eos_token_id=None)
    ids = [tuple((11 * number + 5 * k * k) % 300 + 2 for k in range(6 + number)) for number in range(count)]
    prompts = [PreparedPrompt(f"p{number}", tokens, sha256_token_ids(tokens)) for number, tokens in enumerate(ids)]
    return Gate(model, methods(model, prompts), prompts, NEW, eos, EPSILON[dtype])


def loop(model, draft="none", **options):
    return build_method(draft, {"kind": "loop", "draft": draft, "options": options}, model=model)


def judged(dtype, build, **options):
    result = audit(gate(dtype, lambda model, prompts: {"method": build(model, prompts)}, **options))
    return result["methods"]["method"], result["baseline_worst_gap"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_honest_methods_pass(dtype):
    whole = gate(
        dtype,
        lambda model, prompts: {
            "autoregressive": loop(model),
            "prompt_lookup": loop(model, "prompt_lookup", num_tokens=6, max_ngram=2),
            "tree": LoopMethod("tree", Target(model), TwoBranches(model, prompts)),
        },
    )
    result = audit(whole)
    for entry in result["methods"].values():
        assert (entry["passed"], entry["reason"], entry["prompts"]) == (True, None, 3)
        assert [record["prompt_id"] for record in entry["records"]] == ["p0", "p1", "p2"]
        assert 0 <= entry["worst_gap"] <= EPSILON[dtype]
    assert result["methods"]["autoregressive"]["identical_outputs"] == 3
    assert result["methods"]["autoregressive"]["worst_gap"] == result["baseline_worst_gap"]
    tree = whole.methods["tree"].generate(Request(whole.prompts[0].token_ids, NEW, frozenset()))
    assert max(accepted for _, _, accepted in tree.steps) == 3, "the second branch must have been accepted"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rejected_siblings_left_in_the_cache_fail(dtype):
    def faulty(model, prompts):
        return LoopMethod("tree", SiblingsLeftBehind(model), TwoBranches(model, prompts))

    entry, _ = judged(dtype, faulty)
    assert not entry["passed"]
    assert entry["worst_gap"] > EPSILON[dtype]
    assert "differs from greedy" in entry["reason"] if dtype == "float32" else "below the best logit" in entry["reason"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("place", [0, 10, NEW - 1])
def test_one_wrong_token_fails(dtype, place):
    def wrong(answer):
        tokens = list(answer.new_token_ids)
        tokens[place] = (tokens[place] + 1) % 300
        return dataclasses.replace(answer, new_token_ids=tokens)

    entry, baseline = judged(dtype, lambda model, prompts: Altered(loop(model), wrong), count=1)
    assert not entry["passed"]
    assert entry["worst_gap"] > EPSILON[dtype] >= baseline
    assert entry["records"][0]["first_divergence"]["index"] == place
    assert entry["identical_outputs"] == 0


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (lambda tokens: tokens[:-1], "stops after 23 tokens"),
        (lambda tokens: [], "stops after 0 tokens"),
        (lambda tokens: [*tokens, tokens[0]], "runs on beyond its end"),
    ],
)
def test_an_output_that_ends_at_the_wrong_place_fails(alter, reason):
    def altered(answer):
        return dataclasses.replace(answer, new_token_ids=alter(answer.new_token_ids))

    entry, _ = judged("bfloat16", lambda model, prompts: Altered(loop(model), altered))
    assert not entry["passed"]
    assert reason in entry["reason"]


def test_an_output_that_ends_with_end_of_sequence_passes_and_one_beyond_it_fails():
    model = tiny_model(eos_token_id=None)
    prompt = tuple((5 * k * k) % 300 + 2 for k in range(6))
    written = greedy_reference(model, Request(prompt, NEW, frozenset())).new_token_ids
    eos = frozenset({written[4]})
    entry, _ = judged("float32", lambda model, prompts: loop(model), count=1, eos=eos)
    assert entry["passed"]
    ends = written.index(written[4])

    def runs_on(answer):
        return dataclasses.replace(answer, new_token_ids=written[: ends + 3])

    entry, _ = judged("float32", lambda model, prompts: Altered(loop(model), runs_on), count=1, eos=eos)
    assert "runs on beyond its end" in entry["reason"]


def test_a_method_that_raises_fails_with_its_error_and_keeps_its_other_records():
    calls = []

    def raises(answer):
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("no kernel\nfor this")
        return answer

    entry, _ = judged("float32", lambda model, prompts: Altered(loop(model), raises))
    assert (entry["passed"], entry["prompts"], entry["identical_outputs"]) == (False, 2, 2)
    assert entry["reason"] == "failed on p1: RuntimeError: no kernel"


def test_overrun_is_recorded_and_no_failure():
    def overran(answer):
        return dataclasses.replace(answer, overrun_tokens=3)

    entry, _ = judged("float32", lambda model, prompts: Altered(loop(model), overran))
    assert entry["passed"]
    assert [record["overrun_tokens"] for record in entry["records"]] == [3, 3, 3]


def test_gaps_are_those_of_a_token_by_token_computation():
    model = tiny_model()
    prompt, output = [5, 9, 30], [7, 100, 8, 41]
    expected = []
    for place, token in enumerate(output):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *output[:place]]])).logits[0, -1]
        expected.append(float(logits.max() - logits[token]))
    assert teacher_forced_gaps(model, prompt, output) == pytest.approx(expected, abs=1e-4)
    assert teacher_forced_gaps(model, prompt, []) == []


def test_a_model_without_finite_logits_judges_nothing():
    model = tiny_model()
    with torch.no_grad():
        model.lm_head.weight[7, 0] = float("nan")
    with pytest.raises(UserError, match="not finite in float32"):
        teacher_forced_gaps(model, [5, 9, 30], [7, 100])


def test_identical_outputs_are_audited_once():
    def methods(model, prompts):
        return {name: loop(model) for name in ("a", "b", "c")}

    whole = gate("float32", methods, count=2)
    forwards = []
    hook = whole.model.register_forward_pre_hook(
        lambda module, args, kwargs: forwards.append(kwargs.get("use_cache")), with_kwargs=True
    )
    audit(whole)
    hook.remove()
    assert forwards.count(False) == 2  # one teacher-forced forward, without a cache, per prompt


def test_the_float32_twin_is_a_copy_of_low_precision_weights_alone():
    full = tiny_model()
    assert float32_twin(full) is full
    half = tiny_model(dtype="bfloat16")
    twin = float32_twin(half)
    assert (twin.dtype, half.dtype) == (torch.float32, torch.bfloat16)
    assert torch.equal(twin.lm_head.weight, half.lm_head.weight.float())
