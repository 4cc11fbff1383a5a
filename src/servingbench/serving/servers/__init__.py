"""Scripts that run inside an engine's own environment; each imports nothing but that engine."""
