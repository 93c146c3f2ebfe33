"""Leaves marks of a run in a database, in addition to the rows of its workload.

``ownership`` has the mark that says which run owns the tables, and that the run is alive.
``commit_tokens`` has keys that reveal afterwards whether a transaction has committed.
"""
