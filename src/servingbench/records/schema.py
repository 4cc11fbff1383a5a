"""The schemas in config/schemas: loading them, checking an instance, and saying in one line what is wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema
import yaml
from jsonschema.exceptions import ValidationError, best_match

from servingbench.errors import UserError

BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}
SCHEMAS = Path(__file__).resolve().parents[3] / "config" / "schemas"


@cache
def load_schema(name: str) -> dict[str, Any]:
    """The schema ``config/schemas/{name}.schema.yaml``."""
    schema: dict[str, Any] = yaml.safe_load((SCHEMAS / f"{name}.schema.yaml").read_text(encoding="utf-8"))
    return schema


def _is_integer(checker: object, instance: object) -> bool:
    """JSON Schema calls 3.0 an integer; a limit of 3.0 would make a folder that nobody asked for."""
    return isinstance(instance, int) and not isinstance(instance, bool)


_Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


@cache
def _validator(name: str, part: str | None) -> Any:
    schema = load_schema(name)
    return _Validator({**schema["$defs"][part], "$defs": schema["$defs"]} if part else schema)


def validate(instance: object, name: str, *, file: object, part: str | None = None) -> None:
    """Check ``instance`` against the schema ``name``.

    Args:
        instance: the parsed JSON or YAML.
        name: the schema's name.
        file: what to call the instance in an error, or a function from the guilty top-level key to that.
        part: check against this one of the schema's ``$defs``.

    Raises:
        UserError: naming ``file``, the key, the value and what is allowed.
    """
    error = best_match(_validator(name, part).iter_errors(instance))
    if error is not None:
        raise _explain(error, file)


def _unknown_key(error: ValidationError, schema: Mapping[str, Any]) -> str:
    instance = error.instance if isinstance(error.instance, Mapping) else {}
    return next((str(name) for name in instance if name not in schema.get("properties", {})), "?")


def suggest(value: str, allowed: Iterable[str]) -> str:
    """A remedy for an unknown name: the closest allowed one, then all of them."""
    names = list(allowed)
    close = difflib.get_close_matches(value, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Allowed: {', '.join(names) or 'none'}" if hint else f"allowed: {', '.join(names) or 'none'}"


def _explain(error: ValidationError, file: object) -> UserError:
    key = ".".join(str(part) for part in error.absolute_path)
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    unknown = error.validator == "additionalProperties"
    if unknown:
        key = ".".join(filter(None, (key, _unknown_key(error, schema))))
    if callable(file):
        file = file(key.split(".")[0])
    if unknown:
        remedy = suggest(key.rpartition(".")[2], schema.get("properties", {}))
        return UserError("unknown key", file=file, key=key, remedy=remedy)
    if error.validator == "required":
        missing = [name for name in schema["required"] if name not in dict(cast(Mapping[str, Any], error.instance))]
        return UserError(f"missing {', '.join(missing)}", file=file, key=key or None, remedy="add it")
    if error.validator == "enum":
        allowed = [str(choice) for choice in schema["enum"]]
        remedy = suggest(str(error.instance), allowed)
        return UserError("not allowed", file=file, key=key, value=error.instance, remedy=remedy)
    if error.validator == "type":
        return UserError(f"must be of type {schema['type']}", file=file, key=key or None, value=error.instance)
    if error.validator in BOUNDS:
        problem = f"must be {BOUNDS[str(error.validator)]} {error.validator_value}"
        return UserError(problem, file=file, key=key, value=error.instance)
    if error.validator == "pattern":
        problem, allowed_text = f"does not match {error.validator_value}", schema.get("description")
        return UserError(problem, file=file, key=key or None, value=error.instance, remedy=allowed_text)
    return UserError(error.message.splitlines()[0][:200], file=file, key=key or None)
