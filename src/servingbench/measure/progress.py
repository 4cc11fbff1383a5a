"""Progress of a run: a bar on a terminal, plain lines elsewhere, and plain lines in the log in any case."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from tqdm import tqdm

from servingbench.measure.journal import now


class Progress:
    """Counts timed arms (prompts x methods x repeats) and says how fast and how long still.

    Args:
        label: what runs, in a few words.
        log: the log file; appended to, so that a continued run keeps its history. None for no log.
        stream: where the user looks; a bar is drawn only when it is a terminal.
    """

    def __init__(self, label: str, *, log: Path | None = None, stream: TextIO | None = None) -> None:
        self._label = label
        self._stream = stream or sys.stderr
        self._log: TextIO | None = None
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            self._log = log.open("a", encoding="utf-8")
        self._arms = self._done = self._before = 0
        self._unit = "arm"
        self._tokens = self._token_ns = 0
        self._start = time.monotonic()
        self._bar: tqdm[Any] | None = None

    def begin(self, *, arms: int, done: int = 0, unit: str = "arm") -> None:
        """Start counting: ``arms`` (or what ``unit`` calls them) in all, ``done`` of them by earlier processes."""
        self._arms, self._done, self._before, self._unit = arms, done, done, unit
        self._start = time.monotonic()
        if self._stream.isatty():
            self._bar = tqdm(
                total=arms, initial=done, desc=self._label, unit=unit, file=self._stream, dynamic_ncols=True
            )

    def note(self, text: str) -> None:
        """Say one line, on the stream and in the log."""
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        else:
            print(f"{self._label}: {text}", file=self._stream, flush=True)
        self._to_log(text)

    def arm(self, *, tokens: int, wall_ns: int) -> None:
        """Count one finished arm; a failed one has no tokens and no time."""
        self._done += 1
        self._tokens += tokens
        self._token_ns += wall_ns
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self.tokens_per_second:.1f} tok/s", refresh=False)
            self._bar.update(1)

    def advance(self, count: int) -> None:
        """Count ``count`` of what is not timed; one line at every tenth of the way (the bar says it by itself)."""
        tenth = 10 * self._done // self._arms
        self._done += count
        if self._bar is not None:
            self._bar.update(count)
        if 10 * self._done // self._arms > tenth:
            self._line(f"{self._done}/{self._arms} {self._unit}s, {_duration(self.seconds_left)} left")

    def prompt(self, prompt_id: str, *, number: int, prompts: int) -> None:
        """Say one line about a finished prompt (the bar says it by itself)."""
        line = (
            f"prompt {number}/{prompts} ({prompt_id}): {self._done}/{self._arms} arms, "
            f"{self.tokens_per_second:.1f} tok/s, {_duration(self.seconds_left)} left"
        )
        self._line(line)

    @property
    def tokens_per_second(self) -> float:
        """New tokens per second of timed work, over all arms of this process."""
        return self._tokens / (self._token_ns / 1e9) if self._token_ns else 0.0

    @property
    def seconds_left(self) -> float:
        """The remaining arms at the pace of this process, set-up and reference passes included."""
        mine = self._done - self._before
        return (time.monotonic() - self._start) / mine * (self._arms - self._done) if mine else float("inf")

    def _line(self, text: str) -> None:
        if self._bar is None:
            print(f"{self._label}: {text}", file=self._stream, flush=True)
        self._to_log(text)

    def _to_log(self, text: str) -> None:
        if self._log is not None:
            print(f"{now()} {self._label}: {text}", file=self._log, flush=True)

    def close(self) -> None:
        """End the bar and the log."""
        if self._bar is not None:
            self._bar.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._to_log(f"stopped: {type(error).__name__}: {error}")
        self.close()


def _duration(seconds: float) -> str:
    if seconds == float("inf"):
        return "unknown time"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
