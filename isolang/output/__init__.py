"""Prints verdicts: the report as a record, as text for people, and as EDN."""
