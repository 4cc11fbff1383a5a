"""A process that belongs to the row which started it: its output in a file, its end certain."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from servingbench.serving import guard

WORKFLOW_PID = "SERVINGBENCH_WORKFLOW_PID"
GRACE_S = 8.0


class OwnedProcess:
    """Started at once, in its own group, under a guard; leaving the context ends the group.

    Args:
        command: program and arguments.
        environment: the whole environment of the command.
        log: file that its output and errors are appended to.
        cwd: where it runs.
    """

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], log: Path, cwd: Path | None = None):
        watch = [word for pid in ancestors() for word in ("--watch", str(pid))]
        with log.open("ab") as output:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", guard.__file__, *watch, "--grace", str(GRACE_S), "--", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=cwd,
            )

    def poll(self) -> int | None:
        """The exit status (128 + signal when a signal ended it), or None while it runs."""
        return self._guard.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the end; None when it still runs after ``timeout_s`` seconds."""
        try:
            return self._guard.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def send(self, name: str) -> None:
        """Send the signal ``name`` (such as SIGUSR1) to the command, if it still runs."""
        assert self._guard.stdin
        with suppress(BrokenPipeError):
            self._guard.stdin.write(f"{name}\n".encode())
            self._guard.stdin.flush()

    def stop(self) -> int:
        """End the group and return the exit status."""
        assert self._guard.stdin
        with suppress(BrokenPipeError):
            self._guard.stdin.close()
        return self._guard.wait()

    def __enter__(self) -> OwnedProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def ancestors() -> list[int]:
    """The processes from this one's parent up to the workflow that runs it, or the parent alone outside of one.

    The workflow itself must be watched: a killed snakemake leaves its shells behind.
    """
    wanted = int(os.environ.get(WORKFLOW_PID, 0))
    chain, pid = [], os.getppid()
    while pid > 1:
        chain.append(pid)
        if pid == wanted:
            return chain
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return chain[:1]
