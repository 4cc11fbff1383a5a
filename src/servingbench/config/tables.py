"""The tables in config/: YAML in, checked rows out."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from servingbench.errors import UserError
from servingbench.records.schema import suggest, validate

Row = dict[str, Any]
Table = dict[str, Row]

TABLES = ("models", "methods", "workloads", "revisions", "gpus")


class _UniqueKeyLoader(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys without a word; a table must not lose a row that way."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                line = key_node.start_mark.line + 1
                raise UserError("a key must be a word", file=self.name, key=f"line {line}", value=str(key))
            if key in seen:
                line = key_node.start_mark.line + 1
                raise UserError(f"the key {key!r} stands twice", file=self.name, key=f"line {line}", remedy="keep one")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def load_yaml(path: Path) -> Any:
    """Read one YAML file.

    Raises:
        UserError: for a missing file, a syntax error (with its line) or a repeated key.
    """
    try:
        with path.open(encoding="utf-8") as handle:
            return yaml.load(handle, Loader=_UniqueKeyLoader)
    except FileNotFoundError:
        raise UserError("no such file", file=path, remedy="check the path") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise UserError(f"not valid YAML: {error.problem}", file=path, key=f"line {line}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"not valid YAML: {error.reason}", file=path, remedy="save it as UTF-8 text") from None  # type: ignore[union-attr]


@dataclass(frozen=True)
class Tables:
    """All tables of one config/ folder, each valid by its schema and by its references to the others."""

    models: Table
    methods: Table
    workloads: Table
    revisions: Table
    gpus: Table
    folder: Path

    def row(self, table: str, name: str, *, file: object = None, key: object = None) -> Row:
        """The row ``name`` of ``table``; an unknown name is a :class:`UserError` with the closest known ones."""
        rows: Table = getattr(self, table)
        if name not in rows:
            where = f"{key}" if key else table
            raise UserError(
                f"unknown {table.rstrip('s')}; config/{table}.yaml has no such row",
                file=file,
                key=where,
                value=name,
                remedy=suggest(name, rows),
            )
        return rows[name]


def load_tables(folder: Path) -> Tables:
    """Read and check every table in ``folder``."""
    rows = {name: _load_table(folder, name) for name in TABLES}
    tables = Tables(**rows, folder=folder)
    _check_models(tables)
    _check_gpus(tables)
    return tables


def _load_table(folder: Path, name: str) -> Table:
    path = folder / f"{name}.yaml"
    table = load_yaml(path)
    validate(table, name, file=path)
    return dict(table)


def _check_models(tables: Tables) -> None:
    path = tables.folder / "models.yaml"
    for name, row in tables.models.items():
        for column, table in (("draft_model", "models"), ("of", "models"), ("prepared_with", "revisions")):
            if column in row:
                tables.row(table, row[column], file=path, key=f"{name}.{column}")
        if name == row.get("draft_model") or name in _cut_from(tables.models, name):
            remedy = "name another row"
            raise UserError("a model cannot refer to itself", file=path, key=name, remedy=remedy)


def _cut_from(models: Table, name: str) -> list[str]:
    """The rows that a truncated model is cut from, nearest first; a circle ends where it closes."""
    chain: list[str] = []
    row = models[name]
    while "of" in row and row["of"] not in chain:
        chain.append(row["of"])
        row = models[row["of"]]
    return chain


def _check_gpus(tables: Tables) -> None:
    for name, row in tables.gpus.items():
        try:
            re.compile(row.get("device_name", ""))
        except re.error as error:
            path = tables.folder / "gpus.yaml"
            raise UserError(f"not a regular expression: {error}", file=path, key=f"{name}.device_name") from None


def merged(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` updated by ``override``: mappings are merged, everything else is replaced (as Snakemake does)."""
    result = dict(base)
    for key, value in override.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result
