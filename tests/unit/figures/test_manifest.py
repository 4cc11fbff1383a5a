"""figures/all."""

import hashlib
from pathlib import Path

import pytest

from servingbench.errors import UserError
from servingbench.figures.manifest import manifest, read_inputs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("figures/k/a.svg", "figures/k/a.pdf", "figures/k/b.svg", "results/one.json", "results/two.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_lists_figures_with_hashes_and_inputs(root: Path) -> None:
    figures = [root / "figures/k/b.svg", root / "figures/k/a.svg", root / "figures/k/a.pdf"]
    rows = manifest(root, figures, {"figures/k": ["results/one.json"], "figures/k/a": ["results/two.json"]})["figures"]
    assert [row["path"] for row in rows] == ["figures/k/a.pdf", "figures/k/a.svg", "figures/k/b.svg"]
    assert rows[1]["sha256"] == hashlib.sha256(b"figures/k/a.svg").hexdigest()
    assert rows[1]["bytes"] == len("figures/k/a.svg")
    two = {"path": "results/two.json", "sha256": hashlib.sha256(b"results/two.json").hexdigest()}
    assert rows[1]["inputs"] == [two]
    assert rows[2]["inputs"][0]["path"] == "results/one.json"


def test_refuses_what_it_cannot_account_for(root: Path) -> None:
    with pytest.raises(UserError, match="no inputs are given"):
        manifest(root, [root / "figures/k/a.svg"], {"figures/k/b": []})
    with pytest.raises(UserError, match="no such file"):
        manifest(root, [root / "figures/k/c.svg"], {"figures": []})
    with pytest.raises(UserError, match="outside the root"):
        manifest(root / "figures", [root / "results/one.json"], {"": []})


def test_inputs_come_as_text_or_file(tmp_path: Path) -> None:
    assert read_inputs('{"a": ["b"]}') == {"a": ["b"]}
    (tmp_path / "i.json").write_text('{"a": ["b"]}')
    assert read_inputs(str(tmp_path / "i.json")) == {"a": ["b"]}
    with pytest.raises(UserError, match="lists of paths"):
        read_inputs('{"a": "b"}')
    with pytest.raises(UserError, match="not valid JSON"):
        read_inputs("{a")
