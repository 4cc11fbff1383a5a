"""A method that only a fork of transformers has: arguments of its generate(), by configuration and without code."""

from __future__ import annotations

import importlib
from typing import Any

from servingbench.decoding.hf import TransformersMethod
from servingbench.decoding.hf_speculation import Speculation
from servingbench.errors import UserError


class ForkMethod(TransformersMethod):
    """A row of ``kind: generate_kwargs``.

    Counting delegates to the candidate generator that the row names; a call that did not build it is refused.

    Args:
        name: the method's name.
        model: the target.
        row: ``generator``, and optionally ``proposed``, ``kwargs`` and ``objects``, as the schema explains them.

    Raises:
        UserError: for an object that this revision does not have or cannot build.
    """

    def __init__(self, name: str, *, model: Any, row: dict[str, Any]) -> None:
        super().__init__(name, model=model, options={})
        self._speculation = Speculation(row["generator"])
        self._proposed = row.get("proposed")
        self._kwargs = dict(row.get("kwargs") or {})
        self._objects = dict(row.get("objects") or {})
        self._shared = {key: self._build(key) for key, about in self._objects.items() if about.get("shared")}
        self._arguments()  # what cannot be built shows now

    def _arguments(self) -> dict[str, Any]:
        fresh = {key: self._build(key) for key in self._objects if key not in self._shared}
        return {**self._kwargs, **self._shared, **fresh}

    def _build(self, key: str) -> Any:
        about = self._objects[key]
        module, _, cls = about["class"].rpartition(".")
        try:
            return getattr(importlib.import_module(module), cls)(**(about.get("kwargs") or {}))
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            problem = f"this transformers cannot build it: {error}"
            remedy = "correct class and kwargs of the method's row, or name another revision in supports"
            where = f"{self.name}.objects.{key}"
            raise UserError(
                problem, file="config/methods.yaml", key=where, value=about["class"], remedy=remedy
            ) from None
