"""What can be wrong before any job starts, in one line with a remedy."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

from snakemake_interface_common.exceptions import WorkflowError

NEEDED = "1.6"


def check_sdk() -> None:
    """Refuse to start without the Modal SDK or an account's token.

    The root folder modal/ makes `import modal` succeed without the SDK, as an empty namespace: its metadata are asked.
    """
    try:
        version = metadata.version("modal")
    except metadata.PackageNotFoundError:
        raise WorkflowError(
            "The Modal SDK is not installed: pip install -r envs/modal.txt, or pip install 'serving-bench[modal]'."
        ) from None
    if not version.startswith(f"{NEEDED}."):
        raise WorkflowError(
            f"The Modal SDK is {version}; this executor needs {NEEDED}.x: pip install -r envs/modal.txt."
        )
    os.environ.setdefault("MODAL_SANDBOX_V2", "0")  # one kind of sandbox for GPUs and CPUs
    configured = Path(os.environ.get("MODAL_CONFIG_PATH", "~/.modal.toml")).expanduser()
    if not (os.environ.get("MODAL_TOKEN_ID") and os.environ.get("MODAL_TOKEN_SECRET")) and not configured.exists():
        raise WorkflowError(
            "No Modal token: run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET in the environment."
        )
