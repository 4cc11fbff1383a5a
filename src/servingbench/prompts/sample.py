"""Sampling prompts, and the prompt file: deterministic in the seed, blind to the source's order, nested in the limit.

Every prompt gets the rank SHA-256(seed, id), and the sample is the ``limit`` smallest ranks in ascending order. A rank
depends on nothing but the seed and the prompt's own identity, so shuffling the source changes nothing, and a larger
limit only adds prompts at the end. One pass over the source and a heap of ``limit`` prompts suffice.
"""

from __future__ import annotations

import hashlib
import heapq
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from servingbench.errors import UserError
from servingbench.prompts.readers import hub, read_rows
from servingbench.prompts.row import Row
from servingbench.prompts.shape import Prompt, Shape, check_messages, check_text
from servingbench.records.files import read_jsonl, sha256_json, write_jsonl

SCHEMA_VERSION = 1
Place = tuple[Path | str, str]  # the file and the line of a row
# So many ids of a source are remembered to find duplicates among all its rows. Beyond them a duplicate is still found
# whenever it would enter the sample, which is where it does harm.
REMEMBERED_IDS = 100_000


@dataclass(frozen=True)
class Sample:
    """Prompts in sample order, with what is known about the source they were drawn from.

    Attributes:
        prompts: at most ``limit`` of them, by ascending rank.
        fingerprint: SHA-256 over the rows of the source as a multiset: independent of their order.
        available: rows that pass the filters.
    """

    prompts: list[Prompt]
    fingerprint: str
    available: int


def rank(identity: str, *, seed: int) -> int:
    """The place of a prompt in the seed's order of all prompts."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{identity}".encode()).digest())


def draw(rows: Iterable[Row], shape: Callable[[Row], Prompt | None], *, seed: int, limit: int, by_text: bool) -> Sample:
    """Draw a sample in one pass, holding ``limit`` prompts and no row.

    Args:
        rows: the source, streamed.
        shape: turns a row into its prompt, or into None where a filter leaves it out.
        seed: chooses the order of the prompts.
        limit: the largest number of prompts, at least 1.
        by_text: ids are derived from the text, so equal ones are the same prompt again (taken once) and no mistake.

    Raises:
        UserError: for a limit below 1 or a duplicate id.
    """
    if limit < 1:
        raise UserError("the limit must be at least 1", value=limit, remedy="say how many prompts to take")
    heap: list[tuple[int, str, Prompt]] = []  # ranks negated, so that the largest is the first to go
    sampled: dict[str, Place] = {}
    remembered: dict[str, Place] = {}
    total = count = available = 0
    for row in rows:
        count += 1
        total = (total + int(sha256_json(row.values), 16)) % (1 << 256)
        prompt = shape(row)
        if prompt is None:
            continue
        available += 1
        identity = prompt["id"]
        earlier = sampled.get(identity) or remembered.get(identity)
        if earlier and by_text:
            continue
        if earlier:
            raise _duplicate(identity, earlier, row)
        place = (row.file, row.key)
        if not by_text and len(remembered) < REMEMBERED_IDS:
            remembered[identity] = place
        sampled[identity] = place
        heapq.heappush(heap, (-rank(identity, seed=seed), identity, prompt))
        if len(heap) > limit:
            _, dropped, _ = heapq.heappop(heap)
            del sampled[dropped]
    fingerprint = hashlib.sha256(f"{count}:{total:064x}".encode()).hexdigest()
    return Sample([prompt for _, _, prompt in sorted(heap, reverse=True)], fingerprint, available)


def _duplicate(identity: str, first: Place, row: Row) -> UserError:
    elsewhere = f" of {first[0]}" if first[0] != row.file else ""
    problem = f"the id stands already on {first[1]}{elsewhere}"
    return UserError(problem, file=row.file, key=row.key, value=identity, remedy="give every row its own id")


def sample_workload(
    name: str, workload: Mapping[str, Any], paths: Sequence[Path], *, seed: int, limit: int
) -> tuple[dict[str, Any], list[Prompt]]:
    """Sample one workload.

    Args:
        name: the workload's name in config/workloads.yaml.
        workload: its row there.
        paths: the files of its source, or the folder of a local copy; none for a dataset that comes from the hub.
        seed: chooses the prompts.
        limit: the largest number of prompts; where the source has fewer, all are taken.

    Returns:
        The header of the prompt file and the prompts.

    Raises:
        UserError: for anything wrong with the source, the seed or the limit.
    """
    if seed < 0:
        raise UserError("the seed must not be negative", value=seed)
    source = workload["source"]
    if source["kind"] == "hub" and not paths:
        source = hub.pinned(source)
    shape = Shape(source, chat_template=workload["rendering"]["chat_template"])
    terminal = sys.stderr.isatty()
    rows = tqdm(
        read_rows(source, paths), desc=name, unit=" rows", delay=2, mininterval=0.2 if terminal else 30, leave=terminal
    )
    sample = draw(rows, shape, seed=seed, limit=limit, by_text=shape.id_column is None)
    if not sample.prompts:
        remedy = "loosen source.filters of the workload"
        file = ", ".join(map(str, paths)) or source["repo"]
        raise UserError("no row passes the filters", file=file, key=name, remedy=remedy)
    header = {
        "schema_version": SCHEMA_VERSION,
        "workload": name,
        "source": source,
        "fingerprint": sample.fingerprint,
        "seed": seed,
        "limit": limit,
        "available": sample.available,
    }
    return header, sample.prompts


def write_prompts(path: Path, header: Mapping[str, Any], prompts: Iterable[Prompt]) -> None:
    """Write a prompt file: the header on the first line, then one prompt per line in sample order."""
    write_jsonl(path, [{"header": header}, *prompts])


def read_prompts(path: Path) -> tuple[dict[str, Any], list[Prompt]]:
    """Read a prompt file back.

    Raises:
        UserError: for a file that is missing, has no header or another schema version, or holds a broken prompt.
    """
    lines = read_jsonl(path)
    _, first = next(lines)
    header = first.get("header") if isinstance(first, dict) else None
    if not isinstance(header, dict) or header.get("schema_version") != SCHEMA_VERSION:
        problem = f"not a prompt file: the first line must be a header of schema version {SCHEMA_VERSION}"
        raise UserError(problem, file=path, key="line 1", remedy="sample the workload again")
    prompts = [_check_prompt(prompt, path, f"line {number}") for number, prompt in lines]
    if not prompts:
        raise UserError("the file holds no prompt", file=path, remedy="sample the workload again")
    return header, prompts


def _check_prompt(prompt: Any, path: Path, key: str) -> Prompt:
    keys = set(prompt) if isinstance(prompt, dict) else set()
    if keys not in ({"id", "messages"}, {"id", "messages", "followups"}, {"id", "prompt"}):
        raise UserError(
            "a prompt has an id and either messages or a prompt", file=path, key=key, value=str(prompt)[:60]
        )
    check_text(prompt["id"], "the id", file=path, key=key)
    if "messages" in prompt:
        check_messages(prompt["messages"], file=path, key=key)
        for turn in prompt.get("followups", []):
            check_text(turn, "a followup", file=path, key=key)
    else:
        check_text(prompt["prompt"], "the prompt", file=path, key=key)
    return {str(name): value for name, value in prompt.items()}
