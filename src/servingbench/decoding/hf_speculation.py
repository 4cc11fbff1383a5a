"""The speculations of transformers' generate: what a row claims to be, and whether model and revision can be that.

transformers takes the first speculation that its options name and drops the others without a word; it decodes plainly
when an option meets no model that can use it. Everything here is checked before any measurement instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import transformers
from transformers import GenerationConfig

from servingbench.errors import UserError


@dataclass(frozen=True)
class Speculation:
    """One way to draft.

    Attributes:
        generator: the candidate generator that transformers must build for it; None for plain decoding.
        always_drafts: it proposes something wherever there is room for it.
        uses_draft_model: it takes ``assistant: draft_model``.
    """

    generator: str | None
    always_drafts: bool = False
    uses_draft_model: bool = False


PLAIN = Speculation(None)
DRAFT_MODEL = Speculation("AssistedCandidateGenerator", always_drafts=True, uses_draft_model=True)
OTHER_TOKENIZER = Speculation("AssistedCandidateGeneratorDifferentTokenizers", uses_draft_model=True)
BY_OPTION = {
    "prompt_lookup_num_tokens": Speculation("PromptLookupCandidateGenerator"),
    "assistant_early_exit": Speculation("EarlyExitCandidateGenerator", always_drafts=True),
    "use_mtp": Speculation("MTPCandidateGenerator", always_drafts=True),
    "speculation_type": Speculation("DFlashTokenCandidateGenerator", always_drafts=True, uses_draft_model=True),
}


def claimed(name: str, options: dict[str, Any], *, draft_model: Any, other_tokenizer: bool) -> Speculation:
    """The one speculation that a row's options name.

    Raises:
        UserError: for an option that this transformers does not know, several speculations, or a draft model that is
            missing or that nothing would use.
    """
    known = vars(GenerationConfig())
    for option, value in options.items():
        if option not in known:
            remedy = f"correct it, or leave {name} out under transformers {transformers.__version__}, which has no such"
            raise UserError("unknown generation option", key=f"{name}: {option}", value=value, remedy=remedy)
    named = [option for option in BY_OPTION if options.get(option)]
    if len(named) > 1:
        remedy = "name one; transformers would take the first and drop the others"
        raise UserError("several ways to draft", key=name, value=named, remedy=remedy)
    if named:
        speculation = BY_OPTION[named[0]]
    else:
        speculation = OTHER_TOKENIZER if other_tokenizer else PLAIN if draft_model is None else DRAFT_MODEL
    if speculation.uses_draft_model != (draft_model is not None):
        needed = "needs" if speculation.uses_draft_model else "does not use"
        remedy = f"{'add' if speculation.uses_draft_model else 'remove'} assistant: draft_model"
        raise UserError(f"this way to draft {needed} a draft model", key=name, value=named, remedy=remedy)
    return speculation


def check_same_vocabulary(name: str, model: Any, draft_model: Any) -> None:
    """Refuse a draft model that speaks of other tokens."""
    ours, theirs = vocabulary_size(model), vocabulary_size(draft_model)
    if ours != theirs:
        remedy = f"use a draft model with the target's {ours} tokens, or a row with assistant_tokenizer: own"
        raise UserError("the draft model has another vocabulary than the target", key=name, value=theirs, remedy=remedy)


def check_other_vocabulary(name: str, model: Any, draft_model: Any) -> None:
    """Universal assisted generation is for other vocabularies; transformers tells them by their sizes."""
    ours, theirs = vocabulary_size(model), vocabulary_size(draft_model)
    if ours == theirs:
        remedy = "leave assistant_tokenizer out, or name another draft_model in config/models.yaml"
        problem = "the draft model has as many tokens as the target, which transformers takes for the same tokenizer"
        raise UserError(problem, key=name, value=theirs, remedy=remedy)


def check_early_exit(name: str, model: Any, layers: int) -> torch.nn.Module:
    """The first layer that drafting leaves out when it exits after ``layers`` layers."""
    count = model.config.get_text_config().num_hidden_layers
    if not 1 <= layers < count:
        remedy = f"exit after 1 to {count - 1} layers; this model has {count}"
        raise UserError("no such layer to exit after", key=f"{name}: assistant_early_exit", value=layers, remedy=remedy)
    base = getattr(model, model.base_model_prefix, None)  # where transformers turns the number of layers down
    for module in base.modules() if base is not None else ():
        if isinstance(module, torch.nn.ModuleList) and len(module) == count:
            return module[layers]
    problem = "transformers knows no layers of this model to leave out"
    raise UserError(problem, key=name, value=type(model).__name__, remedy=f"leave {name} out for this model")


def check_mtp(name: str, model: Any) -> None:
    """Multi-token prediction needs heads in the target's own checkpoint; what is missing there shows in the warm-up."""
    if not getattr(model.config.get_text_config(), "num_mtp_layers", None):
        remedy = f"leave {name} out for this model"
        problem = "the model has no multi-token prediction layers (num_mtp_layers in its config)"
        raise UserError(problem, key=name, value=type(model).__name__, remedy=remedy)


def check_dflash(name: str, model: Any, draft_model: Any) -> None:
    """DFlash needs a draft model made for it: one that denoises a block from this target's hidden states."""
    target, draft = model.config.get_text_config(), draft_model.config
    remedy = "name the target's own DFlash draft as draft_model in config/models.yaml"
    layers = getattr(draft, "target_layer_ids", None)
    if not layers or not hasattr(draft, "block_size") or not hasattr(draft, "mask_token_id"):
        raise UserError("the draft model is none for DFlash", key=name, value=type(draft_model).__name__, remedy=remedy)
    fits = (
        draft.hidden_size == target.hidden_size
        and max(layers) < target.num_hidden_layers
        and draft.mask_token_id < target.vocab_size
    )
    if not fits:
        raise UserError("the DFlash draft was made for another target", key=name, value=draft.model_type, remedy=remedy)


def vocabulary_size(model: Any) -> int:
    """Token ids of a model."""
    size: int = model.config.get_text_config().vocab_size
    return size
