"""The figures by name, for the workflow, which must not import matplotlib to know them."""

FIGURE_NAMES = (
    "speedup",
    "tokens_per_forward",
    "proposed_accepted",
    "position_profile",
    "throughput_memory",
    "draft_ablation",
    "source_ablation",
    "reported_speedup",
    "reported_source_ablation",
)
