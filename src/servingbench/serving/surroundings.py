"""What a row's process works with, from its arguments; and the check that it runs on the hardware of its key."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from servingbench.errors import UserError
from servingbench.serving.attempt import Surroundings
from servingbench.serving.engines import environment
from servingbench.serving.failures import load_failures


def surround(args: argparse.Namespace) -> Surroundings:
    """The surroundings that the arguments of workflow_scripts/serve_row.py describe."""
    local = args.spec["model"]["kind"] != "hub"
    return Surroundings(
        model=args.model,
        tokenizer=args.tokenizer,
        problems=args.problems,
        server=environment(args.server_overlays, offline=local, threads=args.spec["hardware"]["threads"]),
        inspect=environment([args.inspect_overlay], offline=True),
        # Offline, aiperf looks for a tokenizer in the hub's cache alone, and not in the folder that it is given.
        aiperf=environment([args.aiperf_overlay], offline=False),
        failures=load_failures(args.failures),
    )


def check_hardware(spec: Mapping[str, Any]) -> None:
    """Refuse to write a result under the key of a GPU that is not here.

    Raises:
        UserError: what was found instead.
    """
    hardware = spec["hardware"]
    if hardware["kind"] == "cpu":
        return
    import torch

    from servingbench.measure.device import prepare_device

    prepare_device(hardware["gpu"], hardware)
    if torch.cuda.device_count() < hardware["count"]:
        problem = f"needs {hardware['count']} devices"
        remedy = f"run it on {hardware['flavor'] or hardware['name']}"
        raise UserError(
            problem, file="config/serve.yaml", key=spec["id"], value=torch.cuda.device_count(), remedy=remedy
        )
