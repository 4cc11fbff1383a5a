"""The preflight against the published failures, from configs alone, and each check's other verdict."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import transformers
import yaml

from servingbench.serving.failures import load_failures
from servingbench.serving.preflight import CHECKS, loading, run, worst
from servingbench.serving.preflight.case import Case

ROOT = Path(__file__).parents[3]
CONFIGS = yaml.safe_load((ROOT / "tests/fixtures/serve_configs.yaml").read_text())
FAILURES = load_failures(ROOT / "config/failures.yaml")
HARDWARE = {
    "cpu": {"count": 1, "compute_capability": None, "mem_gib": None},
    "t4": {"count": 1, "compute_capability": "7.5", "mem_gib": 16},
    "a100": {"count": 1, "compute_capability": "8.0", "mem_gib": 80},
    "a100x8": {"count": 8, "compute_capability": "8.0", "mem_gib": 80},
    "h200x2": {"count": 2, "compute_capability": "9.0", "mem_gib": 141},
}
CB = {"continuous_batching": True}
pytestmark = pytest.mark.skipif(
    transformers.__version__ != "5.24.0", reason="these verdicts are of transformers 5.24.0"
)


def judge(config: str | dict[str, Any], hardware: str = "cpu", **flags: Any) -> list[dict[str, Any]]:
    values = CONFIGS[config] if isinstance(config, str) else config
    spec = {"id": "row", "flags": flags, "hardware": HARDWARE[hardware], "model": {"name": "model"}}
    return run(Case(spec, values, None, FAILURES))


def entry(findings: list[dict[str, Any]], check: str) -> dict[str, Any]:
    [found] = [one for one in findings if one["check"] == check]
    return found


# The published failures (config/reported/serve_attempts.yaml): config, hardware, flags, check, verdict, signature.
PUBLISHED = [
    ("llama-3.1-8b", "t4", {"attn_implementation": "flash_attention_2"}, "fail", None),
    ("deepseek-v4", "h200x2", CB, "fail", "cb-unsupported-layer-type"),
    ("glm-5.2-fp8", "h200x2", CB, "fail", "cb-unsupported-layer-type"),
    ("gpt-oss-20b", "a100", {"attn_implementation": "sdpa"}, "fail", "sdpa-unsupported"),
    ("qwen3.5-text", "a100", CB, "fail", "cb-linear-attention"),
    ("qwen3.5", "a100", CB, "degraded", "cb-multimodal-fallback"),
    ("laguna-like", "a100x8", CB, "fail", "cb-device-map"),
]


@pytest.mark.parametrize(("config", "hardware", "flags", "verdict", "signature"), PUBLISHED)
def test_a_published_failure_is_predicted(
    config: str, hardware: str, flags: dict[str, Any], verdict: str, signature: str | None
) -> None:
    found = worst(judge(config, hardware, **flags))
    assert found is not None
    assert found["verdict"] == verdict
    if signature is not None:
        assert found["signature"] == signature
        assert found["workaround"] == FAILURES[signature]["workaround"]


def test_kernel_builds_are_judged_by_the_gpu() -> None:
    def verdict(config: str, hardware: str, used: str) -> tuple[str, str | None]:
        spec = {"flags": {"attn_implementation": used}, "hardware": HARDWARE[hardware], "model": {}}
        found = CHECKS["kernel_builds"](Case(spec, CONFIGS[config], None, FAILURES))
        assert found is not None
        return found.verdict, found.signature

    assert verdict("llama-3.1-8b", "t4", "kernels-community/flash-attn2") == ("fail", "flash-attn2-no-build")
    assert verdict("llama-3.1-8b", "a100", "flash_attention_2") == ("pass", None)
    assert verdict("llama-3.1-8b", "a100", "flash_attention_3")[0] == "fail"
    assert verdict("gpt-oss-20b", "a100", "flash_attention_2") == ("fail", "attention-sinks-need-hopper")
    assert verdict("gpt-oss-20b", "h200x2", "flash_attention_2") == ("pass", None)


def test_a_failure_that_one_release_had_says_when_it_was_mended() -> None:
    config = CONFIGS["glm-5.2-fp8"] | {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    spec = {"flags": {}, "hardware": HARDWARE["h200x2"], "model": {}}
    case = Case(spec, config, None, FAILURES)
    case.version = "5.16.1"
    found = loading.quantizer(case)
    assert found is not None
    told = found.entry(FAILURES)
    assert (told["verdict"], told["signature"], told["fixed_in"]) == ("fail", "fp8-tp-plan-none", "5.17.0")
    for change, version in (({"experts_implementation": "deepgemm_megamoe"}, "5.16.1"), ({}, "5.24.0")):
        case = Case(spec, config | change, None, FAILURES)
        case.version = version
        found = loading.quantizer(case)
        assert found is None or found.signature != "fp8-tp-plan-none"


def test_what_is_well_passes_every_check_that_applies() -> None:
    findings = judge("llama-3.1-8b", "a100", attn_implementation="sdpa", **CB)
    assert {one["verdict"] for one in findings} == {"pass"}
    told = " ".join(one["check"] for one in findings)
    assert told == "architecture packages attention kernel_builds modality cb_layer_types cb_attention memory"
    assert entry(findings, "attention")["confidence"] == "executed"


def test_an_unknown_architecture_ends_the_preflight() -> None:
    findings = judge({"model_type": "no_such", "architectures": ["NoSuchForCausalLM"]})
    assert [one["check"] for one in findings] == ["architecture"] or findings[0]["signature"] == "architecture-unknown"


def test_memory_and_packages() -> None:
    assert entry(judge("llama-3.1-8b", "t4"), "memory")["verdict"] == "risk"
    assert entry(judge("laguna-like", "a100"), "memory")["signature"] == "out-of-memory"
    missing = judge("llama-3.1-8b", "a100", attn_implementation="kernels-community/flash-attn2")
    assert entry(missing, "packages")["signature"] == "kernels-version"


def test_a_taken_port_and_a_folder_without_a_template(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        assert entry(judge("qwen3.5-text", port=busy), "port")["signature"] == "port-in-use"
    spec = {"flags": {}, "hardware": HARDWARE["cpu"], "model": {"mount": "fuse"}}
    case = Case(spec, CONFIGS["llama-3.1-8b"], tmp_path, FAILURES)
    assert [CHECKS[name](case).verdict for name in ("chat_template", "mount")] == ["fail", "risk"]  # type: ignore[union-attr]
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    assert CHECKS["chat_template"](case).verdict == "pass"  # type: ignore[union-attr]
