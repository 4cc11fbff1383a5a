"""A model's static table as a resource: made once per transformers revision, described, hashed, checked when read."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from servingbench.decoding.jit import Floats32, Ints
from servingbench.decoding.static_table import TABLE, assistant_prefix, load_table, make_table, save_table
from servingbench.errors import UserError
from servingbench.measure.progress import Progress
from servingbench.models.load import load_model
from servingbench.provenance import package_versions, without_absolute_paths
from servingbench.records.files import read_json, sha256_file, sha256_token_ids, write_json
from servingbench.records.schema import validate
from servingbench.revisions.environment import check

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of a run that makes a table."""
    add = parser.add_argument
    add("--model", required=True, type=Path, metavar="DIR", help="folder of the model (with model.json)")
    add("--row", required=True, type=json.loads, metavar="JSON", help="its row of config/models.yaml")
    add("--environment", required=True, type=Path, metavar="FILE", help="environment.json of the revision to run under")
    add("--device", help="torch's name of the device (default: a GPU if there is one)")
    add("--out", required=True, type=Path, metavar="FILE", help="static_table.json to write; the table goes beside it")
    add("--log", required=True, type=Path, metavar="FILE", help="plain progress lines are appended here")


def write_static_table(arguments: argparse.Namespace) -> None:
    """Make the table that the arguments describe: first the table, then the description that vouches for it."""
    environment = check(arguments.environment)
    device = arguments.device or ("cuda:0" if torch.cuda.is_available() else "cpu")
    name, table = arguments.model.name, arguments.out.with_name(TABLE)
    with Progress(f"static table of {name}", log=arguments.log) as progress:
        model, tokenizer = load_model(arguments.model, arguments.row, device)
        prefix = assistant_prefix(tokenizer)
        progress.begin(arms=model.config.get_text_config().vocab_size, unit="token")
        tokens, probs = make_table(model, prefix, progress=progress.advance)
        save_table(table, (tokens, probs))
        described = {
            "schema_version": 1,
            "revision": environment["revision"],
            **_model_identity(arguments.model),
            "next_tokens": tokens.shape[1],
            "prefix_tokens": len(prefix),
            "prefix_sha256": sha256_token_ids(prefix),
            "sha256": sha256_file(table),
            "device": device,
            "packages": package_versions(),
        }
        validate(described, "static_table", file=arguments.out)
        write_json(arguments.out, described)


def read_static_table(file: Path, *, model: Path, revision: str, vocabulary: int) -> tuple[Row, tuple[Ints, Floats32]]:
    """A table with its description.

    Args:
        file: its static_table.json.
        model: folder of the model that drafts from it.
        revision: of transformers.
        vocabulary: the model's token ids.

    Raises:
        UserError: a table of another model or revision, one that was changed since, or none at all.
    """
    described = read_json(file)
    validate(described, "static_table", file=file)
    table = load_table(file.with_name(TABLE), vocabulary=vocabulary)
    wanted = {"revision": revision, **_model_identity(model), "sha256": sha256_file(file.with_name(TABLE))}
    for key, value in wanted.items():
        if described[key] != value:
            raise UserError(
                "the static table is not this run's",
                file=file,
                key=key,
                value=described[key],
                remedy="delete it and let the workflow make it again",
            )
    return dict(described), table


def _model_identity(folder: Path) -> Row:
    """Which weights: a prepared folder's by their hashes, a hub model's by its revision."""
    described = read_json(folder / "model.json")
    identity = {"model": described["model"], "model_revision": described["revision"], "model_files": described["files"]}
    return dict(without_absolute_paths(identity))
