"""Surveys: all levels and workloads of a database in one table.

``survey`` runs them, ``table`` shows what they found, ``comparison`` compares it with an earlier
survey, and ``effectiveness`` measures which workloads find violations, and how fast.
"""
