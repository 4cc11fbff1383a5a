"""Prompts: reading a source, shaping its rows, sampling them and rendering them for a tokenizer."""
