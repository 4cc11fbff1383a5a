"""The experiment's facts: the tables in config/, checked by schema and against each other. Imports nothing heavy."""
