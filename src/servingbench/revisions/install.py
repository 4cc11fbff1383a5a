"""Make a revision's environment: a folder of pinned packages that goes before the shared torch on the path.

The overlay holds transformers and everything it needs but torch, numpy and typing_extensions, which come from the
pipeline's own environment (torch is the big one; numpy must be the one that torch and numba were loaded with).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.records.files import read_text, sha256_file, write_json
from servingbench.revisions.checkout import check_out, export, working_tree

OVERLAY = "site-packages"
CHECKOUT = "checkout"
SHARED = ("torch", "numpy", "typing_extensions")


def read_pins(path: Path) -> dict[str, str]:
    """The ``name==version`` lines of a requirements file, by normalised name.

    Raises:
        UserError: for a line that is no exact pin.
    """
    pins: dict[str, str] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        requirement = line.split("#", 1)[0].strip()
        if not requirement:
            continue
        name, separator, version = requirement.partition("==")
        if not separator or not version.strip():
            remedy = "write name==version"
            raise UserError("not an exact pin", file=path, key=f"line {number}", value=line, remedy=remedy)
        pins[normalised(name)] = version.strip()
    return pins


def normalised(name: str) -> str:
    """A distribution's name as PyPI compares it."""
    return name.strip().lower().replace("_", "-").replace(".", "-")


def install(*, name: str, row: dict[str, Any], pins_file: Path, folder: Path) -> None:
    """Install the revision ``name`` into ``folder`` and describe it in ``folder``/environment.json.

    A git revision is checked out in ``folder``/checkout and built from an export of it, a working folder likewise.

    Raises:
        UserError: when pip cannot install it, with pip's own last line; for a checkout that is not what it should be.
    """
    pins = read_pins(pins_file)
    state = _source_state(name, row, folder / CHECKOUT)
    exported = folder / ".source"
    shutil.rmtree(exported, ignore_errors=True)
    own = f"transformers=={row['version']}"
    try:
        if row["source"] != "pypi":
            repository = folder / CHECKOUT if row["source"] == "git" else Path(row["path"]).expanduser()
            export(repository, state["tree"], exported)
            own = str((exported / row.get("subfolder", ".")).absolute())
        requirements = [*exact(pins), own]
        overlay = install_overlay(requirements, folder, what=f"the revision {name}", pins_file=pins_file)
    finally:
        shutil.rmtree(exported, ignore_errors=True)
    write_json(folder / "environment.json", describe(name=name, row=row, pins=pins, overlay=overlay, state=state))


def _source_state(name: str, row: dict[str, Any], checkout: Path) -> dict[str, Any]:
    """Commit, content hash and dirty flag of what is installed; nulls for a release, which has none of them."""
    if row["source"] == "git":
        check_out(name, row, checkout)
        return {"commit": row["commit"], "tree": row["commit"], "dirty": False}
    if row["source"] == "path":
        return working_tree(name, Path(row["path"]).expanduser())
    return {"commit": None, "tree": None, "dirty": None}


def install_tool(*, name: str, pins_file: Path, folder: Path) -> None:
    """Install the pinned packages of a tool that runs beside the revisions, in the same way.

    Raises:
        UserError: when pip cannot install it, with pip's own last line.
    """
    pins = read_pins(pins_file)
    overlay = install_overlay(exact(pins), folder, what=name, pins_file=pins_file)
    described = {"schema_version": 1, "environment": name, "python": _python(), "pins": pins}
    write_json(folder / "environment.json", {**described, "packages": _packages(pins, overlay)})


def exact(pins: dict[str, str]) -> list[str]:
    """Pins as requirements."""
    return [f"{package}=={version}" for package, version in pins.items()]


def install_overlay(requirements: list[str], folder: Path, *, what: str, pins_file: Path) -> Path:
    """Install ``requirements`` into ``folder``/site-packages and return it.

    The overlay is built beside its final place and moved there when it is whole, so an interrupted installation leaves
    no half of one behind.
    """
    building, overlay = folder / f".{OVERLAY}.building", folder / OVERLAY
    retired = folder / f".{OVERLAY}.retired"
    for leftover in (building, retired):
        shutil.rmtree(leftover, ignore_errors=True)
    building.mkdir(parents=True)
    try:
        _pip_install(requirements, building, what=what, pins_file=pins_file)
        if overlay.exists():
            overlay.rename(retired)
        building.rename(overlay)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(retired, ignore_errors=True)
    return overlay


def _pip_install(requirements: list[str], target: Path, *, what: str, pins_file: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--target", str(target), *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.splitlines()
        lines = [line for line in said if line.startswith("ERROR")] or said or ["?"]
        if "No space left" in done.stderr:
            lines = ["the disk is full"]
        raise UserError(
            f"pip could not install {what}: {lines[-1].removeprefix('ERROR: ')}",
            file=pins_file,
            remedy="check the network and the row in config/revisions.yaml, then run the same command again",
        )


def describe(
    *, name: str, row: dict[str, Any], pins: dict[str, str], overlay: Path, state: dict[str, Any]
) -> dict[str, Any]:
    """What stands in ``overlay``: versions, the hash of each distribution's own file list, what is shared."""
    found = {normalised(item.metadata["Name"]): item for item in metadata.distributions(path=[str(overlay)])}
    pins = {**pins, "transformers": found["transformers"].version}
    packages = _packages(pins, overlay)
    return {
        "schema_version": 1,
        "revision": name,
        "source": row["source"],
        "url": row.get("url"),
        "transformers": {
            "version": packages["transformers"]["version"],
            **state,
            "file": f"{OVERLAY}/transformers/__init__.py",
        },
        "python": _python(),
        "pins": pins,
        "packages": packages,
        "shared": {package: metadata.version(package) for package in SHARED},
    }


def _packages(pins: dict[str, str], overlay: Path) -> dict[str, Any]:
    """Each pinned package's version and the hash of its own file list, as they stand in ``overlay``."""
    found = {normalised(item.metadata["Name"]): item for item in metadata.distributions(path=[str(overlay)])}
    return {
        package: {"version": found[package].version, "record_sha256": _record_hash(found[package])}
        for package in sorted(pins)
    }


def _python() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def _record_hash(distribution: metadata.Distribution) -> str | None:
    record = next((path for path in distribution.files or [] if path.name == "RECORD"), None)
    return sha256_file(Path(str(distribution.locate_file(record)))) if record else None
