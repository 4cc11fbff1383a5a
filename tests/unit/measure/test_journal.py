"""The journal: whole prompts survive, torn lines go, other runs' journals are kept aside, one process at a time."""

import json
import subprocess
import sys

import pytest

from servingbench.errors import UserError
from servingbench.measure.journal import Journal, folder_lock


@pytest.fixture
def notices():
    return []


def open_journal(folder, notices, identity="a"):
    return Journal(folder, identity=identity, notice=notices.append)


def entry(index):
    return {"index": index, "prompt_id": f"p{index}", "records": [{"text": "é\u2028\x85 line"}]}


def test_a_second_process_continues_after_the_last_whole_prompt(tmp_path, notices):
    first = open_journal(tmp_path, notices)
    first.append(entry(0))
    first.append(entry(1))
    second = open_journal(tmp_path, notices)
    assert second.entries == [entry(0), entry(1)]
    assert (first.resumed, second.resumed, second.started) == (0, 1, first.started)
    second.append(entry(2))
    third = open_journal(tmp_path, notices)
    assert [line["index"] for line in third.entries] == [0, 1, 2]
    assert third.resumed == 2
    assert any("continuing after 3" in notice for notice in notices)


def test_every_possible_tear_of_the_last_line_loses_that_line_alone(tmp_path, notices):
    journal = open_journal(tmp_path, notices)
    journal.append(entry(0))
    whole = journal.path.stat().st_size
    journal.append(entry(1))
    content = journal.path.read_bytes()
    for size in range(whole, len(content)):
        journal.path.write_bytes(content[:size])
        again = open_journal(tmp_path, notices)
        assert again.entries == [entry(0)], size
        again.append(entry(1))
        assert open_journal(tmp_path, notices).entries == [entry(0), entry(1)]


def test_a_torn_header_is_an_empty_journal(tmp_path, notices):
    header_size = len(open_journal(tmp_path, notices).path.read_bytes())
    path = tmp_path / "journal.jsonl"
    content = path.read_bytes()
    for size in (0, 1, header_size - 1):
        path.write_bytes(content[:size])
        assert open_journal(tmp_path, notices).entries == []
    assert not list(tmp_path.glob("journal.stale-*"))


def test_another_runs_journal_is_set_aside_whole(tmp_path, notices):
    for identity in ("a", "b", "c"):
        journal = open_journal(tmp_path, notices, identity)
        assert (journal.entries, journal.resumed) == ([], 0)
        journal.append(entry(0))
    stale = sorted(tmp_path.glob("journal.stale-*"))
    kept = [json.loads(path.read_text().split("\n")[0])["identity"] for path in stale]
    assert kept == ["a", "b"]
    assert len(notices) == 2
    assert "journal.stale-2.jsonl" in notices[1]


@pytest.mark.parametrize("damage", [b"nonsense\n", b'{"index": 5, "records": []}\n'])
def test_a_journal_damaged_in_its_middle_is_set_aside(tmp_path, notices, damage):
    journal = open_journal(tmp_path, notices)
    journal.append(entry(0))
    with journal.path.open("ab") as handle:
        handle.write(damage)
    journal.append(entry(1))
    assert open_journal(tmp_path, notices).entries == []
    assert len(list(tmp_path.glob("journal.stale-*"))) == 1


def test_removed_journals_leave_nothing(tmp_path, notices):
    with folder_lock(tmp_path / "run"):
        open_journal(tmp_path / "run", notices).remove()
    assert list((tmp_path / "run").iterdir()) == []


def test_the_lock_keeps_a_second_process_out_and_dies_with_its_holder(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from servingbench.measure.journal import folder_lock\n"
        "with folder_lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UserError, match=f"another run.*{holder.pid}"):
            with folder_lock(tmp_path):
                pass
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    with folder_lock(tmp_path):
        assert (tmp_path / "journal.lock").exists()
    assert not (tmp_path / "journal.lock").exists()
