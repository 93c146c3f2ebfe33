"""Queries the watched database over a separate connection of the watch."""

from __future__ import annotations

from typing import Any

from isolang.errors import IsolangError


def connected(name: str, conninfo: str, parameters: dict[str, Any]) -> tuple[tuple[Any, ...], int]:
    """Return the address of the database, and the number of its oldest running transaction.

    Raises:
        IsolangError: the database cannot be reached.
    """
    import psycopg

    try:
        with psycopg.connect(conninfo, autocommit=True, **parameters) as own:
            found = own.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()
            info = own.info
            return (info.host, info.port, info.dbname), int(found[0] if found else 0) % 2**32
    except psycopg.Error as error:
        what = " ".join(str(error).split())
        raise IsolangError(
            f"{name}: the database cannot be reached (got {what}, "
            "expected what psycopg.connect takes)"
        ) from None
