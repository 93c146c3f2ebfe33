"""Runs surveys, which play all workloads at all levels of a database.

``survey`` runs a survey, ``table`` shows its results as a table, and ``comparison`` compares them
with an earlier survey. ``effectiveness`` measures which workloads find violations, and how fast.
"""
