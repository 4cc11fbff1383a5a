"""Where a job would run, for how long at most, and at most for how much: from the job and the table of GPUs alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class NoPlace(Exception):
    """A job that Modal must not run, and why."""


@dataclass(frozen=True)
class Placement:
    """Where one job runs.

    Attributes:
        rule: its rule (of a group, all of them).
        gpu: Modal's name and count, such as "H100!:2"; None for a CPU.
        timeout_s: the sandbox's longest life.
        usd_per_hour: its price; None where the table has none.
    """

    rule: str
    gpu: str | None
    timeout_s: int
    usd_per_hour: float | None

    @property
    def where(self) -> str:
        """For people."""
        return self.gpu or "CPU"

    @property
    def max_usd(self) -> float | None:
        """What it costs if it takes all of its time."""
        return None if self.usd_per_hour is None else self.usd_per_hour * self.timeout_s / 3600


def read_gpus(path: Path) -> dict[str, Any]:
    """The table of GPUs; empty where there is none."""
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.is_file() else {}


def place(rule: str, resources: Mapping[str, Any], gpus: Mapping[str, Any], *, max_timeout_s: int) -> Placement:
    """Place a job by its resources: `gpu_key` names a row of the table, `gpu` counts, `runtime` is in minutes.

    Raises:
        NoPlace: for a job that requests no GPU, or one that the table or Modal does not know.
    """
    key, count = resources.get("gpu_key"), resources.get("gpu")
    if not isinstance(key, str) or not count:
        raise NoPlace(
            f"rule {rule} requests no GPU and would run on Modal: give it resources gpu and gpu_key,"
            " or name it in localrules"
        )
    if key not in gpus:
        raise NoPlace(f"rule {rule}: no GPU {key!r} in the table; known: {', '.join(gpus) or 'none'}")
    row = gpus[key]
    runtime = resources.get("runtime")
    timeout_s = min(int(runtime) * 60 if isinstance(runtime, int) else max_timeout_s, max_timeout_s)
    price = row.get("usd_per_hour")
    if row.get("kind") == "cpu":
        return Placement(rule, None, timeout_s, price)
    if not row.get("modal"):
        raise NoPlace(f"rule {rule}: the GPU {key!r} has no name that Modal knows (`modal` in its row)")
    gpu = row["modal"] if int(count) == 1 else f"{row['modal']}:{count}"
    return Placement(rule, gpu, timeout_s, None if price is None else price * int(count))


def estimate(placements: Iterable[Placement]) -> str:
    """One line per rule and place, and the sum."""
    placements = list(placements)
    counts = Counter(placements)
    lines = ["On Modal, at most:"]
    for placement, count in counts.items():
        cost = "price unknown" if placement.max_usd is None else f"{count * placement.max_usd:8.2f} USD"
        hours = placement.timeout_s / 3600
        lines.append(f"  {count:4} x {placement.rule:<16} on {placement.where:<10} {hours:5.2f} h each  {cost}")
    known = [placement.max_usd for placement in placements if placement.max_usd is not None]
    partly = "" if len(known) == len(placements) else ", not counting what has no price"
    return "\n".join([*lines, f"  together {sum(known):.2f} USD{partly}"])
