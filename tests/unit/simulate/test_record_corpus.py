"""A recorded corpus is greedy text, and an interrupted recording continues where it stopped."""

from __future__ import annotations

import json

import pytest
from tests.fixtures.tiny_folder import tiny_model, tiny_tokenizer
from tests.fixtures.tiny_models import naive_greedy

from servingbench.errors import UserError
from servingbench.simulate import record as module
from servingbench.simulate.corpus import read_corpus
from servingbench.simulate.record import record, tasks_of_files, tasks_of_table

SETTINGS = {"seed": 0, "limit": 3, "max_new_tokens": 12}


@pytest.fixture(scope="module")
def tiny():
    return tiny_model(), tiny_tokenizer()


@pytest.fixture
def files(tmp_path):
    for name in ("first", "second"):
        rows = [{"prompt": f"{name} {number}"} for number in range(4)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]


def test_outputs_are_greedy(tiny, files, tmp_path):
    out = tmp_path / "corpus.jsonl"
    assert record(out, *tiny, tasks_of_files(files), **SETTINGS) == 6
    corpus = read_corpus(out)
    assert [recording.task for recording in corpus] == ["first"] * 3 + ["second"] * 3
    assert len({tuple(recording.prompt) for recording in corpus}) == 6
    for recording in corpus:
        assert recording.out == naive_greedy(tiny[0], recording.prompt, new=12, eos=[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.jsonl", "first.jsonl", "second.jsonl"]


def test_an_interrupted_recording_continues(tiny, files, tmp_path, monkeypatch):
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    tasks = tasks_of_files(files)
    record(whole, *tiny, tasks, **SETTINGS)
    original, calls = module.greedy_reference, []

    def stop_at_the_third(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(module, "greedy_reference", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        record(broken, *tiny, tasks, **SETTINGS)
    assert not broken.exists()
    record(broken, *tiny, tasks, **SETTINGS)
    assert len(calls) == 3 + 4
    assert broken.read_bytes() == whole.read_bytes()


def test_tasks_are_rows_of_a_table(repository, tmp_path):
    table = repository / "config" / "workloads.yaml"
    tasks = tasks_of_table(table, ["math", "chat"])
    assert [(task.name, task.paths) for task in tasks] == [
        (name, [repository / "config" / "prompts" / f"{name}.jsonl"]) for name in ("math", "chat")
    ]
    with pytest.raises(UserError, match=r"no such workload \(got 'maths'\).*'math'"):
        tasks_of_table(table, ["maths"])
    public = tasks_of_table(repository / "config/corpus/public.yaml", ["gsm8k", "rag", "code-editing"], data=tmp_path)
    assert [task.paths[0] for task in public] == [
        tmp_path / "gsm8k/test.jsonl", tmp_path / "spec_bench/question.jsonl",
        repository / "config/prompts/code-editing.jsonl",
    ]  # fmt: skip
