"""Decides whether a few calls of an application can harm each other on PostgreSQL.

The calls are recorded one after another. What could have happened at the same time is predicted,
and played by holding the statements of one call in the proxy until others have ended; the harm of
what is played is sought by serial runs (docs/court.md).
"""
