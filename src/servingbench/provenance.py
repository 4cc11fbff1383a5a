"""Where a result comes from: packages, processor, pipeline commit. Nothing here names a folder of this machine."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""

PACKAGES = (
    "accelerate", "arctic-inference", "flash-attn", "huggingface-hub", "numba", "numpy", "safetensors", "serving-bench",
    "tokenizers", "torch", "transformers", "triton",
)  # fmt: skip
"""What a result can depend on; those that are installed are recorded."""


def package_versions() -> dict[str, str]:
    """The installed versions of :data:`PACKAGES`, and of Python, as this process would import them."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def cpu_description() -> dict[str, Any]:
    """The processor's name, its logical cores, how many of them this process may use, and the memory in MiB."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "name": _cpu_name(),
        "logical_cores": os.cpu_count(),
        "usable_cores": usable,
        "mem_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "system": f"{platform.system()} {platform.machine()}",
    }


def openmp_settings() -> dict[str, str]:
    """The environment variables that decide how OpenMP's threads run and wait."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(("OMP_", "GOMP_", "KMP_"))}


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, flags=re.MULTILINE)
    if found:
        return found.group(1).strip()
    if platform.system() == "Darwin":
        return _output(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.machine()
    return platform.processor() or platform.machine()


def pipeline_state(root: Path = ROOT) -> dict[str, Any]:
    """The pipeline's commit and whether tracked or new files differ from it; null with a reason outside git."""
    commit = _output(["git", "rev-parse", "--verify", "HEAD"], cwd=root)
    status = _output(["git", "status", "--porcelain"], cwd=root)
    state: dict[str, Any] = {"commit": commit or None, "dirty": None if status is None else bool(status)}
    if not commit:
        state["reason"] = "no git repository, no git, or no commit yet"
    return state


def _output(command: list[str], *, cwd: Path | None = None) -> str | None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def source_digest(packages: Iterable[str]) -> str:
    """A hash over the Python sources of some of our own packages: their relative names and contents."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for package in packages:
        for path in sorted((here / package).rglob("*.py")):
            digest.update(f"{path.relative_to(here).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def relative_path(path: str | Path, root: Path = ROOT) -> str:
    """``path`` relative to the repository; outside of it, its part from site-packages on, or its bare name."""
    absolute = Path(path).absolute()
    for candidate in (absolute, absolute.resolve()):
        if candidate.is_relative_to(root):
            return candidate.relative_to(root).as_posix()
    parts = absolute.parts
    if "site-packages" in parts:
        start = len(parts) - 1 - parts[::-1].index("site-packages")
        return "/".join(parts[start:])
    return absolute.name


def without_absolute_paths(value: Any) -> Any:
    """A copy of a JSON value in which every string that is an absolute path became a relative one."""
    if isinstance(value, Mapping):
        return {key: without_absolute_paths(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_absolute_paths(item) for item in value]
    return relative_path(value) if isinstance(value, str) and value.startswith("/") else value


def transformers_description(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The transformers this process imported, with the commit and dirty flag that its revision's environment names."""
    import transformers

    described = environment.get("transformers", {})
    return {
        "version": transformers.__version__,
        "commit": described.get("commit"),
        "dirty": described.get("dirty"),
        "tree": described.get("tree"),
        "file": relative_path(str(transformers.__file__)),
    }
