"""Peak memory of one arm."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import torch

_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")
_PROBE_BYTES = 32 << 20


class PeakMemory:
    """Peak memory between :meth:`reset` and :meth:`read`, in bytes.

    On CUDA the caching allocator's own peak (``max_memory_allocated``). On Linux the process's peak resident set, the
    model's weights and everything else in the process included; the kernel resets it when 5 is written to clear_refs
    (proc(5)). Elsewhere None, with the reason in :attr:`reason`.
    """

    def __init__(self, device: str) -> None:
        self._cuda = device.startswith("cuda")
        self._device = device
        self.reason = None if self._cuda else _why_not_resettable()

    def reset(self) -> None:
        """Forget the peak so far."""
        if self._cuda:
            torch.cuda.reset_peak_memory_stats(self._device)
        elif self.reason is None:
            _CLEAR_REFS.write_text("5", encoding="ascii")

    def read(self) -> int | None:
        """The peak since the reset, or None when this system cannot say."""
        if self._cuda:
            return int(torch.cuda.max_memory_allocated(self._device))
        return _peak_resident_bytes() if self.reason is None else None


def _peak_resident_bytes() -> int:
    for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{_STATUS} has no VmHWM")


def _why_not_resettable() -> str | None:
    """None when the kernel really resets the peak; sandboxes accept the write and ignore it, so it is tried once."""
    if sys.platform != "linux":
        return f"peak resident memory cannot be reset on {sys.platform}"
    try:
        with mmap.mmap(-1, _PROBE_BYTES) as probe:
            for offset in range(0, _PROBE_BYTES, mmap.PAGESIZE):
                probe[offset] = 1
            high = _peak_resident_bytes()
        _CLEAR_REFS.write_text("5", encoding="ascii")
        fell = high - _peak_resident_bytes()
    except OSError as error:
        return f"peak resident memory cannot be reset here: {error.strerror or error}"
    return None if fell >= _PROBE_BYTES // 2 else "this kernel does not reset the peak resident memory"
