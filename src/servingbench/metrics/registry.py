"""Every metric of a summary, by the name it has in summary.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from servingbench.metrics.acceptance_length import acceptance_length_mean, acceptance_length_pooled
from servingbench.metrics.acceptance_rate import acceptance_rate, acceptance_rate_depth
from servingbench.metrics.counts import forwards, new_tokens, overrun_tokens
from servingbench.metrics.draft_cost import draft_forwards, propose_us_per_step
from servingbench.metrics.draft_size import accepted_per_step, proposed_per_step
from servingbench.metrics.latency import tpot_ms, ttft_ms
from servingbench.metrics.memory import peak_memory_mib
from servingbench.metrics.position_profile import position_profile
from servingbench.metrics.records import Record
from servingbench.metrics.throughput import overall_tokens_per_second
from servingbench.metrics.tokens_per_forward import tokens_per_forward
from servingbench.metrics.verify_utilisation import verify_utilisation

METRICS: Mapping[str, Callable[[Sequence[Record]], object]] = {
    metric.__name__: metric
    for metric in (
        new_tokens,
        forwards,
        tokens_per_forward,
        acceptance_length_pooled,
        acceptance_length_mean,
        acceptance_rate,
        acceptance_rate_depth,
        verify_utilisation,
        proposed_per_step,
        accepted_per_step,
        position_profile,
        overall_tokens_per_second,
        tpot_ms,
        ttft_ms,
        propose_us_per_step,
        draft_forwards,
        peak_memory_mib,
        overrun_tokens,
    )
}
