"""Figures: one file per figure, one style, one registry; everything drawn is read from summary.json and statistics.json."""
