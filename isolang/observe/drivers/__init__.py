"""Observes an application in the drivers that its own process uses: psycopg and asyncpg.

A watch replaces methods of a driver. It records the versions of the rows that each statement read
or wrote, by the ``xmin`` that further queries return, with the ``file:line`` of the application.
"""
