"""Sampling: nested, deterministic, independent of row order, in bounded memory; and the prompt file."""

import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingbench.errors import UserError
from servingbench.prompts import sample as module
from servingbench.prompts.row import Row
from servingbench.prompts.sample import draw, rank, read_prompts, sample_workload, write_prompts
from servingbench.prompts.shape import Shape
from servingbench.records.schema import validate

BY_ID = Shape({}, chat_template=True)
BY_TEXT = Shape({"columns": {"id": None, "prompt": "prompt"}}, chat_template=True)


def as_rows(values):
    return [Row("f.jsonl", f"line {number}", dict(value)) for number, value in enumerate(values, start=1)]


def source(count):
    return [{"id": f"p{index}", "prompt": f"text {index}"} for index in range(count)]


def sample(values, *, seed=0, limit=5):
    return draw(as_rows(values), BY_ID, seed=seed, limit=limit, by_text=False)


def ids(drawn):
    return [prompt["id"] for prompt in drawn.prompts]


@given(
    names=st.sets(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip), min_size=1, max_size=40
    ),
    seed=st.integers(0, 2**40),
    limits=st.tuples(st.integers(1, 50), st.integers(1, 50)),
    data=st.data(),
)
def test_nested_and_independent_of_order(names, seed, limits, data):
    values = [{"id": name, "prompt": name} for name in sorted(names)]
    small, large = sorted(limits)
    drawn = sample(values, seed=seed, limit=large)
    shuffled = data.draw(st.permutations(values))
    assert sample(shuffled, seed=seed, limit=large) == drawn
    assert ids(sample(shuffled, seed=seed, limit=small)) == ids(drawn)[:small]
    assert len(drawn.prompts) == min(large, len(names))
    assert drawn.available == len(names)


def test_the_sample_is_the_smallest_ranks_in_order():
    expected = sorted((f"p{index}" for index in range(300)), key=lambda name: rank(name, seed=3))[:7]
    assert ids(sample(source(300), seed=3, limit=7)) == expected


def test_ranks_do_not_change_between_versions():
    # SHA-256 of "7\nmath-01": published samples must stay what they are.
    assert f"{rank('math-01', seed=7):064x}" == "c4d3ffe668ef09957478c36b027ad72bc371e19fe75bba0d1865372564b6a4f1"


def test_seeds_give_different_samples():
    samples = {tuple(ids(sample(source(50), seed=seed))) for seed in range(20)}
    assert len(samples) == 20


def test_every_prompt_is_about_equally_likely():
    counts = Counter(name for seed in range(2000) for name in ids(sample(source(10), seed=seed, limit=3)))
    # 600 expected for each, with a standard deviation of 20.5.
    assert all(500 < counts[f"p{index}"] < 700 for index in range(10))


def test_fingerprint_is_of_the_rows_and_not_of_their_order_or_of_the_sample():
    values = source(30)
    first = sample(values).fingerprint
    assert sample(list(reversed(values)), seed=9, limit=2).fingerprint == first
    assert sample([dict(reversed(value.items())) for value in values]).fingerprint == first
    assert sample(values[:-1]).fingerprint != first
    assert sample([*values[:-1], {**values[-1], "prompt": "changed"}]).fingerprint != first
    assert sample([*values[:-1], {**values[-1], "other": 1}]).fingerprint != first


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_below_one(limit):
    with pytest.raises(UserError, match=f"at least 1 .got {limit}."):
        sample(source(3), limit=limit)


@pytest.mark.parametrize("limit", [1, 100])
def test_duplicate_id_names_both_lines(limit):
    values = [*source(20), {"id": "p4", "prompt": "again"}]
    with pytest.raises(UserError, match=r"f\.jsonl: line 21: .*stands already on line 5 .*'p4'"):
        sample(values, limit=limit)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("place", range(5))
def test_duplicate_beyond_the_remembered_ids_is_found_where_it_would_enter_the_sample(monkeypatch, place, order):
    monkeypatch.setattr(module, "REMEMBERED_IDS", 0)
    by_rank = sorted(source(20), key=lambda value: rank(value["id"], seed=0))
    with pytest.raises(UserError, match="stands already"):
        sample([*by_rank, by_rank[place]][::order], limit=5)


