"""What a check is given, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from servingbench.serving.failures import classify

Verdict = Literal["fail", "degraded", "risk", "pass"]
Confidence = Literal["executed", "rule"]


@dataclass(frozen=True)
class Finding:
    """The answer of one check.

    Attributes:
        verdict: what will happen.
        confidence: whether transformers' own code said so.
        evidence: what it said, or the rule.
        signature: a row of config/failures.yaml, where the evidence is not to be looked up there.
    """

    verdict: Verdict
    confidence: Confidence
    evidence: str
    signature: str | None = None

    def entry(self, failures: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """As summary.json holds it, with what config/failures.yaml knows of it."""
        signature = self.signature
        if signature is None and self.verdict == "fail":
            found = [classify(self.evidence, phase=phase, table=failures) for phase in ("launch", "first_request")]
            signature = next((one["signature"] for one in found if one["cause"]), "unclassified")
        known = failures.get(signature or "", {})
        about = {name: known.get(name) for name in ("workaround", "since", "fixed_in")} if known else {}
        head = {"verdict": self.verdict, "confidence": self.confidence, "evidence": self.evidence}
        return {**head, "signature": signature, **about}


def raised(error: Exception) -> Finding:
    """The failure that transformers' own code raised."""
    return Finding("fail", "executed", f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")


@dataclass
class Case:
    """One row under judgement.

    Args:
        spec: the row, of :meth:`servingbench.config.serve.ServeTable.spec`.
        config: the contents of the model's config.json.
        folder: of the prepared model, where there is one; its weights are not read.
        failures: the table of known failures.

    Attributes:
        model: on the meta device, once the attention check has built it.
    """

    spec: Mapping[str, Any]
    config: Mapping[str, Any]
    folder: Path | None
    failures: Mapping[str, Mapping[str, Any]]
    model: Any = field(default=None)

    @cached_property
    def version(self) -> str:
        """Of the transformers that judges."""
        import transformers

        return str(transformers.__version__)

    @property
    def flags(self) -> Mapping[str, Any]:
        """Of the row."""
        return dict(self.spec["flags"])

    @property
    def batching(self) -> bool:
        """Whether it asks for continuous batching."""
        return bool(self.flags.get("continuous_batching"))

    @property
    def hardware(self) -> Mapping[str, Any]:
        """Where it runs."""
        return dict(self.spec["hardware"])

    @property
    def capability(self) -> float | None:
        """The GPU's compute capability; None on a CPU."""
        value = self.hardware.get("compute_capability")
        return float(value) if value else None

    @property
    def architecture(self) -> str:
        """The class that config.json names."""
        return str(self.config["architectures"][0])

    @cached_property
    def parsed(self) -> Any:
        """The config as transformers understands it."""
        import transformers

        options = {name: value for name, value in self.config.items() if name not in ("architectures", "model_type")}
        parsed = transformers.AutoConfig.for_model(self.config["model_type"], **options)
        parsed.architectures = list(self.config["architectures"])
        return parsed

    @property
    def text(self) -> Any:
        """Of a model of several modalities, the text part."""
        return self.parsed.get_text_config()
