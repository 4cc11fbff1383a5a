"""The image of a job: the pipeline's pinned packages, and before them each overlay's own, as here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESOURCES = "/opt/resources"
PYTHON = "3.11"
# The workflow's own package is not installed: the runner links the job's sources to /opt/workflow.
PTH = "import site, pathlib; pathlib.Path(site.getsitepackages()[0], 'workflow.pth').write_text('/opt/workflow/src\\n')"


def requirements_of(requirements: Path, overlays: tuple[str, ...]) -> str:
    """The text that pins the image: the requirements file's, and each revision's packages."""
    pins = [f"# {name}: {' '.join(_pins(name))}" for name in overlays]
    return "\n".join([requirements.read_text(encoding="utf-8"), *pins])


def image(requirements: Path, overlays: tuple[str, ...]) -> Any:
    """The image, as the SDK builds it on first use.

    Raises:
        ValueError: for a revision that no image can hold: a folder that somebody works in.
    """
    import modal

    made = modal.Image.debian_slim(python_version=PYTHON).apt_install("git", "g++")
    made = made.pip_install_from_requirements(str(requirements)).run_commands(f'python -c "{PTH}"')
    for name in overlays:
        packages = " ".join(f"'{pin}'" for pin in _pins(name))
        made = made.run_commands(
            f"python -m pip install --no-deps --target {RESOURCES}/{name}/site-packages {packages}"
        )
    return made.env({"HF_HOME": "/cache/huggingface"})


def _pins(name: str) -> list[str]:
    """What an overlay consists of, from the environment.json that its installation here wrote."""
    described = json.loads(Path(f"resources/{name}/environment.json").read_text(encoding="utf-8"))
    pins = dict(described["pins"])
    if described.get("source") == "path":
        raise ValueError(f"{name} is a folder of this machine: give it a git commit to run it on Modal")
    if described.get("source") == "git":
        del pins["transformers"]
        return [*_exact(pins), f"git+{described['url']}@{described['transformers']['commit']}"]
    return _exact(pins)


def _exact(pins: dict[str, str]) -> list[str]:
    return [f"{package}=={pin}" for package, pin in sorted(pins.items())]
