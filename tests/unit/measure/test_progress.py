"""Progress: a bar on a terminal, plain lines otherwise, and plain lines in the log in any case."""

import io

import pytest

from servingbench.measure.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drive(stream, log):
    with Progress("tiny math", log=log, stream=stream) as progress:
        progress.begin(arms=8, done=2)
        progress.note("hello")
        for _ in range(2):
            progress.arm(tokens=50, wall_ns=1_000_000_000)
        progress.prompt("p1", number=2, prompts=4)
        return progress.tokens_per_second


def test_plain_lines_go_to_a_file_and_to_the_log(tmp_path):
    stream = io.StringIO()
    assert drive(stream, tmp_path / "logs" / "a.log") == 50
    for text in (stream.getvalue(), (tmp_path / "logs" / "a.log").read_text()):
        assert "tiny math: hello\n" in text
        assert "prompt 2/4 (p1): 4/8 arms, 50.0 tok/s, " in text
        assert " left\n" in text
    assert "\r" not in stream.getvalue()


def test_a_terminal_gets_a_bar_that_begins_where_the_run_continues(tmp_path):
    stream = Terminal()
    drive(stream, tmp_path / "a.log")
    assert "4/8" in stream.getvalue()
    assert "50.0 tok/s" in stream.getvalue()
    assert "prompt 2/4" not in stream.getvalue()
    assert "\r" not in (tmp_path / "a.log").read_text()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_what_is_not_timed_says_a_line_at_every_tenth_and_moves_the_bar(tmp_path, stream):
    shown = stream()
    with Progress("table", log=tmp_path / "a.log", stream=shown) as progress:
        progress.begin(arms=300, unit="token")
        for _ in range(60):
            progress.advance(5)
    lines = (tmp_path / "a.log").read_text().splitlines()
    assert len(lines) == 10
    assert "table: 30/300 tokens, " in lines[0]
    assert "table: 300/300 tokens, 0:00 left" in lines[-1]
    assert ("\r" in shown.getvalue()) == shown.isatty()
    assert "300/300" in shown.getvalue()


def test_time_left_counts_this_processs_arms_only(monkeypatch):
    times = iter([0.0, 0.0, 10.0])
    monkeypatch.setattr("servingbench.measure.progress.time.monotonic", lambda: next(times))
    progress = Progress("x", stream=io.StringIO())
    progress.begin(arms=100, done=90)
    progress.arm(tokens=1, wall_ns=1)
    progress.arm(tokens=1, wall_ns=1)
    assert progress.seconds_left == pytest.approx(8 * 5)


def test_the_log_keeps_its_history_and_says_why_a_run_stopped(tmp_path):
    for number in range(2):
        with pytest.raises(KeyError):
            with Progress("x", log=tmp_path / "a.log", stream=io.StringIO()):
                raise KeyError(number)
    assert (tmp_path / "a.log").read_text().count("stopped: KeyError") == 2
