"""The kinds of draft that the loop can verify: one line each."""

from __future__ import annotations

from collections.abc import Callable

from servingbench.decoding.drafts.arctic import ArcticDrafter
from servingbench.decoding.drafts.base import Draft, Drafter, NoDraft
from servingbench.decoding.drafts.prompt_lookup import PromptLookup
from servingbench.decoding.drafts.suffix import SuffixDrafter
from servingbench.decoding.drafts.suffix_published import published

DRAFTS: dict[str, Callable[..., Drafter]] = {
    "none": NoDraft,
    "prompt_lookup": PromptLookup,
    "suffix": SuffixDrafter,
    "suffix_published": published,
    "arctic": ArcticDrafter,
}

__all__ = ["DRAFTS", "Draft", "Drafter", "NoDraft"]
