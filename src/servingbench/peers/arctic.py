"""Snowflake's Arctic Inference (Apache-2.0): its suffix trees alone, without its dependencies.

The release is a source package whose own build wants a GPU build of torch and gRPC. The suffix trees need neither: two
Python files and two C++ files, bound with nanobind. They are compiled with what that package's CMakeLists.txt asks for
(C++20, release, optimised for speed), into a folder of their own: resources/peers/arctic-inference/ holds the package
``arctic_inference`` with nothing but ``suffix_decoding``, its licence, and its metadata, so that a run's provenance
names the version.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from servingbench.config.paths import ARCTIC
from servingbench.errors import UserError
from servingbench.provenance import ROOT
from servingbench.records.files import sha256_file, write_json

FOLDER = ROOT / ARCTIC
PINS = ROOT / "envs/arctic.txt"
EXTENSION = f"arctic_inference/suffix_decoding/_C{sysconfig.get_config_var('EXT_SUFFIX')}"


def arctic_available() -> bool:
    """Whether it is built here for this Python."""
    return (FOLDER / EXTENSION).is_file()


def put_on_path() -> None:
    """Make ``import arctic_inference`` find the built part.

    Raises:
        UserError: when it is not built.
    """
    if not arctic_available():
        raise UserError(
            "Arctic Inference's suffix trees are not built for this Python",
            file=FOLDER.relative_to(ROOT),
            remedy="run `make arctic` (python workflow_scripts/build_arctic.py): a download of 1 MB and a C++ compiler",
        )
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))


def build(folder: Path = FOLDER, *, pins: Path = PINS) -> None:
    """Download, check and compile it into ``folder``, which is replaced only when all went well.

    Raises:
        UserError: without network, compiler or Python headers, or for a file that is not the pinned one.
    """
    compiler = os.environ.get("CXX") or "c++"
    headers = Path(sysconfig.get_path("include"))
    if not shutil.which(compiler.split()[0]):
        raise UserError("no C++ compiler", value=compiler, remedy="install one (Debian: apt install g++) or set CXX")
    if not (headers / "Python.h").is_file():
        raise UserError("no Python headers", file=headers, remedy="install them (Debian: apt install python3-dev)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".arctic.", dir=folder.parent) as temporary:
        work = Path(temporary)
        sdist, nanobind = download(work, pins=pins)
        shutil.unpack_archive(sdist, work)
        shutil.unpack_archive(nanobind, work, "zip")
        source, built = work / sdist.name.removesuffix(".tar.gz"), work / "built"
        package = Path("arctic_inference")
        (built / EXTENSION).parent.mkdir(parents=True)
        for name in (
            package / "__init__.py",
            package / "suffix_decoding/__init__.py",
            package / "suffix_decoding/cache.py",
        ):
            shutil.copyfile(source / name, built / name)
        shutil.copyfile(source / "LICENSE", built / "LICENSE")
        metadata = built / f"{source.name}.dist-info"
        metadata.mkdir()
        shutil.copyfile(source / "PKG-INFO", metadata / "METADATA")
        sources = [*sorted((source / "csrc/suffix_decoding").glob("*.cc")), work / "nanobind/src/nb_combined.cpp"]
        includes = [headers, work / "nanobind/include", work / "nanobind/ext/robin_map/include"]
        compile_extension(compiler, sources, includes, built / EXTENSION)
        files = {str(path.relative_to(built)): sha256_file(path) for path in sorted(built.rglob("*")) if path.is_file()}
        described = {path.name: sha256_file(path) for path in (sdist, nanobind)}
        write_json(built / "build.json", {"schema_version": 1, "downloads": described, "files": files})
        shutil.rmtree(folder, ignore_errors=True)
        built.rename(folder)


def download(into: Path, *, pins: Path) -> tuple[Path, Path]:
    """The source package and nanobind's wheel, their hashes checked by pip before it looks into them.

    pip asks even a package that it only downloads for its metadata, which that package's setup.py answers with the
    torch and setuptools of this environment (--no-build-isolation); an environment of its own would download gigabytes.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += [
        "--no-build-isolation",
        "--no-binary",
        "arctic-inference",
        "--require-hashes",
        "--requirement",
        str(pins),
    ]
    done = subprocess.run([*command, "--dest", str(into)], capture_output=True, text=True, check=False)
    found = [*into.glob("arctic_inference-*.tar.gz"), *into.glob("nanobind-*.whl")]
    if done.returncode or len(found) != 2:
        said = [line for line in done.stderr.splitlines() if "ERROR" in line] or ["not the two files"]
        problem = f"pip could not download Arctic Inference: {said[-1].strip(' .').removeprefix('ERROR: ')}"
        raise UserError(problem, file=pins, remedy="check the network, then run the same command again")
    return found[0], found[1]


def compile_extension(compiler: str, sources: list[Path], includes: list[Path], out: Path) -> None:
    """One call of the compiler, a few seconds."""
    flags = ["-std=c++20", "-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-shared"]
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    command = [*compiler.split(), *flags, *(f"-I{include}" for include in includes), "-o", str(out), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines() or ["?"]
        problem = f"the C++ compiler failed: {said[0].strip()}"
        raise UserError(problem, value=compiler, remedy="it must know C++20; name another one with CXX")
