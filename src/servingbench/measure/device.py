"""The device a run claims: checked before any work, so that no result is written under a key that is not true."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch

from servingbench.errors import UserError

# A driver and its firmware keep part of the memory that the vendor names, and GB are not GiB (an L4's "24 GB" are
# 22 GiB); a MIG slice or a smaller sibling of the same name falls well below this share.
_LEAST_SHARE_OF_MEMORY = 0.85


def prepare_device(key: str, row: Mapping[str, Any]) -> str:
    """Check that this machine is what the GPU row ``key`` says, and return torch's name for the device.

    The cpu row always runs on the CPU, with the row's thread count set.

    Raises:
        UserError: what was found instead and what to do.
    """
    if row["kind"] == "cpu":
        threads = row.get("threads")
        if threads is not None:
            torch.set_num_threads(int(threads))
        return "cpu"
    if not torch.cuda.is_available():
        raise _wrong(
            key,
            "found no CUDA device",
            value=f"torch {torch.__version__}",
            remedy="run on a machine with this GPU and a CUDA build of torch, or with --config 'gpus=[cpu]'",
        )
    torch.cuda.set_device(0)
    found = torch.cuda.get_device_properties(0)
    capability = f"{found.major}.{found.minor}"
    elsewhere = f"use the row of config/gpus.yaml that describes {found.name}, or add one"
    pattern = row.get("device_name")
    if pattern and not re.search(pattern, found.name):
        raise _wrong(key, f"needs a device named like {pattern!r}", value=found.name, remedy=elsewhere)
    wanted = row.get("compute_capability")
    if wanted is not None and str(wanted) != capability:
        problem = f"needs compute capability {wanted}, {found.name} has another"
        raise _wrong(key, problem, value=capability, remedy=elsewhere)
    least_gib = row.get("mem_gib")
    found_gib = found.total_memory / 2**30
    if least_gib is not None and found_gib < _LEAST_SHARE_OF_MEMORY * least_gib:
        problem = f"needs {least_gib} GiB of device memory, {found.name} has less"
        raise _wrong(key, problem, value=f"{found_gib:.1f} GiB", remedy=f"{elsewhere} (a MIG slice is another device)")
    return "cuda:0"


def _wrong(key: str, problem: str, *, value: object, remedy: str) -> UserError:
    return UserError(problem, file="config/gpus.yaml", key=key, value=value, remedy=remedy)
