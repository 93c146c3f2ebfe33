"""Connects to the watched database once, and reads its address, version and oldest transaction."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from weakref import WeakSet

from isolang.errors import IsolangError, message_in_one_line
from isolang.observe.sql.rewriting import DatabaseFacts

OWN_CONNECTIONS: Final[WeakSet[Any]] = WeakSet()
"""The connections opened by watches themselves, which no watch records."""


class WatchedServer(NamedTuple):
    """The state of a database server when a watch began.

    Attributes:
        place: the host, port and name of the database.
        oldest: the number of the oldest running transaction.
        facts: the server version, and the names of its functions.
    """

    place: tuple[Any, ...]
    oldest: int
    facts: DatabaseFacts


def open_own_connection(conninfo: str, parameters: dict[str, Any]) -> Any:
    """Open the watch's own connection, in autocommit mode, with rows as tuples.

    Args:
        conninfo: the connection string for ``psycopg.connect``.
        parameters: further arguments of the application for ``psycopg.connect``.

    Raises:
        psycopg.Error: the database cannot be reached.
    """
    import psycopg
    from psycopg.rows import tuple_row

    own = {"autocommit": True, "row_factory": tuple_row}
    connection = psycopg.connect(conninfo, **{**parameters, **own})
    OWN_CONNECTIONS.add(connection)
    return connection


def inspect_server(name: str, conninfo: str, parameters: dict[str, Any]) -> WatchedServer:
    """Connect to a database once, and return the facts about the server that a watch needs.

    Args:
        name: the name of the watch, for messages.
        conninfo: the connection string for ``psycopg.connect``.
        parameters: further arguments for ``psycopg.connect``.

    Raises:
        IsolangError: the database cannot be reached.
    """
    import psycopg

    try:
        with open_own_connection(conninfo, parameters) as own:
            ((oldest,),) = own.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")
            info = own.info
            facts = DatabaseFacts(version=info.server_version)
            facts.ask(own.execute)
            place = (info.host, info.port, info.dbname)
            return WatchedServer(place, int(oldest) % 2**32, facts)
    except psycopg.Error as error:
        what = message_in_one_line(error)
        raise IsolangError(
            f"{name}: cannot connect to the database (got {what}, expected arguments that "
            "psycopg.connect accepts)"
        ) from None
