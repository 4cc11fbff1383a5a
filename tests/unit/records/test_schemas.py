"""Every schema is a valid schema, closed at its top level."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from servingbench.records.schema import SCHEMAS, load_schema


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.schema.yaml")), ids=lambda path: path.name)
def test_a_schema_is_valid_and_closed(path: Path) -> None:
    schema = load_schema(path.name.removesuffix(".schema.yaml"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"]
    assert "additionalProperties" in str(schema)
