"""Observes an application inside its own process, in the drivers psycopg and asyncpg.

A watch replaces methods of a driver. It records the versions of the rows read or written by each
statement, using the ``xmin`` returned by additional queries, with the ``file:line`` of the
application.
"""
