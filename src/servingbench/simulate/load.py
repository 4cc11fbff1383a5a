"""The model of a benchmark or a recording, on the CPU with the threads that config/gpus.yaml gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from servingbench.config.tables import load_tables
from servingbench.errors import UserError
from servingbench.measure.device import prepare_device
from servingbench.models.load import load_model
from servingbench.provenance import ROOT


def load(folder: Path) -> tuple[Any, Any]:
    """The model and its tokenizer.

    Args:
        folder: a prepared model, resources/models/NAME.

    Raises:
        UserError: for a folder that is not prepared, or a name that config/models.yaml does not have.
    """
    if not (folder / "model.json").is_file():
        remedy = f"prepare it: snakemake -- resources/models/{folder.name}"
        raise UserError("not a prepared model", file=folder, remedy=remedy)
    tables = load_tables(ROOT / "config")
    row = tables.row("models", folder.name, file=folder)
    return load_model(folder, row, prepare_device("cpu", tables.gpus["cpu"]))
