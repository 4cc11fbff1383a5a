"""A job's folder on the volume: send it, look for its result, bring its products home, delete it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from io import BytesIO
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_modal.jobs import RemoteJob

RUNNER = Path(__file__).with_name("runner.py")


class Damaged(Exception):
    """A product that did not come home whole."""


class Channel:
    """One Modal Volume (v2).

    Args:
        volume: the SDK's handle.
    """

    def __init__(self, volume: Any) -> None:
        self.volume = volume

    @staticmethod
    def folder(key: str) -> str:
        """Where a job lies on the volume."""
        return f"jobs/{key}"

    async def send(self, job: RemoteJob) -> None:
        """Upload sources, runner, inputs and, last, the spec; blocks that the volume knows are not sent again."""
        folder = self.folder(job.key)
        async with self.volume.batch_upload(force=True) as batch:
            batch.put_file(job.sources, f"{folder}/sources.tar.xz")
            batch.put_file(RUNNER, f"{folder}/runner.py")
            for name in job.inputs:
                batch.put_file(name, f"{folder}/inputs/{name}")
        async with self.volume.batch_upload(force=True) as batch:
            batch.put_file(BytesIO(job.spec().encode()), f"{folder}/spec.json")

    async def result(self, key: str) -> dict[str, Any] | None:
        """result.json of a job; None where there is none."""
        text = await self.read(f"{self.folder(key)}/result.json")
        return None if text is None else dict(json.loads(text))

    async def log(self, key: str) -> str:
        """What the job printed so far."""
        return (await self.read(f"{self.folder(key)}/log.txt") or b"").decode(errors="replace")

    async def read(self, path: str) -> bytes | None:
        """A file's content; None where there is none."""
        try:
            return b"".join([chunk async for chunk in self.volume.read_file.aio(path)])
        except FileNotFoundError:
            return None

    async def collect(self, key: str, result: dict[str, Any]) -> None:
        """Download the products to temporary names, verify all of them, then put each into its place.

        Raises:
            Damaged: for a product that is missing or another; nothing is in place then.
        """
        partials = []
        try:
            for name, sha256 in result["products"].items():
                target = Path(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                partial = target.with_name(f".{target.name}.{key[:8]}.partial")
                partials.append((partial, target))
                digest = hashlib.sha256()
                try:
                    with partial.open("wb") as handle:
                        async for chunk in self.volume.read_file.aio(f"{self.folder(key)}/outputs/{name}"):
                            digest.update(chunk)
                            handle.write(chunk)
                except FileNotFoundError:
                    raise Damaged(f"{name} is missing on the volume") from None
                if digest.hexdigest() != sha256:
                    raise Damaged(f"{name} came back damaged")
            for folder in result["folders"]:
                Path(folder).mkdir(parents=True, exist_ok=True)
            for partial, target in partials:
                partial.replace(target)
        finally:
            for partial, _ in partials:
                partial.unlink(missing_ok=True)

    async def delete(self, key: str) -> None:
        """Remove a job's folder."""
        with contextlib.suppress(FileNotFoundError):
            await self.volume.remove_file.aio(self.folder(key), recursive=True)
