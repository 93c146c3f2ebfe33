"""Leaves marks of a run in a database, next to the rows of its workload.

``ownership`` leaves a mark that says which run owns the tables, and that this run is alive.
``commit_tokens`` leaves keys that reveal afterwards whether a transaction has committed.
"""
