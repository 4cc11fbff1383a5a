"""The static bigram table: what a model says after each single token, as the start of every suffix draft's probability.

One pass of the model over its whole vocabulary, every token behind the same short prefix: the chat template's way to
the assistant's turn, for a token alone at the start of a text is not what a model sees when it answers. The tokens of a
batch are siblings of one draft tree, so that they share the prefix's keys and values and see nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from servingbench.decoding.drafts.base import Draft
from servingbench.decoding.jit import Floats32, Ints
from servingbench.decoding.target import Target
from servingbench.errors import UserError
from servingbench.records.files import atomic_writer

TABLE = "static_table.safetensors"
NEXT_TOKENS = 16
BATCH_TOKENS = 512


@torch.inference_mode()
def make_table(
    model: Any, prefix: list[int], *, next_tokens: int = NEXT_TOKENS, progress: Callable[[int], object] = lambda _: None
) -> tuple[Ints, Floats32]:
    """The most probable next tokens of each token id.

    Args:
        model: a causal language model.
        prefix: token ids before it, at least one.
        next_tokens: how many to keep of each.
        progress: called with the count of token ids that each batch finished.

    Returns:
        Token ids (vocabulary, next_tokens), best first, and their probabilities.
    """
    target = Target(model)
    vocabulary = target.config.vocab_size
    tokens = np.empty((vocabulary, next_tokens), np.int32)
    probs = np.empty((vocabulary, next_tokens), np.float32)
    cache = target.new_cache(prompt=len(prefix), new=1, draft=BATCH_TOKENS)
    if len(prefix) > 1:
        target.prefill(cache, prefix[:-1])
    for start in range(0, vocabulary, BATCH_TOKENS):
        batch = list(range(start, min(start + BATCH_TOKENS, vocabulary)))
        logits = target.verify(cache, prefix[-1], Draft.tree(batch, [-1] * len(batch)))[1:]
        best = torch.softmax(logits.float(), dim=-1).topk(next_tokens)
        tokens[batch], probs[batch] = best.indices.cpu().numpy(), best.values.cpu().numpy()
        progress(len(batch))
    return tokens, probs


def assistant_prefix(tokenizer: Any) -> list[int]:
    """An empty question up to the assistant's turn; without a chat template the token that begins or ends a text."""
    if getattr(tokenizer, "chat_template", None):
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": ""}], tokenize=False, add_generation_prompt=True
        )
        return [int(token) for token in tokenizer(text, add_special_tokens=False)["input_ids"]]
    begin = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    return [0 if begin is None else int(begin)]


def save_table(path: Path, table: tuple[Ints, Floats32]) -> None:
    """Store the table as safetensors."""
    tokens, probs = table
    with atomic_writer(path, binary=True) as handle:
        handle.write(save({"tokens": tokens, "probs": probs}))


def load_table(path: Path, *, vocabulary: int) -> tuple[Ints, Floats32]:
    """Read a stored table.

    Raises:
        UserError: for a file that is missing, broken, or of a model with another vocabulary.
    """
    remedy = "delete it and let the workflow make it again"
    try:
        stored = load_file(path)
        tokens, probs = stored["tokens"], stored["probs"]
    except (OSError, SafetensorError, KeyError) as error:
        raise UserError(f"no readable static table: {error}", file=path, remedy=remedy) from None
    if len(tokens) != vocabulary or tokens.shape != probs.shape:
        raise UserError(
            "the static table is not this model's", file=path, key="tokens", value=tokens.shape, remedy=remedy
        )
    return tokens, probs
