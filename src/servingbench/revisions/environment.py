"""Prove that this process runs under the revision it was started for."""

from __future__ import annotations

import importlib
from importlib import metadata
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.records.files import read_json
from servingbench.revisions.install import normalised


def check(environment_json: Path) -> dict[str, Any]:
    """Compare the imported transformers, and every pinned package beside it, with the revision's environment.json.

    Returns:
        The revision's description, as environment.json holds it.

    Raises:
        UserError: saying what was imported from where, and what the revision wants.
    """
    wanted = read_json(environment_json)
    overlay = (environment_json.parent / wanted["transformers"]["file"]).resolve().parents[1]
    remedy = f"run it through snakemake, or with PYTHONPATH={overlay}"
    try:
        module = importlib.import_module("transformers")
    except ImportError as error:
        raise UserError(f"cannot import transformers: {error}", file=environment_json, remedy=remedy) from None
    found = Path(str(module.__file__)).resolve()
    version = wanted["transformers"]["version"]
    if overlay not in found.parents or module.__version__ != version:
        raise UserError(
            f"this process imports transformers {module.__version__} from {found.parent}; "
            f"the revision {wanted['revision']} is {version} in {overlay}",
            file=environment_json,
            remedy=remedy,
        )
    for package, pinned in wanted["pins"].items():
        _check_package(package, pinned, environment_json, remedy)
    return dict(wanted)


def _check_package(package: str, pinned: str, environment_json: Path, remedy: str) -> None:
    try:
        version = metadata.version(normalised(package))
    except metadata.PackageNotFoundError:
        version = "nothing"
    if version != pinned:
        problem = f"this process has {version}, the revision pins {pinned}"
        raise UserError(problem, file=environment_json, key=package, remedy=remedy)
