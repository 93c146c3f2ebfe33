"""Observes what unchanged applications do on PostgreSQL.

A proxy between an application and the server makes each statement that it understands also return
the versions of the rows that the statement read or wrote, and takes these columns away from the
answer. ``unseen`` names and counts what an observer could not record. docs/observe.md says what is
seen and what is not.
"""
