"""Everything a run needs, checked and loaded before any work: environment, device, model, prompts, methods."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servingbench.decoding import Method, build_method, check_model, greedy_reference
from servingbench.decoding.types import Request
from servingbench.errors import UserError
from servingbench.measure.device import prepare_device
from servingbench.measure.static_table import read_static_table
from servingbench.models.load import load_model
from servingbench.prompts.prepare import Answer, PreparedPrompt, prepare_prompts
from servingbench.prompts.sample import read_prompts
from servingbench.records.files import read_json, sha256_file, sha256_json
from servingbench.revisions.environment import check

Row = dict[str, Any]
SPEC_KEYS = ("key", "model", "draft_model", "workload", "methods", "unsupported", "gpu", "timing", "repeats")


@dataclass(frozen=True)
class Session:
    """A loaded run.

    Attributes:
        spec: what the configuration says (see ``Experiment.generation_spec``).
        environment: the revision's description, checked against this process.
        header: the prompt file's first line, with the file's sha256, that of all rendered token ids, and which prompts
            were too long and dropped or truncated.
        models: model.json of the target and, when there are any, of the draft model and static_table.json.
        device: torch's name of the device.
        model: the target model.
        methods: the arms by name, in the configuration's order; without those that this revision does not support.
        prompts: rendered.
        eos_token_ids: what ends an answer.
    """

    spec: Row
    environment: Row
    header: Row
    models: Row
    device: str
    model: Any
    methods: dict[str, Method]
    prompts: list[PreparedPrompt]
    eos_token_ids: frozenset[int]


def add_arguments(parser: argparse.ArgumentParser, *, out: str) -> None:
    """The arguments that describe a run; the same for a measurement and for an audit."""
    add = parser.add_argument
    add(
        "--spec",
        required=True,
        metavar="JSON",
        help=f"the run as JSON, or a file that holds it: {', '.join(SPEC_KEYS)}",
    )
    add("--prompts", required=True, type=Path, metavar="FILE", help="the sampled prompts (JSONL with a header line)")
    refusal = "environment.json of the transformers revision; the run refuses to start under another one"
    add("--environment", required=True, type=Path, metavar="FILE", help=refusal)
    add("--model", required=True, type=Path, metavar="DIR", help="folder of the target model (with model.json)")
    add(
        "--draft-model",
        type=Path,
        nargs="?",
        metavar="DIR",
        help="folder of the draft model, if a method needs one",
    )
    add(
        "--static-table",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="static_table.json of the target model, if a method needs one",
    )
    add("--out", required=True, type=Path, metavar="PATH", help=out)
    add("--log", required=True, type=Path, metavar="FILE", help="plain progress lines are appended here")


def parse_spec(text: str) -> Row:
    """The spec given as JSON text or as the name of a file."""
    if text.lstrip().startswith("{"):
        try:
            spec = json.loads(text)
        except json.JSONDecodeError as error:
            raise UserError(f"not valid JSON: {error.msg}", file="--spec", key=f"character {error.pos}") from None
    else:
        spec = read_json(Path(text))
    if not isinstance(spec, dict):
        raise UserError("not a JSON object", file="--spec", value=text[:60])
    missing = [key for key in SPEC_KEYS if key not in spec]
    if missing:
        raise UserError("missing keys", file="--spec", value=missing, remedy=f"give all of: {', '.join(SPEC_KEYS)}")
    return spec


def open_session(
    arguments: argparse.Namespace, *, max_new_tokens: int | None = None, prompts: int | None = None
) -> Session:
    """Check and load all that a run needs; nothing has been generated or written when it raises.

    Args:
        arguments: as :func:`add_arguments` defines them.
        max_new_tokens: cap on new tokens; the workload's own when None.
        prompts: only the first so many; all when None.

    Raises:
        UserError: for a wrong environment, device, model, draft model, static table or prompt.
    """
    spec = parse_spec(arguments.spec)
    environment = check(arguments.environment)
    device = prepare_device(spec["key"]["gpu"], spec["gpu"])
    header, rows = read_prompts(arguments.prompts)
    model, tokenizer = load_model(arguments.model, spec["model"], device)
    check_model(model)
    models = {"model": read_json(arguments.model / "model.json"), "draft_model": None, "static_table": None}
    draft_model = draft_tokenizer = None
    supported = {name: row for name, row in spec["methods"].items() if name not in spec["unsupported"]}
    assisted = [row for row in supported.values() if row.get("assistant")]
    if spec["draft_model"] is not None and assisted:
        if arguments.draft_model is None:
            raise UserError("a method needs a draft model", file="--draft-model", remedy="give the folder of one")
        headless = all("speculation_type" in (row.get("options") or {}) for row in assisted)
        draft_model, draft_tokenizer = load_model(arguments.draft_model, spec["draft_model"], device, headless=headless)
        if any(shares_tokenizer(row) for row in assisted):
            check_vocabulary(model, tokenizer, draft_model, draft_tokenizer, name=arguments.draft_model.name)
        models["draft_model"] = read_json(arguments.draft_model / "model.json")
    eos, cap = eos_token_ids(model, tokenizer), spec["workload"]["max_new_tokens"]
    prepared = prepare_prompts(
        tokenizer,
        rows[:prompts],
        spec["workload"]["rendering"],
        context=context_tokens(model, draft_model),
        max_new_tokens=max_new_tokens or cap,
        file=arguments.prompts,
        answer=_answers(model, tokenizer, eos, max_new_tokens=cap),
    )
    table = None
    if arguments.static_table is not None:
        models["static_table"], table = read_static_table(
            arguments.static_table,
            model=arguments.model,
            revision=environment["revision"],
            vocabulary=model.config.get_text_config().vocab_size,
        )
    methods = {
        name: build_method(
            name,
            row,
            model=model,
            draft_model=draft_model if row.get("assistant") else None,
            tokenizers=(tokenizer, draft_tokenizer),
            static_table=table,
        )
        for name, row in supported.items()
    }
    header = {
        **header,
        "sha256": sha256_file(arguments.prompts),
        "rendered_sha256": sha256_json([prompt.sha256 for prompt in prepared.prompts]),
        "dropped": prepared.dropped,
        "truncated": prepared.truncated,
    }
    return Session(spec, environment, header, models, device, model, methods, prepared.prompts, eos)


def _answers(model: Any, tokenizer: Any, eos: frozenset[int], *, max_new_tokens: int) -> Answer:
    """The model's own greedy answers, as text: what the earlier turns of a conversation are answered with."""

    def answer(token_ids: Sequence[int]) -> str:
        written = greedy_reference(model, Request(tuple(token_ids), max_new_tokens, eos)).new_token_ids
        return str(tokenizer.decode(written, skip_special_tokens=True))

    return answer


