"""The poster: its tables (CSV and Markdown), its typesetting, and the result table on a terminal."""
