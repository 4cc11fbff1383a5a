"""One experiment: the merged configuration, resolved against the tables, and what each rule needs of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from servingbench.config.paths import ACROSS_REVISIONS, FIGURE_FOLDER, REVISIONS_FIGURE, STATISTICS, SUMMARY
from servingbench.config.serve import ServeTable, load_serve
from servingbench.config.support import unsupported
from servingbench.config.tables import TABLES, Row, Tables, load_tables, load_yaml, merged
from servingbench.errors import UserError
from servingbench.prompts.sources import source_files
from servingbench.records.schema import validate
from servingbench.revisions.checkout import working_tree


@dataclass(frozen=True)
class Experiment:
    """A valid configuration with its tables; every name it uses exists and every combination makes sense."""

    config: Row
    tables: Tables
    serve_table: ServeTable

    def __getattr__(self, name: str) -> Any:
        """Keys of the configuration read as attributes: ``experiment.workloads``."""
        try:
            return self.config[name]
        except KeyError:
            raise AttributeError(name) from None

    def all_keys(self) -> Iterator[Row]:
        """Every (revision, GPU, model) that runs, as values for the patterns of config/paths.py."""
        for revision, gpu, model in product(self.config["revisions"], self.config["gpus"], self.config["models"]):
            fixed = {"seed": self.config["seed"], "limit": self.config["limit"]}
            yield {"revision": revision, "gpu": gpu, "model": model, **fixed}

    def expand(self, pattern: str, **wildcards: Iterable[str]) -> list[str]:
        """``pattern`` for every key that runs, and for every combination of ``wildcards``."""
        combinations = [dict(zip(wildcards, values, strict=True)) for values in product(*wildcards.values())]
        return [pattern.format(**key, **extra) for key in self.all_keys() for extra in combinations]

    def expand_models(self, pattern: str, **wildcards: Iterable[str]) -> list[str]:
        """``pattern`` once per GPU and model, whatever the revisions: see :meth:`expand`."""
        return list(dict.fromkeys(self.expand(pattern, **wildcards)))

    def revision_figure_inputs(self) -> dict[str, list[str]]:
        """What the figure across revisions is drawn from, by its path without extension."""
        keys = self.all_keys()
        return {REVISIONS_FIGURE.format(**key): [ACROSS_REVISIONS.format(**key)] for key in keys}

    def figure_inputs(self) -> dict[str, list[str]]:
        """What the figures of each folder are drawn from."""
        workloads, methods = self.config["workloads"], self.config["methods"]
        inputs = {}
        for key in self.all_keys():
            runs = product(workloads, methods)
            summaries = [SUMMARY.format(workload=workload, method=method, **key) for workload, method in runs]
            inputs[FIGURE_FOLDER.format(**key)] = [STATISTICS.format(**key), *summaries]
        return inputs

    def draft_model(self, model: str) -> str | None:
        """The row of the draft model that the methods need, or None when no method uses one."""
        needs = any(self.tables.methods[name].get("assistant") for name in self.config["methods"])
        return self.tables.models[model].get("draft_model") if needs else None

    def needs_static_table(self, method: str | None = None) -> bool:
        """Whether a method, of all or this one, drafts from the model's static table."""
        rows = (self.tables.methods[name] for name in ([method] if method else self.config["methods"]))
        return any((row.get("options") or {}).get("static_table") for row in rows)

    def unsupported(self, method: str, revision: str) -> str | None:
        """Why a revision does not have a method; None where it does."""
        return unsupported(self.tables.methods[method], revision, self.tables.revisions[revision])

    def source_state(self, revision: str) -> Row:
        """What is known of a revision's source before it is installed: of a working folder its present content."""
        row = self.tables.row("revisions", revision)
        return working_tree(revision, Path(row["path"]).expanduser()) if row["source"] == "path" else {}

    def workload(self, name: str) -> Row:
        """A workload's row with the experiment's cap on new tokens applied."""
        row = dict(self.tables.row("workloads", name))
        cap = self.config.get("max_new_tokens")
        if cap is not None:
            row["max_new_tokens"] = min(cap, row["max_new_tokens"])
        return row

    def source_files(self, workload: str) -> list[Path]:
        """The files a workload is read from, relative to the repository's root."""
        return source_files(workload, self.tables.row("workloads", workload)["source"], root=Path())

    def row_json(self, table: str, name: str) -> str:
        """One row of a table, as JSON (a tracked rule parameter)."""
        return json.dumps(self.tables.row(table, name), ensure_ascii=False)

    def generation_spec(
        self, *, revision: str, gpu: str, seed: str, limit: str, model: str, workload: str, method: str | None = None
    ) -> str:
        """Everything that one generation run needs to know, as JSON; with ``method``, for that one alone."""
        key = _key(revision=revision, gpu=gpu, seed=seed, limit=limit, model=model, workload=workload)
        draft = self.draft_model(model)
        names = [method] if method else self.config["methods"]
        spec = {
            "key": key,
            "model": _facts(self.tables.row("models", model)),
            "draft_model": _facts(self.tables.models[draft]) if draft else None,
            "workload": _facts(self.workload(workload)),
            "methods": {name: _facts(self.tables.row("methods", name)) for name in names},
            "unsupported": {name: why for name in names if (why := self.unsupported(name, revision)) is not None},
            "gpu": _facts(self.tables.row("gpus", gpu)),
            "timing": self.config["timing"],
            "repeats": self.config["repeats"],
        }
        return json.dumps(spec, ensure_ascii=False)

    def audit_spec(self, **wildcards: str) -> str:
        """What one run of the lossless gate needs to know: a generation run's spec and the gate's settings."""
        return json.dumps(json.loads(self.generation_spec(**wildcards)) | {"lossless": self.config["lossless"]})

    def serve_spec(self, *, row: str, seed: str, limit: str, **place: str) -> Row:
        """What running one row of the serve matrix needs to know.

        Raises:
            UserError: where ``place`` (revision and gpu) is not the row's own.
        """
        spec = self.serve_table.spec(row, self.tables, seed=int(seed), limit=int(limit))
        for name, value in place.items():
            if spec["key"][name] != value:
                problem = f"this row has another {name}: {spec['key'][name]}"
                raise UserError(problem, file=self.serve_table.file, key=f"rows.{row}", value=value)
        return spec

    def serve_specs(self, **place: str) -> list[Row]:
        """The specs of the rows that run, or of those with this revision and GPU."""
        fixed = {"seed": self.config["seed"], "limit": self.config["limit"]}
        specs = [self.serve_spec(row=name, **fixed) for name in self.config["serve"]["rows"]]
        return [spec for spec in specs if all(spec["key"][name] == value for name, value in place.items())]

    def serve_labels(self) -> str:
        """The labels of the rows of the serve matrix, as JSON."""
        return json.dumps({name: row["label"] for name, row in self.serve_table.rows.items()}, ensure_ascii=False)

    def serve_reports(self, *patterns: str) -> list[str]:
        """``patterns`` for every (revision, GPU) that a row of the serve matrix runs with."""
        keys = {json.dumps(spec["key"]): spec["key"] for spec in self.serve_specs()}
        return [pattern.format(**key) for key in keys.values() for pattern in patterns]

    def comparison_settings(self, *, revision: str, gpu: str, seed: str, limit: str, model: str) -> str:
        """What the statistics of one model need to know, as JSON."""
        settings = {
            "key": _key(revision=revision, gpu=gpu, seed=seed, limit=limit, model=model),
            "methods": self.config["methods"],
            "workloads": self.config["workloads"],
            "timing": self.config["timing"],
            **self.config["statistics"],
        }
        return json.dumps(settings)


