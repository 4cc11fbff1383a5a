"""Decoding methods: one loop of the project's own, and transformers' generate beside it."""

from servingbench.decoding.build import build_method, check_model, greedy_reference
from servingbench.decoding.types import FinishReason, Generation, Method, Reference, Request, Step

__all__ = [
    "FinishReason",
    "Generation",
    "Method",
    "Reference",
    "Request",
    "Step",
    "build_method",
    "check_model",
    "greedy_reference",
]
