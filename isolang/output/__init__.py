"""Prints verdicts: a verdict becomes a report record, and the report becomes text, JSON or EDN."""
