"""The metrics: one definition each, computed from raw records (config/schemas/raw.schema.yaml).

Symbols, per record: N committed new tokens; F target forwards, prefill included; S forwards that carried at least one
proposed token; D proposed tokens (tree nodes); A accepted draft tokens actually committed; W synchronised wall time.
Sums run over the records of one method on one workload; records that failed are excluded before a metric sees them.
"""
