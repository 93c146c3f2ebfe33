"""Observes unchanged applications on PostgreSQL.

A proxy between an application and the server makes each statement that it understands also return
the versions of the rows read or written, and removes these columns from the results. ``unseen``
names and counts the activity that an observer could not record. docs/observe.md explains what is
seen and what is not.
"""
