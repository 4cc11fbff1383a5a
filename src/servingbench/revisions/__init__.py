"""One isolated environment per transformers revision, and the proof that a process runs in it."""
