"""The way in for psycopg 3, with synchronous and asynchronous connections."""

from __future__ import annotations

from functools import partial
from typing import Any

from isolang.observe.ways.hooks import Hooks
from isolang.observe.ways.inside import OF_PSYCOPG, InsideProxy
from isolang.observe.ways.library import LibraryWatch, noting, text_of


class Psycopg:
    """Implements :class:`isolang.observe.ways.library.Library` for psycopg 3."""

    name = "watch_psycopg"
    proxy = InsideProxy

    def hook(self, hooks: Hooks, watch: LibraryWatch) -> None:
        """Replace ``connect``, and note each statement that a cursor sends."""
        import psycopg

        original = psycopg.Connection.__dict__["connect"].__func__
        awaited = psycopg.AsyncConnection.__dict__["connect"].__func__

        def connect(cls: Any, /, conninfo: str = "", **options: Any) -> Any:
            moved = None if watch.is_own() else _moved(watch, conninfo, options)
            if moved is None:
                return original(cls, conninfo, **options)
            return watch.connected(original(cls, **moved))

        async def connect_later(cls: Any, /, conninfo: str = "", **options: Any) -> Any:
            moved = None if watch.is_own() else _moved(watch, conninfo, options)
            if moved is None:
                return await awaited(cls, conninfo, **options)
            return watch.connected(await awaited(cls, **moved))

        hooks.replace(psycopg.Connection, "connect", classmethod(connect))
        hooks.replace(psycopg.AsyncConnection, "connect", classmethod(connect_later))
        hooks.replace(psycopg, "connect", psycopg.Connection.connect)
        for prefix in ("", "Async"):
            awaits = bool(prefix)
            cursor, server = (
                getattr(psycopg, prefix + name) for name in ("Cursor", "ServerCursor")
            )
            hooks.replace_method(cursor, "execute", noting(watch), awaits=awaits)
            many = noting(watch, repeats=True)
            hooks.replace_method(cursor, "executemany", many, awaits=awaits)
            hooks.replace_method(server, "execute", noting(watch), awaits=awaits)
            for name in ("copy", "stream"):
                hooks.call_before(cursor, name, partial(_note_before, watch))

    def connections(self) -> tuple[type, ...]:
        """Return the classes of the library's connections."""
        import psycopg

        return psycopg.Connection, psycopg.AsyncConnection

    def backend(self, connection: Any) -> int:
        """Return the number of the server's process for a connection; 0 if it is closed."""
        return 0 if connection.closed else int(connection.info.backend_pid)

    def is_pipelined(self, connection: Any) -> bool:
        """Return whether the connection is in pipeline mode."""
        return not connection.closed and bool(connection.pgconn.pipeline_status)

    def address(self, connection: Any) -> tuple[str, int]:
        """Return the host and the port of a connection's server."""
        if connection.closed:
            return "", 0
        return connection.info.host or connection.info.hostaddr, connection.info.port


def _note_before(watch: LibraryWatch, cursor: Any, query: Any = "", *_: Any, **__: Any) -> None:
    watch.note(cursor.connection, text_of(query, cursor.connection), later=True)


def _moved(watch: LibraryWatch, conninfo: str, options: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of ``connect`` with the proxy in the server's place."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    own = {name: value for name, value in options.items() if name in OF_PSYCOPG}
    rest = {name: value for name, value in options.items() if name not in OF_PSYCOPG}
    try:
        parameters = {**conninfo_to_dict(conninfo), **rest}
    except ProgrammingError:  # psycopg itself says what is wrong
        return None
    moved = watch.proxy.moved_parameters(parameters)
    return None if moved is None else {**moved, **own}
