"""Figures: one file per figure, one style, one registry; all is read from summary.json and statistics.json."""
