"""A process proves that it runs under its revision; the pins are exact."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import transformers

from servingbench.errors import UserError
from servingbench.revisions.environment import check
from servingbench.revisions.install import describe, install, read_pins

OVERLAY = Path(transformers.__file__).resolve().parents[1]


@pytest.fixture
def environment_json(tmp_path: Path, repository: Path) -> Path:
    """environment.json of the overlay that the tests run under, as its installation would have written it."""
    (tmp_path / "site-packages").symlink_to(OVERLAY)
    family = ".".join(transformers.__version__.split(".")[:2])
    pins = read_pins(repository / "envs" / f"transformers-{family}.txt") | {"transformers": transformers.__version__}
    described = describe(name="here", row={"source": "pypi"}, pins=pins, overlay=OVERLAY, state={"commit": None})
    path = tmp_path / "environment.json"
    path.write_text(json.dumps(described))
    return path


def test_the_right_environment_is_accepted(environment_json: Path) -> None:
    assert check(environment_json)["transformers"]["version"] == transformers.__version__


def test_another_version_is_refused(environment_json: Path) -> None:
    described = json.loads(environment_json.read_text())
    described["transformers"]["version"] = "4.0.0"
    environment_json.write_text(json.dumps(described))
    with pytest.raises(UserError, match=rf"imports transformers {transformers.__version__} .* is 4\.0\.0"):
        check(environment_json)


def test_the_same_version_from_another_folder_is_refused(environment_json: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = elsewhere / "environment.json"
    moved.write_text(environment_json.read_text())
    with pytest.raises(UserError, match="this process imports transformers"):
        check(moved)


def test_another_version_of_a_pinned_package_is_refused(environment_json: Path) -> None:
    described = json.loads(environment_json.read_text())
    described["pins"]["tokenizers"] = "0.0.1"
    environment_json.write_text(json.dumps(described))
    with pytest.raises(UserError, match=r"tokenizers: this process has .* the revision pins 0\.0\.1"):
        check(environment_json)


def test_pins_must_be_exact(tmp_path: Path) -> None:
    path = tmp_path / "pins.txt"
    path.write_text("# comment\nnumpy==2.0\nregex>=1\n")
    with pytest.raises(UserError, match="line 3: not an exact pin"):
        read_pins(path)


def test_a_failed_installation_says_why_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pins = tmp_path / "pins.txt"
    pins.write_text("")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    row = {"source": "pypi", "version": "0.0.0", "label": "x"}
    with pytest.raises(UserError, match=r"pip could not install the revision mine: .*transformers==0.0.0"):
        install(name="mine", row=row, pins_file=pins, folder=tmp_path / "mine")
    assert not list((tmp_path / "mine").iterdir())


def test_every_family_pins_what_its_revisions_need(repository: Path) -> None:
    for path in (repository / "envs").glob("transformers-*.txt"):
        pins = read_pins(path)
        assert {"huggingface-hub", "tokenizers", "safetensors"} <= set(pins)
        assert not {"torch", "numpy", "transformers"} & set(pins)
