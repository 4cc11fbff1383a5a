"""The evaluation of a served model: the unmodified `inspect eval inspect_evals/gsm8k`, and what its log says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servingbench.serving.process import OwnedProcess
from servingbench.serving.servers import read_inspect_log

PROVIDER = "transformers_serve"


def inspect_command(settings: Mapping[str, Any], *, model: str, log_dir: str) -> list[str]:
    """The words behind ``inspect``; its retries are unlimited by default, so they are limited here."""
    return [
        "eval",
        settings["task"],
        *("--model", f"openai-api/{PROVIDER}/{model}"),
        *("--limit", str(settings["limit"])),
        *("--max-connections", str(settings["max_connections"])),
        *("--temperature", str(settings["temperature"])),
        *("-M", "stream=false"),
        *("--max-tokens", str(settings["max_tokens"])),
        *("--max-retries", str(settings["max_retries"])),
        *("--attempt-timeout", str(settings["attempt_timeout_s"])),
        *("--log-dir", log_dir),
        *("--log-format", "json"),
        *("--display", "plain"),
    ]


def evaluate(
    settings: Mapping[str, Any],
    *,
    url: str,
    model: str,
    problems: Path,
    environment: Mapping[str, str],
    folder: Path,
    timeout_s: float,
) -> dict[str, Any]:
    """Run the evaluation against ``url``.

    Args:
        settings: the row's ``eval``.
        url: of the server, without /v1.
        model: the name that the server knows it by.
        problems: folder with openai/gsm8k/main/*.parquet, which `datasets` prefers to the hub when it runs there.
        environment: Inspect's.
        folder: where inspect.log and the evaluation's log go.
        timeout_s: outer limit.

    Returns:
        Fields of summary.json's ``eval``; ``status`` is ``timeout`` past the limit, ``broken`` without a readable log.
    """
    logs = folder / "inspect"
    words = inspect_command(settings, model=model, log_dir=os.path.relpath(logs, problems))
    access = {f"{PROVIDER.upper()}_BASE_URL": f"{url}/v1", f"{PROVIDER.upper()}_API_KEY": "none"}
    output = folder / "inspect.log"
    command = [sys.executable, "-m", "inspect_ai", *words]
    with OwnedProcess(command, environment={**environment, **access}, log=output, cwd=problems) as process:
        finished = process.wait(timeout_s) is not None
    written = sorted(logs.glob("*.json"))
    common = {"task": settings["task"], "argv": ["inspect", *words], "log": None}
    if not finished or not written:
        return {**common, "status": "broken" if finished else "timeout"}
    # Inspect's own reader, which lives in Inspect's environment
    reader = [sys.executable, read_inspect_log.__file__, str(written[-1])]
    done = subprocess.run(reader, env=dict(environment), capture_output=True, text=True, check=False)
    if done.returncode:
        output.open("a").write(done.stderr)
        return {**common, "status": "broken"}
    return {**common, **json.loads(done.stdout), "log": f"inspect/{written[-1].name}"}