def context_tokens(*models: Any) -> int | None:
    """The smallest number of positions among the models given (None entries are skipped), or None if none says."""
    configs = [model.config.get_text_config() for model in models if model is not None]
    sizes = [getattr(config, "max_position_embeddings", None) for config in configs]
    return min((size for size in sizes if size), default=None)


def eos_token_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """The ids that end an answer: the generation config's, else the tokenizer's."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    if configured is None:
        configured = getattr(tokenizer, "eos_token_id", None)
    if configured is None:
        return frozenset()
    return frozenset([configured] if isinstance(configured, int) else configured)


def shares_tokenizer(row: Row) -> bool:
    """Whether a row's draft model must speak the target's tokens: not with a tokenizer of its own, nor with DFlash."""
    return not row.get("assistant_tokenizer") and "speculation_type" not in (row.get("options") or {})


def check_vocabulary(model: Any, tokenizer: Any, draft_model: Any, draft_tokenizer: Any, *, name: str) -> None:
    """A draft model must speak the target's token ids.

    Raises:
        UserError: when a size or any token's id differs.
    """
    remedy = "choose a draft model with the target's tokenizer"
    sizes = [one.config.get_text_config().vocab_size for one in (model, draft_model)]
    if sizes[0] != sizes[1]:
        problem = f"the draft model has {sizes[1]} token ids, the target {sizes[0]}"
        raise UserError(problem, file="config/models.yaml", key="draft_model", value=name, remedy=remedy)
    theirs, ours = draft_tokenizer.get_vocab(), tokenizer.get_vocab()
    if theirs != ours:
        different = sorted(token for token in theirs.keys() | ours.keys() if theirs.get(token) != ours.get(token))
        problem = f"the draft model gives {len(different)} tokens another id than the target, such as {different[0]!r}"
        raise UserError(problem, file="config/models.yaml", key="draft_model", value=name, remedy=remedy)
