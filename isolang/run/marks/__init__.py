"""Leaves marks of a run in a database, next to the rows of its workload.

``ownership`` leaves a mark to show which run owns the tables, and that it is alive.
``commit_tokens`` leaves keys that reveal afterwards whether a transaction has committed.
"""
