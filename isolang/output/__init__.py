"""Converts verdicts to report records, and writes these as text, JSON or EDN."""