FOR_PEOPLE = ("label", "description", "license", "weights_gb", "decode_gb_per_s", "usd_per_hour")


def _facts(row: Row) -> Row:
    """A row without what only people and estimates read: a better label must not repeat a measurement."""
    return {key: value for key, value in row.items() if key not in FOR_PEOPLE}


def _key(*, seed: str, limit: str, **names: str) -> Row:
    return {**names, "seed": int(seed), "limit": int(limit)}


def load_experiment(folder: Path, config: Mapping[str, Any], files: Iterable[Path] = ()) -> Experiment:
    """Check ``config`` (already merged) against its schema and the tables in ``folder``.

    Args:
        folder: the config/ folder.
        config: the merged configuration.
        files: the configuration files it was merged from, first to last; they only serve to name the guilty one.

    Raises:
        UserError: naming the file, the key, the value and what is allowed.
    """
    config = dict(config)
    sources = list(files)
    validate(config, "config", file=lambda key: _origin(config, key, sources))
    tables = load_tables(folder)
    for key in TABLES:
        for name in config[key]:
            tables.row(key, name, file=_origin(config, key, sources), key=key)
    _check_statistics(config, _origin(config, "statistics", sources))
    _check_support(config, tables, _origin(config, "methods", sources))
    serve_table = load_serve(folder, tables)
    for name in config["serve"]["rows"]:
        serve_table.row(name, file=_origin(config, "serve", sources), key="serve.rows")
    for model in config["models"]:
        _check_draft_model(config, tables, model)
    for workload in config["workloads"]:
        _check_source(tables, workload)
    return Experiment(config=config, tables=tables, serve_table=serve_table)


