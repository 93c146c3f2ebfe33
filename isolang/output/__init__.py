"""Converts verdicts to report records, and writes them as text, JSON or EDN."""
