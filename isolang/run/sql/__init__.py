"""Adapters of SQL databases: two tables, and one statement for each operation.

``registers`` has a number for each key, ``lists`` the elements of each key as a text. Both have an
indexed and an un-indexed copy of the key, so that rows can be reached by the index or by a scan.
``statements`` has the SQL, ``target`` creates the tables, ``client`` does the operations over a
DB-API connection. ``client`` and ``target`` import each other: a client reads the tables' names and
the dialect from its target, for which the import is one of types alone.
"""

from isolang.run.sql.client import SqlClient
from isolang.run.sql.statements import Dialect
from isolang.run.sql.target import FileTarget, SqlTarget

__all__ = ["Dialect", "FileTarget", "SqlClient", "SqlTarget"]
