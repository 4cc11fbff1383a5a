"""Offline replay: what a drafter saves on outputs that are already known, and the benchmark that is built on it."""

import servingbench.measure  # sets how OpenMP's threads wait, which must be said before torch is imported

__all__ = ["servingbench"]
