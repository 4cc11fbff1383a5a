"""What continuous batching can and cannot serve."""

from __future__ import annotations

from servingbench.serving.preflight.case import Case, Finding, raised

KNOWN_LAYERS = ("full_attention", "sliding_attention")  # that the paged cache has an allocator for, in every release
ATTENTION = ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "paged|eager", "paged|sdpa")


def modality(case: Case) -> Finding | None:
    """A model with a processor in a tokenizer's place falls back to one request at a time."""
    if not case.batching:
        return None
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as WITH_IMAGES

    if case.config["model_type"] in WITH_IMAGES:
        said = f"{case.architecture} does not support continuous batching. Falling back to sequential generation."
        return Finding("degraded", "rule", said, "cb-multimodal-fallback")
    return Finding("pass", "rule", "a text model")


def layer_types(case: Case) -> Finding | None:
    """Group the layers as the paged cache will."""
    if not case.batching or _falls_back(case):
        return None
    try:
        from transformers.generation.continuous_batching.cache import group_layers_by_attn_type
    except ImportError:
        unknown = [kind for kind in getattr(case.text, "layer_types", None) or () if kind not in KNOWN_LAYERS]
        if unknown:
            return Finding("fail", "rule", f"Invalid group type: {unknown[0]}")
        return Finding("pass", "rule", "full and sliding attention only")
    try:
        groups = group_layers_by_attn_type(case.text)
    except Exception as error:  # the answer
        return raised(error)
    unknown = [kind for kind in groups if kind not in KNOWN_LAYERS] if isinstance(groups, dict) else []
    if unknown:  # up to 5.17 the cache itself refuses them, a step later
        return Finding("fail", "rule", f"Invalid group type: {unknown[0]}")
    return Finding("pass", "executed", "an allocator for every layer")


def _falls_back(case: Case) -> bool:
    found = modality(case)
    return found is not None and found.verdict == "degraded"


def attention(case: Case) -> Finding | None:
    """An implementation that the paged cache has a counterpart of."""
    if not case.batching or case.model is None:
        return None
    used = str(case.model.config._attn_implementation)
    if used in ATTENTION or "flash" in used:
        return Finding("pass", "rule", f"{used} has a paged form")
    return Finding("fail", "rule", f"Implementation {used} is not supported for continuous batching")


def device_map(case: Case) -> Finding | None:
    """A model spread over several GPUs: the cache's read indices stay on the first one."""
    if not case.batching or case.model is None or case.hardware.get("count", 1) == 1:
        return None
    if case.flags.get("tp_plan") or case.flags.get("tp_size"):
        return Finding("pass", "rule", "tensor parallelism")
    need, one = weight_bytes(case) / 2**30, float(case.hardware.get("mem_gib") or 0)
    if need < 0.9 * one and case.flags.get("device_map") not in ("auto", "balanced"):
        return Finding("pass", "rule", f"{need:.0f} GiB of weights fit on one GPU")
    said = f"{need:.0f} GiB of weights are spread over {case.hardware['count']} GPUs by a device map"
    return Finding("fail", "rule", f"{said}; continuous batching keeps its read indices on the first", "cb-device-map")


def weight_bytes(case: Case) -> int:
    """Of the weights on the meta device, as they will be in memory.

    FP8 below compute capability 8.9, and MXFP4 without its kernels, are dequantised to bf16; otherwise they take a byte
    and half a byte per parameter.
    """
    method = (case.config.get("quantization_config") or {}).get("quant_method")
    capability = case.capability or 0.0
    per_parameter = (
        1.0 if method == "fp8" and capability >= 8.9 else 0.5 if method == "mxfp4" and capability >= 9 else 2.0
    )
    if method in ("awq", "gptq", "bitsandbytes"):
        per_parameter = 0.5
    return int(sum(parameter.numel() for parameter in case.model.parameters()) * per_parameter)
