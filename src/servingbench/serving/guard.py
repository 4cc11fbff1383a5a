"""Run a command in a process group that cannot outlive the process which asked for it. Standard library alone.

    python guard.py [--watch PID]... --grace SECONDS -- COMMAND...

The guard reads its standard input: a line with a signal's name is passed to the command (not to its group), and the
end of the file, which the kernel delivers however the owner ends (SIGKILL too), stops the group. So does the end of any
process given by --watch. Stopping is SIGTERM first, because a continuous-batching server survives SIGINT, and SIGKILL
for what is left after the grace period. Exit status: the command's, or 128 + the number of the signal that ended it.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

POLL_S = 0.2


def main() -> int:
    """Start the command, wait for its end or for the owner's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--watch", type=int, action="append", default=[])
    parser.add_argument("--grace", type=float, default=5.0)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    watched = [(pid, _identity(pid)) for pid in arguments.watch]
    os.setsid()  # a Ctrl-C at the terminal is for the owner, who then ends the command in order
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        child = subprocess.Popen(arguments.command, stdin=subprocess.DEVNULL, process_group=0)
    except OSError as error:
        print(f"cannot start {arguments.command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    while child.poll() is None:
        if not _owner_is_there(child) or any(_identity(pid) != then for pid, then in watched):
            break
    stop(child, arguments.grace)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _owner_is_there(child: subprocess.Popen[bytes]) -> bool:
    """Wait a moment for a line from the owner and pass on its signal; False at the end of the file."""
    if not select.select([0], [], [], POLL_S)[0]:
        return True
    text = os.read(0, 4096).decode()
    for name in text.split():
        child.send_signal(getattr(signal, name))
    return bool(text)


def stop(child: subprocess.Popen[bytes], grace: float) -> None:
    """End whatever of the group is alive: SIGTERM, then SIGKILL after ``grace`` seconds."""
    for number, wait in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        end = time.monotonic() + wait
        while time.monotonic() < end and _alive(child):
            time.sleep(0.05)
    child.wait()


def _alive(child: subprocess.Popen[bytes]) -> bool:
    """Whether the child or another member of its group still runs (the child is reaped here, so it counts no more)."""
    child.poll()
    try:
        os.killpg(child.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _identity(pid: int) -> str | None:
    """A process's start time, which tells it from a later one with the same number; None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "alive"


if __name__ == "__main__":
    sys.exit(main())
