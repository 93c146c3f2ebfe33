"""Prints verdicts: a report is a record, which becomes text for people, or EDN."""
