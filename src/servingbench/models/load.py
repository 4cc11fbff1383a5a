"""Load a prepared model and its tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.models.prepare import check_local, resolve


def load_model(folder: Path, row: dict[str, Any], device: str, *, headless: bool = False) -> tuple[Any, Any]:
    """Load what ``folder``/model.json describes onto ``device`` in the row's dtype, ready for greedy decoding.

    Args:
        folder: holds model.json.
        row: the model's row of config/models.yaml.
        device: torch's name of the device.
        headless: the model is no language model of its own but a DFlash draft, without head and tokenizer.

    Returns:
        (model in eval mode, tokenizer or, for a headless model, None).

    Raises:
        UserError: for a missing tokenizer, an unreachable hub, remote code that the row does not allow.
    """
    import torch
    from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()  # its advice is about arguments that the methods set on purpose
    location, revision = resolve(folder)
    if row["source"] == "local":
        check_local(Path(location), str(folder.name))
    options: dict[str, Any] = {"revision": revision, "trust_remote_code": row.get("trust_remote_code", False)}
    try:
        tokenizer = None if headless else AutoTokenizer.from_pretrained(location, **options)
        model = (AutoModel if headless else AutoModelForCausalLM).from_pretrained(
            location,
            dtype=getattr(torch, row["dtype"]),
            attn_implementation=row.get("attn_implementation", "sdpa"),
            use_safetensors=True,
            **options,
        )
    except (OSError, ValueError) as error:
        raise _explain(error, folder.name, location) from None
    return model.to(device).eval(), tokenizer


def _explain(error: Exception, name: str, location: str) -> UserError:
    """One line for the failures of from_pretrained that a user can mend."""
    first_line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    where: dict[str, Any] = {"file": "config/models.yaml", "key": name, "value": location}
    if "trust_remote_code" in str(error):
        remedy = "read that code, then set trust_remote_code: true in the row"
        return UserError("the model's repository wants to run code of its own", **where, remedy=remedy)
    if "gated" in str(error).lower() or "401" in str(error) or "403" in str(error):
        remedy = "accept the model's terms on its page and log in with `hf auth login`"
        return UserError("access to the model is restricted", **where, remedy=remedy)
    if any(hint in str(error) for hint in ("connect", "couldn't find", "offline", "resolve")):
        remedy = "check the network and HF_HUB_OFFLINE, or point a `source: local` row at a folder that holds the model"
        return UserError(f"cannot get the model: {first_line}", **where, remedy=remedy)
    return UserError(f"cannot load the model: {first_line}", **where, remedy="check the row and the files of the model")
