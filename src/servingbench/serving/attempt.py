"""One attempt at one row: start the server, prove that it generates, evaluate, load-test, look inside, stop."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.records.files import read_json
from servingbench.serving import client, engines
from servingbench.serving.evaluate import evaluate
from servingbench.serving.failures import classify
from servingbench.serving.load import aiperf_command, load_test
from servingbench.serving.process import OwnedProcess

POLL_S = 0.25
OBSERVE_S = 10.0
CB_USED = re.compile(r"\[Request received\] Model: .*, CB: (True|False)")
FALLBACK = "cb-multimodal-fallback"


@dataclass(frozen=True)
class Surroundings:
    """What an attempt works with.

    Args:
        model: folder, file or id that is served, as clients will name it.
        tokenizer: folder that aiperf makes prompts with.
        problems: folder of the evaluation's data.
        server: environment variables of the server; inspect and aiperf: of the tools.
        failures: the table of signatures.
    """

    model: str
    tokenizer: str
    problems: Path
    server: Mapping[str, str]
    inspect: Mapping[str, str]
    aiperf: Mapping[str, str]
    failures: Mapping[str, Mapping[str, Any]]


@dataclass
class Attempt:
    """The running record of one attempt; :func:`run` fills it."""

    spec: Mapping[str, Any]
    flags: Mapping[str, Any]
    folder: Path
    surroundings: Surroundings
    phase: str = "launch"
    argv: list[str] = field(default_factory=list)
    launch: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(("ready_s", "first_token_ok_s", "exit_code")))
    effective: dict[str, Any] = field(default_factory=dict)
    eval: dict[str, Any] | None = None
    load: list[dict[str, Any]] = field(default_factory=list)
    said: str = ""  # what the row itself has to add to the server's log
    outcome: str = "ok"

    @property
    def log(self) -> Path:
        """The server's whole output."""
        return self.folder / "server.log"

    @property
    def observed(self) -> Path:
        """Where transformers' server writes what it loaded."""
        return self.folder / "observed.json"

    def fail(self, said: str = "", *, outcome: str = "failed") -> None:
        """End the attempt in its present phase."""
        self.outcome, self.said = outcome, said


def run(attempt: Attempt, *, measure: bool = True) -> dict[str, Any]:
    """Live through the attempt.

    Args:
        attempt: not run before.
        measure: evaluate and load-test, or stop after the proof that the server generates.

    Returns:
        Fields of one entry of summary.json's ``attempts``.

    Raises:
        UserError: when a tool is broken while the server is well.
    """
    flags = dict(attempt.flags)
    port = client.free_port(engines.HOST, flags.pop("port", None))
    if port is None:
        attempt.fail("[row] address already in use, found before the start")
        return _record(attempt)
    command = engines.server_command(
        attempt.spec, model=attempt.surroundings.model, port=port, flags=flags, observed=attempt.observed
    )
    attempt.argv = command
    url = f"http://{engines.HOST}:{port}"
    started = time.monotonic()
    with OwnedProcess(command, environment=attempt.surroundings.server, log=attempt.log) as server:
        try:
            proven = _ready(attempt, server, url, started) and _generates(attempt, server, url, started)
            if measure and proven and _evaluated(attempt, server, url):
                _loaded(attempt, server, url)
        finally:
            _observe(attempt, server)
            attempt.launch["exit_code"] = server.poll()
    return _record(attempt)


def _ready(attempt: Attempt, server: OwnedProcess, url: str, started: float) -> bool:
    limit = attempt.spec["limits"]["ready_s"]
    while time.monotonic() < started + limit:
        status = server.poll()
        if status is not None:
            attempt.fail("[row] the server was ended by SIGKILL" if status == 137 else "")
            return False
        if client.get(f"{url}/health", timeout_s=5)[0] == 200:
            attempt.launch["ready_s"] = _since(started)
            return True
        time.sleep(POLL_S)
    mount = attempt.spec["model"].get("mount")
    where = "; the weights lie on a FUSE mount" if mount == "fuse" else ""
    attempt.fail(f"[row] not ready after {limit} s{where}", outcome="abandoned")
    return False


def _generates(attempt: Attempt, server: OwnedProcess, url: str, started: float) -> bool:
    """One completion with the evaluation's own sampling, which continuous batching keeps for all later requests."""
    attempt.phase = "first_request"
    limit = attempt.spec["limits"]["ready_s"]
    status, text = _ask(attempt, url, timeout_s=limit)
    if status == 200:
        attempt.launch["first_token_ok_s"] = _since(started)
        return True
    hung = status == 0 and server.poll() is None and "timed out" in text
    said = f"no answer to the first request after {limit} s" if hung else f"the first request got {status}: {text}"
    attempt.fail(f"[row] {said}", outcome="abandoned" if hung else "failed")
    return False


