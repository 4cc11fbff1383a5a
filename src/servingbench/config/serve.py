"""The serve matrix's table: config/serve.yaml, checked by schema and against the other tables, rows made whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servingbench.config.tables import Row, Table, Tables, load_yaml, merged
from servingbench.errors import UserError
from servingbench.records.schema import suggest, validate

FILE = "serve.yaml"
REQUIRED = ("label", "model", "engine", "revision", "hardware", "eval", "load", "limits")


@dataclass(frozen=True)
class ServeTable:
    """Every row of config/serve.yaml with the defaults merged in, and what rows refer to."""

    rows: Table
    models: Table
    hardware: Table
    file: Path

    def row(self, name: str, *, file: object = None, key: object = None) -> Row:
        """The row ``name``; an unknown name is a :class:`UserError` with the closest known ones."""
        if name not in self.rows:
            problem = "unknown serve row; config/serve.yaml has no such row"
            raise UserError(problem, file=file, key=key, value=name, remedy=suggest(name, self.rows))
        return self.rows[name]

    def spec(self, name: str, tables: Tables, *, seed: int, limit: int) -> Row:
        """Everything that running or judging one row needs to know.

        Returns:
            The row with its name (``id``), its key, its model and hardware written out, and the number of problems;
            without its label, since a better label must not repeat a measurement.
        """
        row = self.row(name)
        model, hardware = self.models[row["model"]], self.hardware[row["hardware"]]
        gpu = tables.row("gpus", hardware["gpu"])
        return {
            **{key: value for key, value in row.items() if key != "label"},
            "id": name,
            "key": {"revision": row["revision"], "gpu": hardware["gpu"], "seed": seed, "limit": limit},
            "model": {"name": row["model"], **model, "source": tables.models.get(model.get("row", ""))},
            "hardware": {
                "name": row["hardware"],
                "count": 1,
                "flavor": None,
                **hardware,
                **{key: gpu.get(key) for key in ("kind", "threads", "compute_capability", "mem_gib", "device_name")},
            },
            "eval": {**row["eval"], "limit": limit},
        }


def load_serve(folder: Path, tables: Tables) -> ServeTable:
    """Read and check config/serve.yaml.

    Raises:
        UserError: naming the row and key that is wrong.
    """
    path = folder / FILE
    content = load_yaml(path)
    validate(content, "serve", file=path)
    rows = {name: merged(content["defaults"], row) for name, row in content["rows"].items()}
    for name, row in rows.items():
        rows[name] = {"flags": {}, "workarounds": [], **row}
    table = ServeTable(rows, content["models"], content["hardware"], path)
    for name, place in table.hardware.items():
        tables.row("gpus", place["gpu"], file=path, key=f"hardware.{name}.gpu")
    for name, model in table.models.items():
        _check_model(name, model, tables, path)
    for name, row in table.rows.items():
        _check_row(name, row, table, tables)
    return table


def _check_model(name: str, model: Mapping[str, Any], tables: Tables, path: Path) -> None:
    if "row" not in model:
        return
    source = tables.row("models", model["row"], file=path, key=f"models.{name}.row")
    if model["kind"] == "gguf" and source["source"] != "gguf":
        problem = "has no GGUF file"
        raise UserError(problem, file=path, key=f"models.{name}.row", value=model["row"], remedy="name a gguf row")


def _check_row(name: str, row: Row, table: ServeTable, tables: Tables) -> None:
    key = f"rows.{name}"
    missing = [column for column in REQUIRED if column not in row]
    if missing:
        remedy = "add it, or give defaults one"
        raise UserError(f"missing {', '.join(missing)}", file=table.file, key=key, remedy=remedy)
    for column, known in (("model", table.models), ("hardware", table.hardware), ("revision", tables.revisions)):
        if row[column] not in known:
            remedy = suggest(row[column], known)
            raise UserError("no such row", file=table.file, key=f"{key}.{column}", value=row[column], remedy=remedy)
    is_gguf = table.models[row["model"]]["kind"] == "gguf"
    if is_gguf != (row["engine"] == "xllamacpp"):
        problem, remedy = "xllamacpp serves models of kind gguf, and no other engine does", "name another model"
        raise UserError(problem, file=table.file, key=f"{key}.model", value=row["model"], remedy=remedy)
    changes = [change["flags"] for change in row["workarounds"]]
    for flags in (row["flags"], *changes):
        given = {flag: value for flag, value in flags.items() if value is not None}
        validate(given, "serve", file=f"{table.file}: {key}.flags", part=row["engine"])


def served_name(spec: Mapping[str, Any]) -> str:
    """What a row's server is given and clients ask for: a folder, a file, or a Hugging Face id at its commit."""
    kind, name, source = spec["model"]["kind"], spec["model"]["name"], spec["model"]["source"] or {}
    if kind == "tiny":
        return f"resources/tiny/{spec['revision']}/{name}"
    if kind == "gguf":
        return f"resources/gguf/{spec['model']['row']}.gguf"
    if source.get("source") == "local":
        return str(source["path"])
    if source.get("source") in ("gguf", "truncated"):
        return f"resources/models/{spec['model']['row']}"
    hub = source or spec["model"]
    return "@".join(filter(None, (hub["id"], hub.get("revision"))))


def model_input(spec: Mapping[str, Any]) -> str | None:
    """What the workflow must make before a row's server can load it; None for a model of the hub or a local one."""
    name = served_name(spec)
    return name if name.startswith("resources/") else None


def tokenizer_source(spec: Mapping[str, Any]) -> str:
    """Where the load test finds the tokenizer that it makes prompts with."""
    return f"resources/models/{spec['model']['row']}" if spec["model"]["kind"] == "gguf" else served_name(spec)


def engine_folders(spec: Mapping[str, Any]) -> list[str]:
    """The folders of the packages that a row's server runs with, the one that goes first on the path first."""
    if spec["engine"] == "transformers":
        return [f"resources/revisions/{spec['revision']}", "resources/environments/serve"]
    return [f"resources/environments/{spec['engine']}"]
