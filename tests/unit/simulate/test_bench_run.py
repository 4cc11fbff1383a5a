"""A whole run on a tiny model: every figure is there, by its schema, and an interruption keeps what was finished."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from tests.fixtures.tiny_models import tiny_model

from servingbench.config.tables import load_yaml
from servingbench.decoding import Request, greedy_reference
from servingbench.decoding.drafts.arctic import arctic_available
from servingbench.decoding.drafts.prompt_lookup import PromptLookup
from servingbench.errors import UserError
from servingbench.records.files import write_jsonl
from servingbench.records.schema import validate
from servingbench.simulate import bench as module
from servingbench.simulate.arms import Ours, logs, replay_corpus, tokens_per_forward
from servingbench.simulate.bench import Bench
from servingbench.simulate.corpus import Recording, read_corpus
from servingbench.simulate.figures import FIGURES, PAIRED, mean_log
from servingbench.simulate.report import full_report, text_table

VOCABULARY, NEW = 12, 30


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama", vocab_size=VOCABULARY)


@pytest.fixture(scope="module")
def corpus(model, tmp_path_factory):
    rng = random.Random(0)
    recordings = []
    for task in ("a", "b"):
        for _ in range(6):
            prompt = [rng.randrange(VOCABULARY) for _ in range(rng.randrange(3, 30))]
            out = greedy_reference(model, Request(tuple(prompt), NEW, frozenset([3]))).new_token_ids
            recordings.append({"task": task, "prompt": prompt, "out": out})
    file = tmp_path_factory.mktemp("corpus") / "tiny.jsonl"
    write_jsonl(file, recordings)
    return file


@pytest.fixture
def run(model, corpus, repository, monkeypatch):
    monkeypatch.setattr(module, "NODES", 16)
    monkeypatch.setattr(module, "ARCTIC_SIZES", (4, 16))
    methods = load_yaml(repository / "config" / "methods.yaml")

    def open_bench(timed_prompts=2):
        options = {"eos_token_ids": frozenset([3]), "ours": Ours(methods, None), "cap": NEW}
        return Bench(read_corpus(corpus), model, **options, timed_prompts=timed_prompts)

    return open_bench


def report_of(bench, corpus):
    report = full_report(bench, corpus, model="tiny", load_averages=[0.5, 0.5])
    validate(report, "bench", file="report")
    for figures in (report["figures"], report["figures_without_loops"]):
        for figure in figures.values():
            assert {key for key, value in figure.items() if value is None} == figure["reasons"].keys()
    return report


def test_every_figure_is_measured(run, corpus):
    bench = run()
    bench.run()
    report = report_of(bench, corpus)
    assert bench.finished and report["finished"]
    assert report["figures"].keys() == FIGURES.keys()
    assert report["figures_without_loops"].keys() == set(PAIRED)
    for name, figure in report["figures"].items():
        assert figure["ours"] > 0
        if arctic_available() and name != "between_forwards_us":
            assert figure["ratio_arctic"] == pytest.approx(figure["ours"] / figure["arctic"])
    rates = logs(
        replay_corpus(bench.recordings, PromptLookup, cap=NEW, chosen=bench.odd), tokens_per_forward
    )  # fmt: skip
    expected = mean_log(rates, bench.odd)
    assert report["figures"]["tokens_per_forward_tree"]["transformers"] == pytest.approx(2.718281828459045**expected)
    assert report["decode_speedups"]["autoregressive"] == pytest.approx(1.0)
    assert report["figures"]["decode_speedup_tree"]["n"] == 4
    printed = text_table(report)
    assert all(name in printed for name in FIGURES)
    assert "without a static table" in printed


def test_an_interruption_keeps_what_was_finished(run, corpus, monkeypatch):
    bench = run()

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "host_us", stop)
    bench.run()
    report = report_of(bench, corpus)
    assert not bench.finished and not report["finished"]
    assert report["figures"]["tokens_per_forward_tree"]["ours"] > 1
    assert report["figures"]["propose_us_tree"]["ours"] > 0
    for name in ("host_us_per_step_tree", "decode_speedup_tree"):
        assert report["figures"][name]["ours"] is None
        assert report["figures"][name]["reasons"]["ours"] == "the run was interrupted"


def test_an_interrupted_timing_keeps_the_finished_prompts(run, corpus, monkeypatch):
    bench = run()
    original = module.time_arms

    def stop_after_three(*arguments):
        for number, timed in enumerate(original(*arguments)):
            if number == 3:
                raise KeyboardInterrupt
            yield timed

    monkeypatch.setattr(module, "time_arms", stop_after_three)
    bench.run()
    figure = report_of(bench, corpus)["figures"]["decode_speedup_path"]
    assert not bench.finished
    assert (figure["n"], figure["ours"] > 0) == (3, True)


def test_without_arctic_and_without_timing_the_rest_is_there(run, corpus, monkeypatch):
    monkeypatch.setattr(module, "arctic_available", lambda: False)
    bench = run(timed_prompts=0)
    bench.run()
    figures = report_of(bench, corpus)["figures"]
    assert bench.finished
    assert all(figure["arctic"] is None for figure in figures.values())
    assert "make arctic" in figures["propose_us_tree"]["reasons"]["arctic"]
    assert "--timed-prompts 0" in figures["decode_speedup_tree"]["reasons"]["ours"]
    assert figures["index_build_us"]["ours"] > 0


def test_earlier_outputs_of_the_task_are_known_and_those_of_others_are_not(run):
    """The same output again, in another task and in the same one."""
    bench = run()
    rng = random.Random(1)
    out = [rng.randrange(1000, 9000) for _ in range(40)]
    corpus = [Recording("a", [1], out), Recording("b", [1], out), Recording("a", [1], out)]
    chosen = {"a": [0, 2], "b": [1]}
    for source, later in (("local", 1.0), ("both", 39.0)):
        found = replay_corpus(
            corpus, lambda s=source: bench.ours.drafter("tree", num_tokens=64, source=s), cap=40, chosen=chosen
        )
        rates = [tokens_per_forward(one) for one in found]
        assert rates[:2] == [1.0, 1.0]
        assert (rates[2] == 1.0) if later == 1.0 else rates[2] > 10


def test_the_script_refuses_a_corpus_that_is_none(repository, tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"task": "a"}\n')
    command = [sys.executable, str(repository / "workflow_scripts" / "bench_decoding.py"), "--corpus"]
    command += [str(tmp_path / "corpus.jsonl"), "--model", "none", "--environment", "none"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path / 'corpus.jsonl'}: line 1: a record has exactly task, prompt and out.\n"


@pytest.mark.parametrize(
    ("recordings", "problem"),
    [
        ([Recording("a", [1], [2]), Recording("b", [1], [2])], "two outputs of a task"),
        ([Recording("a", [1], [2]), Recording("a", [1, VOCABULARY], [2])], "does not know"),
    ],
)
def test_a_corpus_that_cannot_be_measured_is_refused(model, recordings, problem):
    with pytest.raises(UserError, match=problem):
        Bench(recordings, model, eos_token_ids=frozenset(), ours=Ours({}, None), cap=4, timed_prompts=1)
