"""Peak memory: a reset forgets earlier peaks, a reading sees what was used since."""

import numpy as np
import pytest

from servingbench.measure import memory
from servingbench.measure.memory import PeakMemory

BIG = 64 << 20


def test_the_peak_of_one_arm_is_its_own():
    peak = PeakMemory("cpu")
    if peak.reason:
        pytest.skip(peak.reason)
    peak.reset()
    before = peak.read()
    block = np.ones(BIG, dtype=np.uint8)
    block.sum()
    del block
    assert peak.read() - before >= BIG * 0.9
    peak.reset()
    assert peak.read() - before < BIG * 0.5


def test_a_system_that_cannot_reset_says_so_and_gives_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_CLEAR_REFS", tmp_path / "ignored")  # accepts the write and does nothing
    peak = PeakMemory("cpu")
    peak.reset()
    assert peak.read() is None
    assert "does not reset" in peak.reason
    monkeypatch.setattr(memory, "_CLEAR_REFS", tmp_path / "no" / "such")
    assert "cannot be reset here" in PeakMemory("cpu").reason
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    assert "darwin" in PeakMemory("cpu").reason
