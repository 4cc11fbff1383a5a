"""Will the model load: its class, its attention implementation, its quantiser."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from servingbench.serving.preflight.case import Case, Finding, raised

# What loading raises where config.json is all there is and everything before the weights went well.
NO_WEIGHTS = "no file named model.safetensors"
FP8_PLAN = ("5.16.0", "5.16.1")  # releases whose FP8 quantiser looks up an experts implementation that nobody passed


def architecture(case: Case) -> Finding:
    """Whether this transformers knows model type and class."""
    import transformers

    known = case.config["model_type"] in transformers.CONFIG_MAPPING and hasattr(transformers, case.architecture)
    if known:
        return Finding("pass", "executed", f"{case.architecture} is in transformers {transformers.__version__}")
    said = f"Transformers {transformers.__version__} does not recognize this architecture: {case.architecture}"
    return Finding("fail", "executed", said, "architecture-unknown")


def attention(case: Case) -> Finding:
    """Build the model on the meta device with the implementation that the row asks for."""
    import torch
    import transformers

    asked = case.flags.get("attn_implementation")
    options = {} if asked is None else {"attn_implementation": asked}
    try:
        with torch.device("meta"):
            case.model = getattr(transformers, case.architecture)._from_config(case.parsed, **options)
    except Exception as error:  # whatever transformers raises here is the answer
        return raised(error)
    used = case.model.config._attn_implementation
    if asked is not None and used != asked:
        return Finding("risk", "executed", f"{asked} was asked for and {used} is used")
    return Finding("pass", "executed", f"built with {used}")


def quantizer(case: Case) -> Finding | None:
    """Load from a folder that holds config.json alone: the missing weights are the first thing that may be wrong."""
    settings = case.config.get("quantization_config")
    if settings is None:
        return None
    import transformers

    method = settings.get("quant_method")
    if _fp8_plan_is_none(case, method):
        said = "'NoneType' object has no attribute 'get': the tensor-parallel plan needs an experts implementation"
        return Finding("fail", "rule", said, "fp8-tp-plan-none")
    try:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "config.json").write_text(json.dumps(dict(case.config)))
            getattr(transformers, case.architecture).from_pretrained(folder, dtype="auto")
    except Exception as error:  # the answer again
        if NO_WEIGHTS in str(error):
            return Finding("pass", "executed", f"{method}: everything before the weights went well")
        return _of_this_machine(case, method, error)
    return Finding("pass", "executed", f"{method}: loaded")


def _fp8_plan_is_none(case: Case, method: Any) -> bool:
    spread = case.hardware.get("count", 1) > 1
    return method == "fp8" and spread and case.version in FP8_PLAN and not case.config.get("experts_implementation")


def _of_this_machine(case: Case, method: Any, error: Exception) -> Finding:
    """A quantiser that asks for a GPU says nothing about the row's machine when this one has none."""
    if case.capability is not None and any(word in str(error) for word in ("GPU", "CUDA", "cuda", "accelerat")):
        return Finding("risk", "rule", f"{method} could not be tried without a GPU: {str(error).splitlines()[0][:200]}")
    return raised(error)
