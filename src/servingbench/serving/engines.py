"""How each engine is started: the command, and the environment that it and the tools around it run in."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from servingbench.serving.servers import transformers_serve, xllamacpp_serve

HOST = "127.0.0.1"
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def server_command(
    spec: Mapping[str, Any], *, model: str, port: int, flags: Mapping[str, Any], observed: Path
) -> list[str]:
    """The command that serves ``model`` with ``flags`` on ``port``.

    Args:
        spec: the row.
        model: folder, file or Hugging Face id, as clients will name it.
        port: of 127.0.0.1.
        flags: the row's, with a workaround's changes applied.
        observed: where transformers' server writes what it loaded, when it is asked.
    """
    address = ["--host", HOST, "--port", str(port)]
    if spec["engine"] == "xllamacpp":
        threads = spec["hardware"]["threads"]
        flags = {**({"n_threads": threads} if threads else {}), **flags}
        return [sys.executable, str(xllamacpp_serve.__file__), model, *address, *options(flags)]
    flags = {**({"device": "cpu"} if spec["hardware"]["kind"] == "cpu" else {}), **flags}
    script = str(transformers_serve.__file__)
    return [sys.executable, script, str(observed), "serve", model, *address, *options(flags)]


def options(flags: Mapping[str, Any]) -> list[str]:
    """Flags as a command line: true and false become --flag and --no-flag."""
    words: list[str] = []
    for name, value in flags.items():
        dashed = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{dashed}" if value else f"--no-{dashed}")
        else:
            words += [f"--{dashed}", str(value)]
    return words


def changed(flags: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``flags`` with a workaround's changes; null takes a flag away."""
    return {name: value for name, value in {**flags, **changes}.items() if value is not None}


def environment(overlays: Sequence[Path], *, offline: bool, threads: int | None = None) -> dict[str, str]:
    """This process's environment with ``overlays`` first on Python's path and nothing else of it.

    OpenMP's threads wait passively: spinning ones starve the client that shares the processor with a server.

    Args:
        overlays: site-packages folders, the first one wins.
        offline: refuse Hugging Face's hub.
        threads: of OpenMP, where the hardware's row fixes them.
    """
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", *OFFLINE)}
    path = os.pathsep.join(str(overlay.absolute()) for overlay in overlays)
    limits = {"OMP_NUM_THREADS": str(threads)} if threads else {}
    return {
        **kept,
        **limits,
        **(OFFLINE if offline else {}),
        "PYTHONPATH": path,
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
