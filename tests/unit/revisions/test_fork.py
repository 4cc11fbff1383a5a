"""A fork of transformers as a revision: fetched at its commit, built, and its own method run by a row of a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import transformers
from tests.fixtures.fork import git, make_fork

from servingbench.errors import UserError
from servingbench.records.schema import validate
from servingbench.revisions.install import install

FAMILY = ".".join(transformers.__version__.split(".")[:2])
METHOD = {
    "label": "Copy, fork",
    "kind": "generate_kwargs",
    "supports": ["fork"],
    "generator": "CopyCandidateGenerator",
    "proposed": "draft.token_ids",
    "kwargs": {"copy_num_tokens": 3},
    "objects": {
        "copy_cache": {"class": "transformers.generation.candidate_generator.CopyCache", "kwargs": {"longest": 2}}
    },
}
RUN = """
import json, sys
from pathlib import Path
from servingbench.decoding import Request, build_method, greedy_reference
from servingbench.errors import UserError
from servingbench.revisions.environment import check
from transformers import LlamaConfig, LlamaForCausalLM
import torch
environment = check(Path(sys.argv[1]))
method = json.loads(sys.argv[2])
torch.manual_seed(0)
shape = dict(vocab_size=16, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
model = LlamaForCausalLM(LlamaConfig(**shape, num_key_value_heads=2)).eval()
free = Request((1, 2, 3), 12, frozenset())
reference = greedy_reference(model, free)
fork = build_method("fork", method, model=model)
fork.warm_up()
out = {"reference": reference.new_token_ids, "free": fork.generate(free).new_token_ids, "environment": environment}
forced = fork.generate(Request(free.prompt_ids, 12, frozenset(), tuple([1, 2] * 6)))
out |= {"forced": forced.new_token_ids, "forwards": forced.forwards, "steps": forced.steps}
wrong = {"generator": {"generator": "Other"}, "object": {"objects": {"copy_cache": {"class": "transformers.No"}}}}
for key, change in wrong.items():
    try:
        build_method("fork", {**method, **change}, model=model).generate(free)
    except UserError as error:
        out[key] = str(error)
print(json.dumps(out))
"""


@pytest.mark.skipif(transformers.__version__ != "5.24.0", reason="the fork is made from transformers 5.24.0")
def test_a_fork_is_built_and_its_method_runs_and_is_counted(tmp_path: Path, repository: Path) -> None:
    fork = tmp_path / "a fork"
    commit = make_fork(Path(transformers.__file__).parent, transformers.__version__, fork)
    row = {
        "label": "fork",
        "source": "git",
        "url": str(fork),
        "branch": "main",
        "commit": commit,
        "version": transformers.__version__,
        "environment": f"transformers-{FAMILY}",
    }
    validate({"fork": row}, "revisions", file="test")
    validate({"copy_fork": METHOD}, "methods", file="test")
    folder = tmp_path / "resources/fork"
    install(name="fork", row=row, pins_file=repository / f"envs/transformers-{FAMILY}.txt", folder=folder)
    described = json.loads((folder / "environment.json").read_text())
    assert described["transformers"]["commit"] == commit
    assert described["transformers"]["dirty"] is False
    assert git(folder / "checkout", "rev-parse", "HEAD") == commit
    assert not git(folder / "checkout", "status", "--porcelain", "--ignored")
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder / "environment.json"), json.dumps(METHOD)],
        env={**os.environ, "PYTHONPATH": str(folder / "site-packages")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    out = json.loads(done.stdout.splitlines()[-1])
    assert out["free"] == out["reference"]
    assert out["forced"] == [1, 2] * 6
    # Every draft is the prompt's beginning, 1 2, beside one other node: a tree of three nodes, two of them deep.
    drafts = out["steps"][:-1]
    assert {tuple(step[:2]) for step in drafts} == {(3, 2)}
    assert sum(step[2] for step in out["steps"]) + out["forwards"] == 12
    assert out["forwards"] < 12
    assert "did not decode as the method claims" in out["generator"]
    assert "this transformers cannot build it" in out["object"]
    (folder / "checkout/src/transformers/new.py").write_text("")
    with pytest.raises(UserError, match=r"fork was changed by hand .*new\.py.*Move the folder away"):
        install(name="fork", row=row, pins_file=repository / f"envs/transformers-{FAMILY}.txt", folder=folder)
    assert (folder / "site-packages/transformers").is_dir()
