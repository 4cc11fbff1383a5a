"""The paired block: all methods back to back on each prompt, in balanced rotated order."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from servingbench.decoding import greedy_reference
from servingbench.decoding.types import Generation, Method, Reference, Request
from servingbench.measure.journal import Journal
from servingbench.measure.memory import PeakMemory
from servingbench.measure.order import arm_order
from servingbench.measure.progress import Progress
from servingbench.measure.record import Place, Record, Timing, failed_record, ok_record
from servingbench.prompts.prepare import PreparedPrompt
from servingbench.records.schema import validate

# An arm may run out of memory or meet an operator that its kernel lacks; the other arms still have their answers.
# torch's out-of-memory errors are RuntimeErrors; numpy and Python raise MemoryError. Anything else is a bug and ends
# the run.
ARM_FAILURES = (RuntimeError, MemoryError)


@dataclass(frozen=True)
class Block:
    """What one paired run does.

    Attributes:
        workload: name of the workload, for the records.
        model: the target model, for the untimed greedy reference.
        methods: the arms by name, in the configuration's order.
        prompts: rendered, in order.
        max_new_tokens: cap on new tokens.
        eos_token_ids: what ends an answer.
        timing: forced replay of the reference, or free running.
        repeats: timed passes over all arms per prompt.
        device: torch's name of the device.
    """

    workload: str
    model: Any
    methods: Mapping[str, Method]
    prompts: Sequence[PreparedPrompt]
    max_new_tokens: int
    eos_token_ids: frozenset[int]
    timing: Timing
    repeats: int
    device: str = "cpu"

    @property
    def arms_per_prompt(self) -> int:
        """Timed arms per prompt."""
        return len(self.methods) * self.repeats


def run_block(block: Block, journal: Journal, progress: Progress, sample: Callable[[], dict[str, Any]]) -> None:
    """Run every prompt that the journal does not hold yet; afterwards it holds them all.

    Per prompt: an untimed greedy reference, then every arm in the order of a Williams square indexed by the prompt's
    number (so that a resumed run keeps the balance), ``repeats`` times, then one device sample; the prompt is
    journalled, and only then do the methods observe it, so that a cache shared across requests sees the same history
    in a resumed run.
    """
    for method in block.methods.values():
        method.warm_up()
    for entry in journal.entries:
        _observe(block, block.prompts[entry["index"]], entry["reference"])
    memory = PeakMemory(block.device)
    # Long-lived objects leave the collector's sight, which makes the collection before each arm cheap.
    gc.collect()
    gc.freeze()
    try:
        for index in range(len(journal.entries), len(block.prompts)):
            prompt = block.prompts[index]
            reference, records = _run_prompt(block, index, memory, progress)
            answer = reference.new_token_ids if reference else None
            journal.append(
                {"index": index, "prompt_id": prompt.id, "reference": answer, "sample": sample(), "records": records}
            )
            _observe(block, prompt, answer)
            progress.prompt(prompt.id, number=index + 1, prompts=len(block.prompts))
    finally:
        gc.unfreeze()


def _observe(block: Block, prompt: PreparedPrompt, answer: Sequence[int] | None) -> None:
    if answer is not None:
        for method in block.methods.values():
            method.observe(prompt.token_ids, answer)


def _run_prompt(
    block: Block, index: int, memory: PeakMemory, progress: Progress
) -> tuple[Reference | None, list[Record]]:
    prompt = block.prompts[index]
    free = Request(prompt.token_ids, block.max_new_tokens, block.eos_token_ids)
    reference: Reference | None = None
    error = ""
    try:
        reference = greedy_reference(block.model, free)
    except ARM_FAILURES as failure:
        error = f"the untimed greedy reference failed: {one_line(failure)}"
        progress.note(f"{prompt.id}: {error}")
    records = []
    for repeat in range(block.repeats):
        order = arm_order(list(block.methods), block=index * block.repeats + repeat)
        for position, name in enumerate(order):
            place = Place(block.workload, name, position, repeat, block.timing)
            if reference is None:
                record = failed_record(prompt, place, error)
            else:
                record = _run_arm(block, prompt, place, free, reference, memory)
            validate(record, "raw", file=f"record of {name} on {prompt.id}")
            if record["status"] == "failed" and reference is not None:
                progress.note(f"{prompt.id}: {name} failed: {record['error']}")
            progress.arm(tokens=len(record["new_token_ids"]), wall_ns=record["wall_ns"] or 0)
            records.append(record)
    return reference, records


def _run_arm(
    block: Block, prompt: PreparedPrompt, place: Place, free: Request, reference: Reference, memory: PeakMemory
) -> Record:
    request = free
    if block.timing == "forced":
        request = Request(free.prompt_ids, free.max_new_tokens, free.eos_token_ids, tuple(reference.new_token_ids))
    gc.collect()
    memory.reset()
    generation, error = None, None
    try:
        generation = block.methods[place.method].generate(request)
    except ARM_FAILURES as failure:
        error = one_line(failure)
    peak = memory.read()
    if generation is None:
        # Only now: inside the except block the traceback still holds the failed arm's tensors.
        if block.device.startswith("cuda"):
            torch.cuda.empty_cache()
        return failed_record(prompt, place, error or "no answer")
    error = _broken_promise(generation, request)
    if error:
        return failed_record(prompt, place, error)
    return ok_record(prompt, place, generation, reference, peak_memory_bytes=peak, no_peak_reason=memory.reason)


def _broken_promise(generation: Generation, request: Request) -> str | None:
    """What makes an answer no measurement at all: another text than the one it had to replay, or too many tokens."""
    if request.reference is not None and tuple(generation.new_token_ids) != request.reference:
        return "the forced replay wrote other tokens than the reference"
    if len(generation.new_token_ids) > request.max_new_tokens:
        return f"{len(generation.new_token_ids)} new tokens, more than the cap of {request.max_new_tokens}"
    return None


def one_line(failure: BaseException) -> str:
    """An error in one line: its type and the first line of its message."""
    lines = str(failure).strip().splitlines()
    return f"{type(failure).__name__}: {lines[0][:300]}" if lines else type(failure).__name__