def test_repeated_text_is_one_prompt_where_the_text_is_the_identity():
    values = [{"prompt": text} for text in "abcabcab"]
    for order in (values, values[::-1]):
        drawn = draw(as_rows(order), BY_TEXT, seed=0, limit=10, by_text=True)
        assert len(drawn.prompts) == 3
        assert drawn.available == 8


class _Text(str):
    """Text that counts its living instances."""

    alive = most = 0

    def __new__(cls, text):
        _Text.alive += 1
        _Text.most = max(_Text.most, _Text.alive)
        return super().__new__(cls, text)

    def __del__(self):
        _Text.alive -= 1


def test_memory_is_for_the_sample_and_not_for_the_source():
    rows = (Row("f", f"line {n}", {"id": f"p{n}", "prompt": _Text(f"text {n}")}) for n in range(200_000))
    drawn = draw(rows, BY_ID, seed=0, limit=30, by_text=False)
    assert drawn.available == 200_000
    assert 30 <= _Text.most <= 35
    assert all(isinstance(prompt["messages"][0]["content"], _Text) for prompt in drawn.prompts)


def workload(path, **more):
    return {"source": {"kind": "jsonl", "file": path.name, **more}, "rendering": {"chat_template": True}}


def write(path, values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def test_prompt_file(tmp_path):
    path = write(tmp_path / "a.jsonl", source(8))
    header, prompts = sample_workload("abc", workload(path), [path], seed=4, limit=30)
    assert header | {"fingerprint": ""} == {
        "schema_version": 1,
        "workload": "abc",
        "source": {"kind": "jsonl", "file": "a.jsonl"},
        "fingerprint": "",
        "seed": 4,
        "limit": 30,
        "available": 8,
    }
    out = tmp_path / "out" / "abc.jsonl"
    write_prompts(out, header, prompts)
    assert read_prompts(out) == (header, prompts)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 9
    for line in lines:
        validate(line, "prompts", file=out)


def test_filters_apply_before_the_limit(tmp_path):
    path = write(tmp_path / "a.jsonl", [{**value, "even": n % 2 == 0} for n, value in enumerate(source(20))])
    row = workload(path, filters=[{"column": "even", "equals": True}])
    header, prompts = sample_workload("abc", row, [path], seed=0, limit=10)
    assert header["available"] == len(prompts) == 10
    with pytest.raises(UserError, match="no row passes"):
        sample_workload("abc", workload(path, filters=[{"column": "even", "equals": 3}]), [path], seed=0, limit=10)


def test_several_files_are_one_source(tmp_path):
    values = source(20)
    random.Random(0).shuffle(values)
    whole = write(tmp_path / "whole.jsonl", values)
    halves = [write(tmp_path / "b.jsonl", values[9:]), write(tmp_path / "a.jsonl", values[:9])]
    assert sample_workload("abc", workload(whole), [whole], seed=0, limit=6) == sample_workload(
        "abc", workload(whole), halves, seed=0, limit=6
    )
    with pytest.raises(UserError, match=r"a\.jsonl: line 1: .* line \d+ of .*whole\.jsonl"):
        sample_workload("abc", workload(whole), [whole, halves[1]], seed=0, limit=6)


def test_negative_seed(tmp_path):
    with pytest.raises(UserError, match="must not be negative"):
        sample_workload("abc", workload(tmp_path), [tmp_path], seed=-1, limit=1)


HEADER = '{"header": {"schema_version": 1}}\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": "a", "prompt": "hi"}\n', "line 1: not a prompt file"),
        ('{"header": {"schema_version": 2}}\n', "schema version 1"),
        (HEADER, "holds no prompt"),
        (HEADER + '{"id": "a"}\n', "line 2: a prompt has an id"),
        (HEADER + '{"id": "a", "prompt": "hi", "n": 1}\n', "line 2: a prompt has an id"),
        (HEADER + "7\n", "line 2: a prompt has an id"),
        (HEADER + '{"id": "a", "prompt": ""}\n', "line 2: the prompt is empty"),
        (HEADER + '{"id": "a", "messages": []}\n', "line 2: messages must be"),
        (HEADER + "{\n", "line 2: not valid JSON"),
        ("", "line 1: the line is empty"),
    ],
)
def test_broken_prompt_file(tmp_path, content, message):
    path = tmp_path / "p.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=r"p\.jsonl: .*" + message.removeprefix("line")):
        read_prompts(path)
    with pytest.raises(UserError, match="no such file"):
        read_prompts(tmp_path / "absent.jsonl")
