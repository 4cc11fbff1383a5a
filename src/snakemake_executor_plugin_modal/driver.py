"""The life of a job on Modal, as one coroutine: collect a finished result, adopt a running sandbox, or make one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_modal.channel import Channel, Damaged
from snakemake_executor_plugin_modal.image import image
from snakemake_executor_plugin_modal.jobs import RemoteJob, tail
from snakemake_executor_plugin_modal.settings import ExecutorSettings

MOUNT = "/mnt/serving-bench"
CACHE = "/cache/huggingface"
RESULT_TRIES, RESULT_WAIT_S = 4, 0.5  # a volume shows what a sandbox wrote shortly after it ended
STOP_S = 4.0
CONNECT_S = 20.0


@dataclass(frozen=True)
class Outcome:
    """What became of a job: None and nothing more where it went well."""

    problem: str | None = None
    log: str = ""


class Driver:
    """All jobs of one Snakemake run.

    Args:
        settings: the executor's.
        gpus: the table of GPUs, to compare the device that ran with the one that was asked for.
        environment: declared environment variables, which go into the sandbox as a secret.
        say: tells the user.
    """

    def __init__(
        self, settings: ExecutorSettings, gpus: dict[str, Any], environment: dict[str, str], say: Callable[[str], None]
    ) -> None:
        self.settings, self.gpus, self.environment, self.say = settings, gpus, environment, say
        self._lock = asyncio.Lock()
        self._app: Any = None
        self._volumes: dict[str, Any] = {}

    async def run(self, job: RemoteJob) -> Outcome:
        """Have a job done; a lost sandbox is replaced, at most ``infrastructure_retries`` times."""
        import modal

        try:
            await asyncio.wait_for(self._connect(), CONNECT_S)
        except modal.exception.AuthError:
            return Outcome("Modal refused the token: run `modal token new`, or correct MODAL_TOKEN_ID and _SECRET")
        except (modal.exception.ConnectionError, OSError, TimeoutError) as error:
            return Outcome(f"Modal cannot be reached: {_line(error)}")
        channel = Channel(self._volumes[self.settings.volume])
        try:
            return await self._run(job, channel)
        except modal.exception.Error as error:
            return Outcome(f"Modal: {_line(error)}", await self._log(job, channel))

    async def _connect(self) -> None:
        import modal

        async with self._lock:
            if self._app is None:
                self._app = await modal.App.lookup.aio(self.settings.app, create_if_missing=True)
                for name in (self.settings.volume, self.settings.cache_volume):
                    volume = modal.Volume.from_name(name, create_if_missing=True, version=2)
                    await volume.hydrate.aio()
                    self._volumes[name] = volume

    async def _run(self, job: RemoteJob, channel: Channel) -> Outcome:
        lost = "the sandbox was lost"
        for attempt in range(self.settings.infrastructure_retries + 1):
            result = await channel.result(job.key)
            if result is None:
                sandbox = await self._adopt(job)
                if sandbox is None:
                    if attempt:
                        self.say(f"{job.name}: {lost}; a new sandbox continues it ({attempt} of {self._retries})")
                    try:
                        sandbox = await self._create(job, channel)
                    except _Refused as refused:
                        return Outcome(str(refused))
                    if sandbox is None:
                        lost = "no sandbox could be started"
                        continue
                ended = await self._wait(sandbox)
                result = await self._result(job, channel)
                if result is None:
                    if ended is not None:
                        return Outcome(ended, await self._log(job, channel))
                    lost = "its sandbox was lost before it finished"
                    continue
            return await self._finish(job, channel, result)
        return Outcome(f"{lost}, {self._retries + 1} times", await self._log(job, channel))

    @property
    def _retries(self) -> int:
        return self.settings.infrastructure_retries

    async def _adopt(self, job: RemoteJob) -> Any:
        import modal

        try:
            sandbox = await modal.Sandbox.from_name.aio(self.settings.app, job.key)
        except modal.exception.NotFoundError:
            return None
        self.say(f"{job.name}: its sandbox {sandbox.object_id} is still running and is taken over")
        return sandbox

    async def _create(self, job: RemoteJob, channel: Channel) -> Any:
        """A new sandbox; None where Modal could not start it."""
        import modal

        try:
            made = image(Path(self.settings.requirements), job.overlays)
        except (OSError, ValueError) as error:
            raise _Refused(f"no image for it: {_line(error)}") from None
        await channel.send(job)
        names = [name.strip() for name in self.settings.secrets.split(",") if name.strip()]
        secrets = [modal.Secret.from_name(name) for name in names]
        if self.environment:
            secrets.append(modal.Secret.from_dict(dict(self.environment)))
        folder = f"{MOUNT}/{channel.folder(job.key)}"
        try:
            sandbox = await modal.Sandbox.create.aio(
                "python",
                f"{folder}/runner.py",
                folder,
                app=self._app,
                name=job.key,
                tags={"rule": job.placement.rule[:60], "job": job.key},
                image=made,
                gpu=job.placement.gpu,
                timeout=job.placement.timeout_s,
                secrets=secrets,
                volumes={MOUNT: self._volumes[self.settings.volume], CACHE: self._volumes[self.settings.cache_volume]},
            )
        except modal.exception.AlreadyExistsError:
            return await self._adopt(job)
        except (modal.exception.Error, OSError) as error:
            final = (modal.exception.NotFoundError, modal.exception.InvalidError, modal.exception.AuthError)
            # A conflict is an invalid request to the SDK; here it says that the sandbox ended before it began.
            if isinstance(error, final) and not isinstance(error, modal.exception.ConflictError):
                raise _Refused(f"Modal refused the sandbox: {_line(error)}") from None
            self.say(f"{job.name}: Modal could not start a sandbox: {_line(error)}")
            return None
        self.say(f"{job.name}: sandbox {sandbox.object_id} on {job.placement.where}")
        return sandbox

    async def _wait(self, sandbox: Any) -> str | None:
        """Wait for the end; returns what is wrong where another sandbox would not help. Cancelled, it stops it."""
        import modal

        try:
            await sandbox.wait.aio(raise_on_termination=False)
        except modal.exception.SandboxTimeoutError:
            return "it ran into its time limit (resources: runtime, in minutes; modal-max-timeout)"
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.wait_for(sandbox.terminate.aio(), STOP_S))
            raise
        return None

    async def _result(self, job: RemoteJob, channel: Channel) -> dict[str, Any] | None:
        for _ in range(RESULT_TRIES):
            result = await channel.result(job.key)
            if result is not None:
                return result
            await asyncio.sleep(RESULT_WAIT_S)
        return None

    async def _finish(self, job: RemoteJob, channel: Channel, result: dict[str, Any]) -> Outcome:
        problem = result["problem"] or (f"it ended with exit code {result['code']}" if result["code"] else None)
        problem = problem or self._another_gpu(job, result["gpu"])
        log = await self._log(job, channel) if problem else ""
        try:
            if problem is None:
                await channel.collect(job.key, result)
            else:  # its log files still come home
                logs = {name: sha for name, sha in result["products"].items() if name in job.logs}
                await channel.collect(job.key, {"products": logs, "folders": []})
        except Damaged as damaged:
            problem = problem or f"{damaged}; it runs anew when Snakemake is called again"
        await channel.delete(job.key)
        return Outcome(problem, log)

    def _another_gpu(self, job: RemoteJob, found: str | None) -> str | None:
        names = {row.get("modal"): row.get("device_name") for row in self.gpus.values()}
        wanted = names.get((job.placement.gpu or "").split(":")[0])
        if found and wanted and not re.search(wanted, found):
            return f"it ran on {found}, not on the {job.placement.gpu} that it asked for"
        return None

    async def _log(self, job: RemoteJob, channel: Channel) -> str:
        return tail(await channel.log(job.key), secrets=list(self.environment.values()))


class _Refused(Exception):
    """A job that no sandbox can help."""


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
