"""Marks of a run in a database, in addition to the rows of its workload.

``ownership`` is the mark that says whose the tables are, and that the run is alive;
``commit_tokens`` are keys that tell afterwards whether a transaction has committed.
"""
