"""What `--executor modal` can be told; each field is an option --modal-NAME, or a key of a profile."""

# Snakemake calls the annotations of this class: they must be plain types, and no `from __future__ import annotations`.
from dataclasses import dataclass, field

from snakemake_interface_executor_plugins.settings import ExecutorSettingsBase


@dataclass
class ExecutorSettings(ExecutorSettingsBase):  # type: ignore[misc]  # the interface has no types
    """Settings of the executor."""

    app: str = field(
        default="serving-bench", metadata={"help": "Modal app that the sandboxes belong to; made where it is missing"}
    )
    volume: str = field(
        default="serving-bench-jobs",
        metadata={"help": "Modal volume (v2) that carries inputs and outputs; made where it is missing"},
    )
    cache_volume: str = field(
        default="serving-bench-hf-cache",
        metadata={"help": "Modal volume that keeps Hugging Face downloads between jobs; made where it is missing"},
    )
    secrets: str = field(
        default="", metadata={"help": "names of Modal secrets that every job gets, separated by commas"}
    )
    infrastructure_retries: int = field(
        default=2,
        metadata={"help": "new sandboxes for a job whose sandbox was lost (preempted, failed to start); not --retries"},
    )
    max_cost: float = field(
        default=20.0, metadata={"help": "a job that could cost more US dollars than this is refused; the others run"}
    )
    max_timeout: int = field(
        default=86400, metadata={"help": "seconds; a job's own runtime (minutes) may be shorter, never longer"}
    )
    gpus: str = field(
        default="config/gpus.yaml",
        metadata={"help": "table of GPU keys: the name that Modal knows (modal) and its price (usd_per_hour)"},
    )
    requirements: str = field(
        default="envs/workflow.txt", metadata={"help": "pinned packages of the jobs' image, Snakemake among them"}
    )
    beside: str = field(
        default="results/**/serve/*/attempts/**/*",
        metadata={"help": "files that a job writes beside its outputs, and that come home with them"},
    )
    keep: str = field(
        default="results/**/journal.jsonl",
        metadata={"help": "files that a job writes for its own continuation: kept when a sandbox is lost"},
    )
