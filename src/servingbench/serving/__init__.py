"""The serve matrix: rows of `transformers serve` and other engines, their failures, and what was predicted of them."""
