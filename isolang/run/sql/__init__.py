"""Provides the base classes for SQL databases: two tables, and one statement for each operation.

The table ``registers`` contains a number for each key, and the table ``lists`` contains the
elements of each list as text. Both tables contain each key twice, with and without an index, so
that rows can be found either through the index or by a scan. ``statements`` builds the SQL,
``target`` creates the tables, and ``client`` runs the operations over a DB-API connection.
``client`` and ``target`` import each other: a client gets the table names and the dialect from its
target, but imports only its types.
"""

from isolang.run.sql.client import SqlClient
from isolang.run.sql.statements import INDEXES, MERGE, PARTIAL, Dialect
from isolang.run.sql.target import FileTarget, SqlTarget, plans_of

__all__ = [
    "INDEXES",
    "MERGE",
    "PARTIAL",
    "Dialect",
    "FileTarget",
    "SqlClient",
    "SqlTarget",
    "plans_of",
]
