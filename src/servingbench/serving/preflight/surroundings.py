"""Packages, kernels, memory, the model's folder, the port: what is around the model."""

from __future__ import annotations

import socket
from importlib import metadata

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from servingbench.serving.preflight.batching import weight_bytes
from servingbench.serving.preflight.case import Case, Finding

# The kernels package that transformers releases need, newest first.
KERNELS = (
    ("5.23", ">=0.18.2,<0.19"),
    ("5.20", ">=0.17.2,<0.18"),
    ("5.18", ">=0.17,<0.18"),
    ("5.15", ">=0.16,<0.17"),
    ("5.13", ">=0.15.2,<0.16"),
)
NEEDS_KERNELS = ("kernels-community", "mxfp4")
PACKAGES = {"awq": "autoawq", "bitsandbytes": "bitsandbytes", "gptq": "gptqmodel"}
SINKS = ("gpt_oss",)  # architectures with attention sinks
KV_BYTES = 2  # per value of the cache, bf16
CONTEXT = 8192  # tokens of cache that the estimate counts


def packages(case: Case) -> Finding:
    """Packages that the row's quantisation and attention need, in the range that this transformers wants."""
    import transformers

    method = (case.config.get("quantization_config") or {}).get("quant_method")
    asked = str(case.flags.get("attn_implementation") or "")
    needed = PACKAGES.get(str(method))
    if needed and _version(needed) is None:
        return Finding("fail", "rule", f"{method} needs the package {needed}, which is not installed")
    if any(word in f"{asked} {method}" for word in NEEDS_KERNELS):
        found = _version("kernels")
        version = Version(transformers.__version__)
        wanted = next((span for since, span in KERNELS if version >= Version(since)), None)
        if found is None or (wanted and found not in SpecifierSet(wanted)):
            said = f"kernels{wanted or ''} is required by transformers {version}; found {found or 'none'}"
            return Finding("fail", "rule", said, "kernels-version")
    return Finding("pass", "rule", "nothing is missing")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def kernel_builds(case: Case) -> Finding | None:
    """Flash-attention kernels against the GPU, for the implementation that is used after redirects."""
    used = case.model.config._attn_implementation if case.model is not None else case.flags.get("attn_implementation")
    capability = case.capability
    if capability is None:
        return None
    flash = "flash" in str(used or "")
    if case.config["model_type"] in SINKS and flash and capability != 9.0:
        said = f"attention sinks need flash-attention kernels built for Hopper (9.0); this GPU has {capability}"
        return Finding("fail", "rule", said, "attention-sinks-need-hopper")
    if flash and capability < 8.0:
        said = f"flash-attention has no build variant for compute capability {capability}"
        return Finding("fail", "rule", said, "flash-attn2-no-build")
    if "3" in str(used) and flash and capability != 9.0:
        return Finding("fail", "rule", f"FlashAttention 3 needs compute capability 9.0; this GPU has {capability}")
    return Finding("pass", "rule", f"{used} on compute capability {capability}")


def memory(case: Case) -> Finding | None:
    """Weights and cache against the GPUs' memory: an estimate."""
    total = float(case.hardware.get("mem_gib") or 0) * int(case.hardware.get("count", 1))
    if case.model is None or case.capability is None or not total:
        return None
    text = case.text
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    cache = 2 * text.num_hidden_layers * heads * width * KV_BYTES * CONTEXT
    need = (weight_bytes(case) + cache) / 2**30
    said = f"estimated {need:.0f} GiB of weights and cache of {CONTEXT} tokens, {total:.0f} GiB of memory"
    if need > total:
        return Finding("fail", "rule", said, "out-of-memory")
    return Finding("risk" if need > 0.9 * total else "pass", "rule", said)


def chat_template(case: Case) -> Finding | None:
    """The evaluation talks to a chat."""
    if case.folder is None:
        return None
    settings = case.folder / "tokenizer_config.json"
    inside = settings.is_file() and '"chat_template"' in settings.read_text(encoding="utf-8")
    if inside or any((case.folder / name).is_file() for name in ("chat_template.jinja", "chat_template.json")):
        return Finding("pass", "rule", "the model's folder has one")
    said = f"chat_template is not set in {case.folder.name}"
    return Finding("fail", "rule", said, "chat-template-missing")


def mount(case: Case) -> Finding | None:
    """Safetensors are read by memory mapping, page by page, which a FUSE mount answers one request at a time."""
    if case.spec["model"].get("mount") != "fuse":
        return None
    return Finding("risk", "rule", "the weights lie on a FUSE mount", "fuse-mmap-stall")


def port(case: Case) -> Finding | None:
    """A port that the row names must be free."""
    wanted = case.flags.get("port")
    if wanted is None:
        return None
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", int(wanted)))
        except OSError as error:
            return Finding("fail", "executed", f"[Errno {error.errno}] address already in use: {wanted}", "port-in-use")
    return Finding("pass", "executed", f"port {wanted} is free")
