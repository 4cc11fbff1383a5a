"""What compare.py is asked to compare: the arms, the pre-declared contrasts, the bootstrap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import ceil
from typing import Any, Literal, Self

from servingbench.errors import UserError
from servingbench.records.schema import suggest

IntervalKind = Literal["bootstrap-t", "bca"]
OVERALL = "overall"
"""The scope of a comparison over all workloads."""
KEY_FIELDS = ("revision", "gpu", "seed", "limit", "model")


@dataclass(frozen=True)
class Settings:
    """The settings of one statistics.json.

    Attributes:
        key: revision, gpu, seed, limit and model of the results.
        methods: every arm in table order, baseline and A/A included.
        workloads: the tasks, which the bootstrap stratifies by.
        baseline: the arm that speedups are over.
        aa: the baseline's second arm, or None.
        primary: the method of the one pre-declared contrast, against the baseline over all workloads.
        contrasts: further (method, reference) pairs.
        resamples: bootstrap resamples B.
        confidence: of the intervals, for instance 0.95.
        seed: of the resampling.
        interval: ``bootstrap-t`` or ``bca``.
        timing: ``forced`` or ``free``, which every record must be.
    """

    key: dict[str, Any]
    methods: tuple[str, ...]
    workloads: tuple[str, ...]
    baseline: str
    aa: str | None
    primary: str
    contrasts: tuple[tuple[str, str], ...]
    resamples: int
    confidence: float
    seed: int
    interval: IntervalKind
    timing: Literal["forced", "free"]

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, file: object) -> Self:
        """Check and convert the parsed JSON; ``file`` is what errors call it.

        Raises:
            UserError: a missing or unknown key, an unknown method, or a value that is out of range.
        """
        names = [field.name for field in fields(cls)]
        for key in value:
            if key not in names:
                raise UserError("unknown key", file=file, key=key, remedy=suggest(key, names))
        missing = [name for name in names if name not in value]
        if missing:
            raise UserError(f"missing {', '.join(missing)}", file=file, remedy="add it")
        for name in ("methods", "workloads"):
            if not isinstance(value[name], list):
                raise UserError("must be a list of names", file=file, key=name, value=value[name])
        for contrast in value["contrasts"]:
            if not isinstance(contrast, list) or len(contrast) != 2:
                raise UserError("must be a pair [method, reference]", file=file, key="contrasts", value=contrast)
        lists = {"methods": tuple(value["methods"]), "workloads": tuple(value["workloads"])}
        contrasts = tuple((method, reference) for method, reference in value["contrasts"])
        settings = cls(**{**value, **lists, "contrasts": contrasts})
        settings._check(file)
        return settings

    def _check(self, file: object) -> None:
        missing = [field for field in KEY_FIELDS if field not in self.key]
        if missing:
            raise UserError(f"missing {', '.join(missing)}", file=file, key="key", remedy="add it")
        if OVERALL in self.workloads:
            raise UserError("is the scope of all workloads together", file=file, key="workloads", value=OVERALL)
        if not self.workloads:
            raise UserError("no workload to compare on", file=file, key="workloads", remedy="name at least one")
        named = [("baseline", self.baseline), ("primary", self.primary)]
        named += [("aa", self.aa)] if self.aa is not None else []
        named += [("contrasts", method) for pair in self.contrasts for method in pair]
        for key, method in named:
            if method not in self.methods:
                remedy = suggest(method, self.methods)
                raise UserError("unknown method", file=file, key=key, value=method, remedy=remedy)
        for key, method in named[1:]:
            if key != "contrasts" and method == self.baseline:
                raise UserError("is the baseline itself", file=file, key=key, value=method, remedy="name another arm")
        for method, reference in self.contrasts:
            if method == reference:
                raise UserError("compares a method with itself", file=file, key="contrasts", value=[method, reference])
        if not 0 < self.confidence < 1:
            raise UserError("must lie between 0 and 1", file=file, key="confidence", value=self.confidence)
        for key, value, allowed in (
            ("interval", self.interval, ("bootstrap-t", "bca")),
            ("timing", self.timing, ("forced", "free")),
        ):
            if value not in allowed:
                raise UserError("not allowed", file=file, key=key, value=value, remedy=suggest(value, allowed))
        least = ceil(2 / (1 - self.confidence)) - 1
        if self.resamples < least:
            raise UserError(
                f"too few for a {self.confidence:g} interval",
                file=file,
                key="resamples",
                value=self.resamples,
                remedy=f"use at least {least}, better 10000",
            )

    def recorded(self) -> dict[str, Any]:
        """The part that statistics.json stores under ``settings``."""
        names = ("resamples", "confidence", "seed", "interval", "primary", "timing")
        return {name: getattr(self, name) for name in names}
