"""Runs one job inside its sandbox; uploaded with the job, so the standard library is all it may use.

The job's folder on the volume holds spec.json, sources.tar.xz and inputs/. The job runs in a folder of its own; log.txt
grows while it runs; outputs/ and, last of all, result.json appear when it is done. What the job writes for its own
continuation (spec `keep`) is copied to kept/ as it goes, and restored by the next sandbox if this one is lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

KEEP_EVERY_S = 5.0
WORKFLOW = Path("/opt/workflow")  # the image's Python finds the workflow's own package in its src/


def main(folder: Path) -> int:
    """Run the job in ``folder``; 0 where result.json was written, whatever became of the job."""
    if (folder / "result.json").exists():
        return 0
    spec = json.loads((folder / "spec.json").read_text())
    with tempfile.TemporaryDirectory(prefix="job-") as temporary:
        work = Path(temporary) / "work"
        work.mkdir()
        problem = _prepare(folder, spec, work)
        code = 1 if problem else _run(folder, spec, work)
        if code < 0:
            return 128 - code  # told to stop: no result, the next sandbox goes on
        _finish(folder, spec, work, code=code, problem=problem)
    return 0


def _prepare(folder: Path, spec: dict[str, Any], work: Path) -> str | None:
    """Unpack and verify; returns what is wrong."""
    with tarfile.open(folder / "sources.tar.xz") as archive:
        archive.extractall(work, filter="data")
    for name, sha256 in spec["inputs"].items():
        source, target = folder / "inputs" / name, work / name
        if not source.is_file() or _sha256(source) != sha256:
            return f"input {name} did not arrive whole"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    _copy_tree(folder / "kept", work)
    overlays = Path(os.environ.get("SERVING_BENCH_RESOURCES", "/opt/resources"))
    for name in spec["overlays"]:
        link = work / "resources" / name / "site-packages"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(overlays / name / "site-packages")
    if os.access(WORKFLOW.parent, os.W_OK) and Path("/opt/resources").exists():
        WORKFLOW.unlink(missing_ok=True)
        WORKFLOW.symlink_to(work)
    return None


def _run(folder: Path, spec: dict[str, Any], work: Path) -> int:
    """The job's exit code; negative where this process was told to stop."""
    stop = threading.Event()
    told: list[int] = []
    with (folder / "log.txt").open("ab") as log:
        job = subprocess.Popen(
            ["bash", "-c", spec["command"]], cwd=work, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )

        def on_signal(number: int, frame: FrameType | None) -> None:
            told.append(number)
            os.killpg(job.pid, signal.SIGTERM)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, on_signal)

        def keep() -> None:
            while not stop.wait(KEEP_EVERY_S):
                _keep(folder, spec, work)

        keeper = threading.Thread(target=keep, daemon=True)
        keeper.start()
        try:
            code = job.wait()
        finally:
            stop.set()
            keeper.join()
            _keep(folder, spec, work)
    return -told[0] if told else code if code >= 0 else 128 - code


def _keep(folder: Path, spec: dict[str, Any], work: Path) -> None:
    for pattern in spec["keep"]:
        for path in work.glob(pattern):
            try:
                _copy(path, folder / "kept" / path.relative_to(work))
            except FileNotFoundError:  # the job has just removed it: it is done with it
                continue


def _finish(folder: Path, spec: dict[str, Any], work: Path, *, code: int, problem: str | None) -> None:
    """Copy the products with their hashes, then write result.json."""
    products: dict[str, str] = {}
    beside = [path for pattern in spec["beside"] for path in work.glob(pattern) if path.is_file()]
    names = [path.relative_to(work).as_posix() for path in beside]
    wanted = [*([*spec["outputs"], *names] if code == 0 else []), *spec["logs"]]
    for name in wanted:
        path = work / name
        files = [path] if path.is_file() else [one for one in sorted(path.rglob("*")) if one.is_file()]
        if not files and not path.is_dir() and name in spec["outputs"]:
            code, problem = 1, f"the job ended well without making {name}"
        for file in files:
            relative = file.relative_to(work)
            products[relative.as_posix()] = _copy(file, folder / "outputs" / relative)
    folders = [name for name in wanted if (work / name).is_dir()]
    result = {"code": code, "problem": problem, "products": products, "folders": folders, "gpu": _gpu()}
    partial = folder / "result.json.partial"
    partial.write_text(json.dumps(result))
    os.sync()
    partial.rename(folder / "result.json")
    os.sync()


def _gpu() -> str | None:
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip().splitlines()[0]


def _copy_tree(source: Path, target: Path) -> None:
    for path in source.rglob("*") if source.is_dir() else []:
        if path.is_file():
            _copy(path, target / path.relative_to(source))


def _copy(source: Path, target: Path) -> str:
    """Copy a file, appearing whole; returns its SHA-256."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    shutil.copy2(source, partial)
    partial.replace(target)
    return _sha256(target)


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
