"""Tiny checkpoints with random weights: any architecture, from its config alone, with a tokenizer and a chat template.

What they write is noise; that a server loads them, refuses them or falls back is what an architecture does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.records.files import read_jsonl

VOCABULARY = 1024
SPECIAL = {"pad_token": "<pad>", "eos_token": "<end>"}
IMAGE = "<image>"
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: "
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif %}"
    "<end>\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)


def make_tiny(*, config: dict[str, Any], processor: str | None, texts: Path, folder: Path, seed: int = 0) -> None:
    """Save a model of ``config`` with random weights, and its tokenizer or processor, into ``folder``.

    Args:
        config: the contents of a config.json; names at least model_type and architectures.
        processor: ``clip`` for an image processor beside the tokenizer, or None.
        texts: JSONL whose strings the tokenizer is trained on.
        folder: made when it is missing.
        seed: of the weights.

    Raises:
        UserError: for an architecture that this transformers does not know.
    """
    import torch
    import transformers

    options = dict(config)
    names, model_type = options.pop("architectures"), options.pop("model_type")
    architecture = getattr(transformers, names[0], None)
    if architecture is None or model_type not in transformers.CONFIG_MAPPING:
        problem = f"transformers {transformers.__version__} does not know this architecture"
        raise UserError(problem, file="config/serve.yaml", key=folder.name, value=[model_type, *names])
    tokenizer = _tokenizer(texts)
    ids = {"vocab_size": VOCABULARY, "pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    if "text_config" in options:
        options["text_config"] = {**options["text_config"], **ids, "bos_token_id": None}
        options["image_token_id"] = tokenizer.convert_tokens_to_ids(IMAGE)
    else:
        options |= {**ids, "bos_token_id": None}
    torch.manual_seed(seed)
    model = architecture._from_config(transformers.AutoConfig.for_model(model_type, **options), dtype=torch.float32)
    model.save_pretrained(folder)
    (_clip_processor(tokenizer, options) if processor == "clip" else tokenizer).save_pretrained(folder)


def _tokenizer(texts: Path) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[*SPECIAL.values(), IMAGE],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_strings(texts), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)
    fast.chat_template = CHAT_TEMPLATE
    return fast


def _strings(texts: Path) -> Iterable[str]:
    for _, row in read_jsonl(texts):
        yield from (value for value in row.values() if isinstance(value, str))


def _clip_processor(tokenizer: Any, options: dict[str, Any]) -> Any:
    """LLaVA's processor over CLIP's image processor in its PIL form, which needs no torchvision."""
    from transformers import LlavaProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    side = options["vision_config"]["image_size"]
    images = CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size={"height": side, "width": side})
    patch = options["vision_config"]["patch_size"]
    return LlavaProcessor(images, tokenizer, patch_size=patch, chat_template=CHAT_TEMPLATE)


def described(config: dict[str, Any]) -> str:
    """A config as the one JSON text that the rule tracks."""
    return json.dumps(config, sort_keys=True)