def load_suite(folder: Path, suite: Path | None = None) -> Experiment:
    """The experiment that config.yaml and, when given, one suite describe."""
    files = [folder / "config.yaml", *([suite] if suite else [])]
    config: dict[str, Any] = {}
    for path in files:
        content = load_yaml(path) or {}
        if not isinstance(content, Mapping):
            raise UserError("must be a mapping of keys", file=path, value=type(content).__name__)
        config = merged(config, content)
    return load_experiment(folder, config, files)


def _origin(config: Mapping[str, Any], key: str, files: list[Path]) -> object:
    """The file that gave ``key`` its value, or the command line when no file has that value."""
    for path in reversed(files):
        content = load_yaml(path) or {}
        if key in content:
            given = isinstance(content[key], Mapping) or content[key] == config.get(key)
            return path if given else "--config"
    return "--config" if key in config else next(iter(files), "the configuration")


def _check_statistics(config: Mapping[str, Any], origin: object) -> None:
    statistics, methods = config["statistics"], config["methods"]
    named = [("baseline", statistics["baseline"]), ("primary", statistics["primary"])]
    if statistics["aa"] is not None:
        named.append(("aa", statistics["aa"]))
    named += [("contrasts", name) for pair in statistics["contrasts"] for name in pair]
    for key, name in named:
        if name not in methods:
            raise UserError(
                "is not among the methods that run",
                file=origin,
                key=f"statistics.{key}",
                value=name,
                remedy=f"add it to methods or choose one of: {', '.join(methods)}",
            )
    twice = [pair for pair in statistics["contrasts"] if pair[0] == pair[1]]
    for key, value, wrong in (
        ("primary", statistics["primary"], statistics["primary"] in (statistics["baseline"], statistics["aa"])),
        ("aa", statistics["aa"], statistics["aa"] == statistics["baseline"]),
        ("contrasts", twice, bool(twice)),
    ):
        if wrong:
            problem = "an arm cannot be compared with itself"
            raise UserError(problem, file=origin, key=f"statistics.{key}", value=value, remedy="name another method")
    if not 0 < statistics["confidence"] < 1:
        problem, value = "must be between 0 and 1", statistics["confidence"]
        raise UserError(problem, file=origin, key="statistics.confidence", value=value, remedy="0.95 is usual")


def _check_support(config: Mapping[str, Any], tables: Tables, origin: object) -> None:
    """The baseline must run everywhere; another method somewhere. A working folder must be there."""
    revisions = {name: tables.revisions[name] for name in config["revisions"]}
    for method in config["methods"]:
        reasons = [unsupported(tables.methods[method], name, row) for name, row in revisions.items()]
        missing = [reason for reason in reasons if reason is not None]
        needed = method == config["statistics"]["baseline"]
        if missing and (needed or len(missing) == len(reasons)):
            remedy = "add a revision that has it, or take it out of methods"
            raise UserError(missing[0], file=origin, key="methods", value=method, remedy=remedy)
    for name, row in revisions.items():
        if row["source"] == "path":
            working_tree(name, Path(row["path"]).expanduser())


def _check_draft_model(config: Mapping[str, Any], tables: Tables, model: str) -> None:
    needing = [name for name in config["methods"] if tables.methods[name].get("assistant")]
    if needing and "draft_model" not in tables.models[model]:
        raise UserError(
            f"{needing[0]} needs a draft model and this row names none",
            file=tables.folder / "models.yaml",
            key=f"{model}.draft_model",
            remedy=f"name one, or take {needing[0]} out of methods",
        )


def _check_source(tables: Tables, workload: str) -> None:
    root = tables.folder.resolve().parent
    for path in source_files(workload, tables.workloads[workload]["source"], root=root):
        if not path.is_file():
            remedy = "correct the path, or take the workload out of workloads"
            file, key = tables.folder / "workloads.yaml", f"{workload}.source.file"
            raise UserError("no such file", file=file, key=key, value=str(path), remedy=remedy)
