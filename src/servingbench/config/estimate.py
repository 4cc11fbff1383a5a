"""How long a configuration would take on its GPUs, from facts of the tables alone."""

from __future__ import annotations

from servingbench.config.experiment import Experiment


def estimated_hours(experiment: Experiment) -> float | None:
    """Hours of GPU time, at most: every answer as long as its cap and every arm as slow as autoregressive decoding.

    A token then costs the time to read the weights once, at the rate that single-stream decoding reaches. The untimed
    reference counts as one more arm; loading and the lossless gate are left out.

    Returns:
        None where a model or a GPU of the configuration has no such fact in its row.
    """
    arms = len(experiment.methods) * experiment.repeats + 1
    tokens = arms * sum(experiment.limit * experiment.workload(name)["max_new_tokens"] for name in experiment.workloads)
    seconds = 0.0
    for key in experiment.all_keys():
        weights = experiment.tables.models[key["model"]].get("weights_gb")
        rate = experiment.tables.gpus[key["gpu"]].get("decode_gb_per_s")
        if weights is None or rate is None:
            return None
        seconds += tokens * weights / rate
    return seconds / 3600
