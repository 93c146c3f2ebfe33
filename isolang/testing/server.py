"""What psycopg's connections say about themselves, and statements as the server gets them."""

from __future__ import annotations

from typing import Any

from isolang.errors import IsolangError


def status(connection: Any) -> str:
    """The state of the transaction, by psycopg's name for it."""
    return str(connection.info.transaction_status.name)


def place(connection: Any) -> tuple[Any, ...]:
    """Which database it is; nothing once it is closed."""
    if connection.closed:
        return ()
    info = connection.info
    return (info.host, info.port, info.dbname)


def text_of(query: Any, connection: Any) -> str:
    """A statement as it is written, without its values; empty if that is not known."""
    if isinstance(query, bytes):
        return query.decode()
    if isinstance(query, str):
        return query
    return str(query.as_string(connection)) if hasattr(query, "as_string") else ""


def literal(connection: Any, query: Any, params: Any) -> str:
    """A statement with its values in it; empty if they cannot be spelt."""
    import psycopg

    kind: Any = psycopg.ClientCursor
    if isinstance(connection, psycopg.AsyncConnection):
        kind = psycopg.AsyncClientCursor
    try:
        return str(kind(connection).mogrify(query, params))
    except (psycopg.Error, TypeError, ValueError):
        return ""


def connected(conninfo: str, parameters: dict[str, Any]) -> tuple[tuple[Any, ...], int]:
    """Where the database is, and the number of the oldest transaction that runs now.

    Raises:
        IsolangError: it cannot be reached.
    """
    import psycopg

    try:
        with psycopg.connect(conninfo, autocommit=True, **parameters) as own:
            found = own.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()
            return place(own), int(found[0] if found else 0) % 2**32
    except psycopg.Error as error:
        what = " ".join(str(error).split())
        raise IsolangError(
            f"watch_psycopg: the database cannot be reached (got {what}, "
            "expected what psycopg.connect takes)"
        ) from None