def _ask(attempt: Attempt, url: str, *, timeout_s: float) -> tuple[int, str]:
    sampling = {name: attempt.spec["eval"][name] for name in ("temperature", "max_tokens")}
    return client.chat(url, attempt.surroundings.model, **sampling, timeout_s=timeout_s)


def _evaluated(attempt: Attempt, server: OwnedProcess, url: str) -> bool:
    attempt.phase = "eval"
    attempt.eval = evaluate(
        attempt.spec["eval"],
        url=url,
        model=attempt.surroundings.model,
        problems=attempt.surroundings.problems,
        environment=attempt.surroundings.inspect,
        folder=attempt.folder,
        timeout_s=attempt.spec["limits"]["eval_s"],
    )
    return _tool_ended(attempt, server, url, tool="Inspect", log="inspect.log", status=attempt.eval["status"])


def _loaded(attempt: Attempt, server: OwnedProcess, url: str) -> bool:
    attempt.phase = "load"
    settings = attempt.spec["load"]
    if not settings["concurrency"]:
        return True
    words = aiperf_command(
        settings,
        url=url,
        model=attempt.surroundings.model,
        tokenizer=attempt.surroundings.tokenizer,
        temperature=attempt.spec["eval"]["temperature"],
    )
    status, attempt.load = load_test(
        settings,
        words=words,
        environment=attempt.surroundings.aiperf,
        folder=attempt.folder,
        timeout_s=attempt.spec["limits"]["load_s"],
    )
    return _tool_ended(attempt, server, url, tool="aiperf", log="aiperf.log", status=status)


def _tool_ended(attempt: Attempt, server: OwnedProcess, url: str, *, tool: str, log: str, status: str) -> bool:
    """Whether a tool ended with a result; a server that died under it fails the row, a broken tool the workflow."""
    if status == "success":
        return True
    if status == "timeout":
        attempt.fail(f"[row] {tool} had not ended after its limit", outcome="abandoned")
        return False
    alone = status == "broken" and not attempt.load and server.poll() is None
    if alone and _ask(attempt, url, timeout_s=attempt.spec["limits"]["ready_s"])[0] == 200:
        problem, remedy = (
            f"{tool} gave no result although the server answers",
            "read that log; the row was not recorded",
        )
        raise UserError(problem, file=attempt.folder / log, remedy=remedy)
    error = (attempt.eval or {}).get("error")
    attempt.fail(f"[row] {tool} ended with {status}" + (f": {error}" if error else ""))
    return False


def _observe(attempt: Attempt, server: OwnedProcess) -> None:
    """Ask a transformers server what it loaded, and read from its log what it did with the requests."""
    attempt.effective = {"attn_implementation": None, "cb_used": None, "device_map_devices": None, "dtype": None}
    if attempt.spec["engine"] == "transformers" and server.poll() is None and attempt.launch["ready_s"] is not None:
        server.send("SIGUSR1")
        end = time.monotonic() + OBSERVE_S
        while time.monotonic() < end and not attempt.observed.exists() and server.poll() is None:
            time.sleep(0.1)
    if attempt.observed.exists():
        attempt.effective |= read_json(attempt.observed)
    used = set(CB_USED.findall(_text(attempt.log)))
    if used:
        attempt.effective["cb_used"] = used == {"True"}


def _record(attempt: Attempt) -> dict[str, Any]:
    log = _text(attempt.log)
    failure = None
    if attempt.outcome != "ok":
        text = "\n".join(filter(None, (log, attempt.said)))
        failure = classify(text, phase=attempt.phase, table=attempt.surroundings.failures)
        failure["said"] = attempt.said or None
    elif reason := not_as_asked(attempt.flags, attempt.effective):
        attempt.outcome = "degraded"
        failure = classify(log, phase="first_request", table={FALLBACK: attempt.surroundings.failures[FALLBACK]})
        failure |= {"exception": None, "said": reason}
    return {
        "outcome": attempt.outcome,
        "config_flags": dict(attempt.flags),
        "argv": attempt.argv,
        "launch": attempt.launch,
        "effective": attempt.effective,
        "eval": attempt.eval,
        "load": attempt.load,
        "failure": failure,
    }


def not_as_asked(flags: Mapping[str, Any], effective: Mapping[str, Any]) -> str | None:
    """What a server does otherwise than its flags say, although it serves; None when it does as asked."""
    if flags.get("continuous_batching") and effective.get("cb_used") is False:
        return "continuous batching was asked for, requests were answered one after another"
    asked, found = flags.get("attn_implementation"), effective.get("attn_implementation")
    if asked and found and str(found).rpartition("|")[2] != asked:
        return f"attention {asked} was asked for, {found} is used"
    return None


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _since(started: float) -> float:
    return round(time.monotonic() - started, 2)
