"""A Hugging Face dataset repository, streamed by the `datasets` library: the hub's, or a local copy of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from servingbench.errors import UserError
from servingbench.prompts.columns import columns_read
from servingbench.prompts.row import Row

TIMEOUT_S = 60


def read(source: Mapping[str, Any], paths: Sequence[Path]) -> Iterator[Row]:
    """Stream the rows of ``source["split"]``, and of their columns only those that the workload reads.

    Args:
        source: ``repo``, ``config`` (optional), ``split``, ``revision``.
        paths: the folder of a local copy, laid out as the repository; none: the hub.

    Raises:
        UserError: for a repository that is missing, gated or out of reach, and for another config, split or column
            than it has; with what to do.
    """
    from datasets import load_dataset  # slow to import, and needed by these workloads alone
    from datasets.exceptions import DatasetsError

    place = str(paths[0]) if paths else str(source["repo"])
    revision = None if paths else source.get("revision")
    columns = columns_read(source)
    try:
        dataset = load_dataset(
            place, source.get("config"), split=source["split"], revision=revision, streaming=True, token=None
        )
        if columns is not None:
            dataset = dataset.select_columns(columns)
        for number, values in enumerate(dataset, start=1):
            # Times, bytes and the like become text: rows hold JSON values only.
            yield Row(place, f"row {number}", json.loads(json.dumps(values, default=str)))
    except (DatasetsError, OSError, ValueError) as error:
        raise _refusal(error, source, place, local=bool(paths)) from None


def pinned(source: Mapping[str, Any]) -> dict[str, Any]:
    """The source with the commit that its repository has now, where the row does not pin one.

    Raises:
        UserError: for a repository that is missing, gated or out of reach.
    """
    if source["revision"] is not None:
        return dict(source)
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return {**source, "revision": HfApi().dataset_info(source["repo"], timeout=TIMEOUT_S).sha}
    except (HfHubHTTPError, OSError) as error:
        raise _refusal(error, source, source["repo"], local=False) from None


def _refusal(error: Exception, source: Mapping[str, Any], place: str, *, local: bool) -> UserError:
    said = str(error).strip().splitlines() or [type(error).__name__]
    repo = source["repo"]
    if local:
        remedy = "compare the copy with the hub's repository, and its config, split and columns with the workload's row"
    elif "gated" in str(error).lower():
        remedy = f"accept its terms at huggingface.co/datasets/{repo}, then run `hf auth login` or set HF_TOKEN"
    elif isinstance(error, ConnectionError):
        remedy = (
            f"check the network; without one (HF_HUB_OFFLINE), copy it with `hf download --repo-type dataset {repo}"
            f" --local-dir DIR/{repo}` where there is one, and set datasets_root: DIR"
        )
    else:
        remedy = "correct repo, config, split, columns or revision in the workload's row"
    return UserError(f"cannot read the dataset: {said[0]}", file=place, value=source["split"], remedy=remedy)
