"""Records the transactions of a Django application on PostgreSQL, without changing its code.

Keys in the history are named after the application's models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.errors import IsolangError

if TYPE_CHECKING:
    from isolang.observe.ways.library import LibraryWatch
    from isolang.testing.isolation import Isolation


def watch(isolation: Isolation, using: str = "default", *, versions: bool = False) -> LibraryWatch:
    """Record the application's transactions on one of its databases until the test ends.

    Args:
        isolation: the test's ``isolation`` fixture.
        using: Django's alias for the database.
        versions: whether to also read the database's log, as in
            :meth:`isolang.testing.isolation.Isolation.watch_psycopg`.

    Returns:
        The watch; its ``unseen`` counts the activity that it could not record.

    Raises:
        IsolangError: the database is not PostgreSQL through psycopg 3, or cannot be reached.
    """
    from django.apps import apps
    from django.db import connections

    connection = connections[using]
    if connection.vendor != "postgresql" or not _psycopg3():
        raise IsolangError(
            f"django.watch: unsupported database (got {connection.vendor} for {using!r}, "
            "expected postgresql with psycopg 3)"
        )
    for opened in connections.all(initialized_only=True):
        if not opened.in_atomic_block:
            opened.close()  # it is opened again through the proxy
            if hasattr(opened, "close_pool"):
                opened.close_pool()
    models = apps.get_models(include_auto_created=True)
    return isolation.watch_psycopg(
        versions=versions,
        names={one._meta.db_table: one._meta.label for one in models if not one._meta.proxy},
        **connection.get_connection_params(),
    )


def _psycopg3() -> bool:
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    return bool(is_psycopg3)
