"""What a dry run would cost on Modal: `logger: modal` in profiles/modal/profile.yaml. Needs no token and no network.

A dry run never starts the executor, so its estimate is made here, from the jobs that Snakemake announces. In a run the
executor says the same for the jobs that it is about to send.
"""

from __future__ import annotations

import sys
from logging import LogRecord
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_executor_plugin_modal import plan
from snakemake_executor_plugin_modal.settings import ExecutorSettings


class LogHandler(LogHandlerBase):  # type: ignore[misc]  # the interface has no types
    """Collects the jobs that a dry run would send, and prints their estimate at its end."""

    writes_to_stream = False
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.placements: list[plan.Placement] = []
        self.refused: list[str] = []
        self.gpus = plan.read_gpus(Path(ExecutorSettings.gpus))

    def emit(self, record: LogRecord) -> None:
        """Take note of a job that requests a GPU: a dry run does not say which of the others are local."""
        job: Any = record
        if getattr(record, "event", None) != LogEvent.JOB_INFO or not self.common_settings.dryrun:
            return
        resources = dict(zip(job.resources._names, job.resources, strict=True))
        if not resources.get("gpu"):
            return
        try:
            found = plan.place(job.rule_name, resources, self.gpus, max_timeout_s=ExecutorSettings.max_timeout)
            self.placements.append(found)
        except plan.NoPlace as reason:
            self.refused.append(str(reason))

    def close(self) -> None:
        """Print the estimate, once."""
        if self.placements:
            print(plan.estimate(self.placements), file=sys.stderr)
        for reason in dict.fromkeys(self.refused):
            print(f"Modal would refuse: {reason}", file=sys.stderr)
        self.placements, self.refused = [], []
        super().close()
