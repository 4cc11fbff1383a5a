"""Recording a corpus: greedy outputs of a model on the prompts of some tasks, as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

from tqdm import tqdm

from servingbench.config.tables import load_yaml
from servingbench.decoding import Request, greedy_reference
from servingbench.errors import UserError
from servingbench.measure.journal import Journal, folder_lock
from servingbench.measure.session import context_tokens, eos_token_ids
from servingbench.prompts.fetch import locate
from servingbench.prompts.prepare import prepare_prompts
from servingbench.prompts.sample import sample_workload
from servingbench.provenance import ROOT
from servingbench.records.files import sha256_json, write_jsonl
from servingbench.records.schema import suggest, validate

DOWNLOADS = ROOT / "resources/downloads"


@dataclass(frozen=True)
class Task:
    """A task of the corpus: its name, a row as in config/workloads.yaml, and the files of the row's source."""

    name: str
    row: dict[str, Any]
    paths: list[Path]


def tasks_of_table(file: Path, names: Sequence[str], *, data: Path | None = None) -> list[Task]:
    """Tasks that are rows of a table like config/workloads.yaml.

    Args:
        file: the table.
        names: its rows to take; all of them when empty.
        data: takes the place of the folder that a row names (``source.folder``).
    """
    table = load_yaml(file)
    validate(table, "workloads", file=file)
    for name in names:
        if name not in table:
            raise UserError("no such workload", file=file, value=name, remedy=suggest(name, table))
    tasks = []
    for name in names or table:
        source = table[name]["source"]
        moved = {"folder": str(data.absolute())} if data is not None and "folder" in source else {}
        paths = locate(name, {**source, **moved}, root=ROOT, downloads=DOWNLOADS)
        tasks.append(Task(name, table[name], paths))
    return tasks


def tasks_of_files(files: Sequence[Path]) -> list[Task]:
    """Tasks that are JSONL files with a prompt or messages per line, each called like its file."""
    row = {"source": {"kind": "jsonl", "columns": {"id": None}}, "rendering": {"chat_template": True}}
    return [Task(file.stem, row, [file]) for file in files]


def record(
    out: Path, model: Any, tokenizer: Any, tasks: Sequence[Task], *, seed: int, limit: int, max_new_tokens: int
) -> int:
    """Write a corpus; an interrupted recording continues after its last finished output.

    Args:
        out: the corpus. Until it is complete, finished outputs are kept in a folder beside it.
        model: what writes the outputs.
        tokenizer: its own.
        tasks: where the prompts come from.
        seed: chooses the prompts of each task.
        limit: most prompts of each task.
        max_new_tokens: cap of an output.

    Returns:
        The number of outputs.
    """
    prompts: list[tuple[str, tuple[int, ...]]] = []
    for task in tasks:
        _, rows = sample_workload(task.name, task.row, task.paths, seed=seed, limit=limit)
        prepared = prepare_prompts(
            tokenizer,
            rows,
            task.row["rendering"],
            context=context_tokens(model),
            max_new_tokens=max_new_tokens,
            file=task.paths[0],
        )
        prompts += [(task.name, prompt.token_ids) for prompt in prepared.prompts]
    eos = eos_token_ids(model, tokenizer)
    kept = out.with_name(f".{out.name}.journal")
    with folder_lock(kept):
        identity = sha256_json([model.config.to_dict(), str(model.dtype), max_new_tokens, prompts])
        journal = Journal(kept, identity=identity, notice=print)
        todo = prompts[len(journal.entries) :]
        for name, ids in tqdm(todo, total=len(prompts), initial=len(prompts) - len(todo), unit="output"):
            written = greedy_reference(model, Request(ids, max_new_tokens, eos)).new_token_ids
            recording = {"task": name, "prompt": ids, "out": written}
            journal.append({"index": len(journal.entries), "recording": recording})
        write_jsonl(out, [entry["recording"] for entry in journal.entries])
    rmtree(kept)
    return len(prompts)
