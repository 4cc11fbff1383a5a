"""The lossless gate and the paired comparisons."""
