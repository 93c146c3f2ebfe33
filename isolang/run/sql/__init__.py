"""Provides adapters of SQL databases: two tables, and one statement for each operation.

The table ``registers`` has a number for each key, and ``lists`` has the elements of each key as a
text. Both tables have an indexed and an un-indexed copy of the key, so that rows can be found by
the index or by a scan. ``statements`` has the SQL, ``target`` creates the tables, and ``client``
runs the operations over a DB-API connection. ``client`` and ``target`` import each other: a client
reads the names of the tables and the dialect from its target, for which it imports only types.
"""

from isolang.run.sql.client import SqlClient
from isolang.run.sql.statements import Dialect
from isolang.run.sql.target import FileTarget, SqlTarget

__all__ = ["Dialect", "FileTarget", "SqlClient", "SqlTarget"]
