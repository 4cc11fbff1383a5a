"""`transformers serve`, with a window: on SIGUSR1 it writes what the loaded model really is to a file.

    python transformers_serve.py OBSERVED.json serve MODEL ...

Everything behind OBSERVED.json goes to transformers' own command line. The server is neither patched nor told; the
handler looks for models among the objects of the process.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from importlib import metadata
from pathlib import Path
from typing import Any


def main() -> None:
    """Install the handler and become the command."""
    observed = Path(sys.argv.pop(1)).resolve()
    sys.argv[0] = "transformers"
    signal.signal(signal.SIGUSR1, lambda *_: _write(observed))
    from transformers.cli.transformers import app

    app()


def _write(path: Path) -> None:
    from transformers import PreTrainedModel

    # By type, not isinstance: that asks the object for its __class__, and a lazy one would answer with an import.
    found = [item for item in gc.get_objects() if issubclass(type(item), PreTrainedModel)]
    # A model's parts are models too (the language model of a LlavaModel); the whole one has the most parameters.
    whole = max(found, key=lambda model: sum(1 for _ in model.parameters()), default=None)
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps({**_describe(whole), "packages": _packages()}))
    temporary.replace(path)


def _describe(model: Any) -> dict[str, Any]:
    if model is None:
        return {"architecture": None, "attn_implementation": None, "device_map_devices": None, "dtype": None}
    devices = getattr(model, "hf_device_map", None) or {}
    return {
        "architecture": type(model).__name__,
        "attn_implementation": model.config._attn_implementation,
        "device_map_devices": sorted({str(device) for device in devices.values()} or {str(model.device)}),
        "dtype": str(model.dtype).removeprefix("torch."),
    }


def _packages() -> dict[str, str]:
    versions = {}
    for name in ("transformers", "torch", "kernels", "accelerate", "fastapi", "uvicorn"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


if __name__ == "__main__":
    # The folder of this script would come first on the path and shadow nothing today; it has no business there.
    sys.path[:] = [entry for entry in sys.path if Path(entry or os.curdir).resolve() != Path(__file__).resolve().parent]
    main()
