"""Running one paired block: all methods on all prompts of one workload, in one process, on the device it claims."""

import os
import sys

# OpenMP's threads spin while they wait for each other. With as many threads as cores and one other busy process, a
# spinning thread keeps the one it waits for off its core: a bf16 forward of a 135M model took 1.9 s on 2 cores. Threads
# that sleep took 57 ms there, and on the quiet machine 47 ms instead of 37. Sleeping has to be asked for before torch
# loads OpenMP; a setting of the user's own stands, and either is recorded.
if "torch" not in sys.modules:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
