"""Running one paired block: all methods on all prompts of one workload, in one process, on the device it claims."""
