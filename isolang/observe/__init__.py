"""Observes what unchanged applications do on PostgreSQL.

A proxy between an application and the server makes each statement that it understands also return
the versions of the rows that the statement read or wrote, and removes these columns from the
results. ``unseen`` names and counts what an observer could not record. docs/observe.md states what
is seen and what is not.
"""
