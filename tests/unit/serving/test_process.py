"""A process that belongs to a row does not outlive it, however the row ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from servingbench.serving.process import OwnedProcess

# A command with a child of its own; both write their number, and the child ignores SIGTERM.
COMMAND = (
    "import os, signal, sys, time\n"
    "child = os.fork()\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN if child == 0 else signal.SIG_DFL)\n"
    "open(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\n"
    "time.sleep(300)\n"
)
OWNER = (
    "import os, sys, time\nfrom pathlib import Path\nfrom servingbench.serving import process\nprocess.GRACE_S = 1\n"
    "process.OwnedProcess([sys.executable, '-c', sys.argv[1], sys.argv[2]], environment=os.environ,"
    " log=Path(sys.argv[2] + '.log'))\ntime.sleep(300)\n"
)


def eventually(condition: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_owner_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "pids"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, COMMAND, str(out)])
    assert eventually(lambda: len(pids(out)) == 2)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert eventually(lambda: not any(map(alive, pids(out))))


def test_leaving_the_context_ends_the_group(tmp_path: Path) -> None:
    out = tmp_path / "pids"
    command = [sys.executable, "-c", COMMAND.replace("SIG_IGN if child == 0 else signal.", ""), str(out)]
    with OwnedProcess(command, environment=os.environ, log=tmp_path / "log") as process:
        assert eventually(lambda: len(pids(out)) == 2)
        assert process.poll() is None
    assert process.poll() == 128 + signal.SIGTERM
    assert not any(map(alive, pids(out)))
