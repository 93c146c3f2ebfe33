"""Records the transactions of a Django application without changing its code.

The database is PostgreSQL or MariaDB. Keys in the history are named after the application's models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from isolang.errors import IsolangError

if TYPE_CHECKING:
    from isolang.observe.ways.library import LibraryWatch
    from isolang.testing.isolation import Isolation


def watch(isolation: Isolation, using: str = "default", *, versions: bool = False) -> LibraryWatch:
    """Record the application's transactions on one of its databases until the test ends.

    Args:
        isolation: the test's ``isolation`` fixture.
        using: Django's alias for the database.
        versions: whether to also read PostgreSQL's log, as in
            :meth:`isolang.testing.isolation.Isolation.watch_psycopg`. MariaDB's is always read.

    Returns:
        The watch; its ``unseen`` counts the activity that it could not record.

    Raises:
        IsolangError: the database cannot be watched, or cannot be reached.
    """
    from django.apps import apps
    from django.db import connections

    connection = connections[using]
    method = _method(connection)
    if not method:
        raise IsolangError(
            f"django.watch: unsupported database (got {connection.vendor} for {using!r}, "
            "expected postgresql with psycopg 3, or MariaDB)"
        )
    for opened in connections.all(initialized_only=True):
        if not opened.in_atomic_block:
            opened.close()  # it is opened again through the proxy
            if hasattr(opened, "close_pool"):
                opened.close_pool()
    models = apps.get_models(include_auto_created=True)
    more = {"versions": versions} if method == "watch_psycopg" else {}
    watch_driver: Callable[..., LibraryWatch] = getattr(isolation, method)
    return watch_driver(
        **more,
        names={one._meta.db_table: one._meta.label for one in models if not one._meta.proxy},
        **connection.get_connection_params(),
    )


# The methods of a test for MariaDB, by the names of the drivers' modules.
_METHODS: Final = {
    "MySQLdb": "watch_mysqlclient", "pymysql": "watch_pymysql",
    "mysql.connector": "watch_mysql_connector",
}  # fmt: skip


def _method(connection: Any) -> str:
    """Return the name of the method of a test that watches a connection's driver; empty if none."""
    if connection.vendor == "mysql":
        return _METHODS.get(connection.Database.__name__, "")
    if connection.vendor != "postgresql":
        return ""
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    return "watch_psycopg" if is_psycopg3 else ""
