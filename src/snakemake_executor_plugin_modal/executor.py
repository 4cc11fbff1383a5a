"""The Snakemake side: which jobs go away, what is said before, how results and Ctrl-C come back."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import subprocess
import tempfile
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

from snakemake_executor_plugin_modal import jobs, plan
from snakemake_executor_plugin_modal.driver import Driver, Outcome
from snakemake_executor_plugin_modal.errors import check_sdk
from snakemake_executor_plugin_modal.image import requirements_of

CANCEL_S = 5.0


class Executor(RemoteExecutor):  # type: ignore[misc]  # the interface has no types
    """Sends jobs to Modal."""

    next_seconds_between_status_checks = 0.5  # a look at finished futures costs nothing

    def __post_init__(self) -> None:
        """Check what a run needs, and start the loop that talks to Modal."""
        check_sdk()
        self.settings = self.executor_settings
        self.gpus = plan.read_gpus(Path(self.settings.gpus))
        if not Path(self.settings.requirements).is_file():
            raise WorkflowError(
                f"{self.settings.requirements}: no such file; name the image's pins in modal-requirements"
            )
        self.futures: dict[str, concurrent.futures.Future[Any]] = {}
        self.known: dict[tuple[str, int, int], str] = {}
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="modal", daemon=True).start()
        self.driver = Driver(self.settings, self.gpus, dict(self.envvars()), self.logger.info)
        self.sources = Path(tempfile.mkdtemp(prefix="modal-"), "sources.tar.xz")
        self.workflow.write_source_archive(self.sources)
        self.sources_sha256 = jobs.archive_sha256(self.sources)
        self._warn_of_untracked_files()

    def run_jobs(self, ready: list[Any]) -> None:
        """Say what these jobs may take, then send them."""
        placements = []
        for job in ready:
            try:
                placements.append(self._place(job))
            except plan.NoPlace:
                continue  # run_job says why
        if placements:
            self.logger.info(plan.estimate(placements))
        super().run_jobs(ready)

    def run_job(self, job: Any) -> None:
        """Register the job under the id that a later run would give it too, then hand it over."""
        try:
            remote = self._remote(job)
        except plan.NoPlace as reason:
            self.report_job_submission(SubmittedJobInfo(job))
            failed: concurrent.futures.Future[Any] = concurrent.futures.Future()
            failed.set_result(Outcome(str(reason)))
            self.futures[str(id(job))] = failed
            return
        self.report_job_submission(SubmittedJobInfo(job, external_jobid=f"{self.settings.app}/{remote.key}"))
        self.futures[str(id(job))] = asyncio.run_coroutine_threadsafe(self.driver.run(remote), self.loop)

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncGenerator[SubmittedJobInfo, None]:
        """Report what has ended; nothing may be raised from here."""
        for info in active_jobs:
            future = self.futures[str(id(info.job))]
            if not future.done():
                yield info
                continue
            try:
                outcome = future.result()
                problem, log = outcome.problem, outcome.log
            except (Exception, asyncio.CancelledError, concurrent.futures.CancelledError) as error:
                problem, log = f"{type(error).__name__}: {error}", ""
            if problem is None:
                self.report_job_success(info)
            else:
                shown = f"\nIts last lines:\n{log}\n" if log else "\n"
                if info.job.is_group():  # Snakemake shows no message of a group
                    self.logger.error(f"{problem}{shown}")
                self.report_job_error(info, msg=f"{problem}{shown}", aux_logs=[])

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """Stop every sandbox: Snakemake's own list is empty while it checks, so ours counts."""
        futures = [future for future in self.futures.values() if not future.done()]

        async def cancel() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            mine = [task for task in tasks if getattr(task.get_coro(), "__qualname__", "") == "Driver.run"]
            for task in mine:
                task.cancel()
            await asyncio.wait(mine, timeout=CANCEL_S) if mine else None

        if futures:
            self.logger.info(f"Stopping {len(futures)} Modal sandbox(es)")
            asyncio.run_coroutine_threadsafe(cancel(), self.loop).result(timeout=2 * CANCEL_S)

    def get_python_executable(self) -> str:
        """The image's."""
        return "python"

    def _place(self, job: Any) -> plan.Placement:
        """Where a job runs; a group's parts share one place.

        Raises:
            NoPlace: for a job without one, or one that could cost too much.
        """
        resources = dict(job.resources)
        rule = "+".join(dict.fromkeys(member.rule.name for member in jobs.members(job)))
        placement = plan.place(rule, resources, self.gpus, max_timeout_s=self.settings.max_timeout)
        cost = placement.max_usd
        if cost is not None and cost > self.settings.max_cost:
            raise plan.NoPlace(
                f"rule {rule} could cost {cost:.2f} USD ({placement.timeout_s / 3600:.1f} h on {placement.where}), more"
                f" than modal-max-cost allows ({self.settings.max_cost:.2f}): lower its runtime or raise the cap"
            )
        return placement

    def _remote(self, job: Any) -> jobs.RemoteJob:
        placement = self._place(job)
        inputs = jobs.hash_inputs(job, self.known)
        overlays = jobs.overlays_of(inputs)
        try:
            requirements = requirements_of(Path(self.settings.requirements), overlays)
        except ValueError as error:
            raise plan.NoPlace(str(error)) from None
        described: dict[str, Any] = {
            "name": f"{placement.rule} (job {job.jobid})",
            "command": self.format_job_exec(job),
            "inputs": inputs,
            "outputs": jobs.outputs_of(job),
            "logs": jobs.logs_of(job),
            "overlays": overlays,
            "placement": placement,
            "sources": self.sources,
            "sources_sha256": self.sources_sha256,
            "requirements": requirements,
            "beside": tuple(filter(None, [self.settings.beside])),
            "keep": tuple(filter(None, [self.settings.keep])),
            "attempt": job.attempt,
        }
        return jobs.RemoteJob(**described, key=jobs.RemoteJob(**described).computed_key())

    def _warn_of_untracked_files(self) -> None:
        """The archive holds what git tracks: say what a job would miss."""
        done = subprocess.run(
            ["git", "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True, check=False
        )
        new = [name for name in done.stdout.splitlines() if not name.startswith((".snakemake", "modal" + os.sep))]
        if done.returncode == 0 and new:
            self.logger.warning(
                f"Not sent, for git does not track them: {', '.join(new[:5])}{' ...' if new[5:] else ''}"
            )
