"""Queries the watched database over a separate connection of the watch."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from weakref import WeakSet

from isolang.errors import IsolangError

OWN_CONNECTIONS: Final[WeakSet[Any]] = WeakSet()
"""The connections of watches, which no watch records."""


class WatchedServer(NamedTuple):
    """A database server, at the moment at which a watch begins.

    Attributes:
        place: host, port and database.
        oldest: the number of its oldest running transaction.
        version: its version, such as 180006.
    """

    place: tuple[Any, ...]
    oldest: int
    version: int


def connected(name: str, conninfo: str, parameters: dict[str, Any]) -> WatchedServer:
    """Return the server of a database.

    Raises:
        IsolangError: the database cannot be reached.
    """
    import psycopg

    try:
        with psycopg.connect(conninfo, autocommit=True, **parameters) as own:
            OWN_CONNECTIONS.add(own)
            found = own.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()
            info = own.info
            return WatchedServer(
                (info.host, info.port, info.dbname),
                int(found[0] if found else 0) % 2**32,
                info.server_version,
            )
    except psycopg.Error as error:
        what = " ".join(str(error).split())
        raise IsolangError(
            f"{name}: the database cannot be reached (got {what}, "
            "expected what psycopg.connect takes)"
        ) from None
