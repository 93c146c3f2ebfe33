"""The way in for psycopg2."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import partial
from typing import Any

from isolang.errors import IsolangError
from isolang.observe.ways.hooks import Hooks
from isolang.observe.ways.inside import InsideProxy
from isolang.observe.ways.library import LibraryWatch, noting, text_of


class Psycopg2:
    """Implements :class:`isolang.observe.ways.library.Library` for psycopg2."""

    name = "watch_psycopg2"
    proxy = InsideProxy

    def hook(self, hooks: Hooks, watch: LibraryWatch) -> None:
        """Replace ``connect``, and note each statement of a cursor.

        Raises:
            IsolangError: psycopg2 is not installed.
        """
        try:
            import psycopg2
        except ImportError:
            raise IsolangError(
                "watch_psycopg2: psycopg2 is not installed; hint: pip install psycopg2-binary"
            ) from None
        from psycopg2 import extensions, extras  # noqa: F401 - its classes are cursors, too

        class WatchedCursor(extensions.cursor):  # type: ignore[misc]
            """psycopg2's cursor, whose own methods cannot be replaced."""

        def watched(connection: Any) -> Any:
            if connection.cursor_factory in (None, extensions.cursor):
                connection.cursor_factory = WatchedCursor
            return connection

        original = psycopg2.connect

        def connect(
            dsn: str | None = None,
            connection_factory: Any = None,
            cursor_factory: Any = None,
            **options: Any,
        ) -> Any:
            parameters = {**(extensions.parse_dsn(dsn) if dsn else {}), **options}
            if "database" in parameters:
                parameters["dbname"] = parameters.pop("database")
            moved = watch.proxy.moved_parameters(parameters)
            if moved is None:
                return original(dsn, connection_factory, cursor_factory, **options)
            made = original(None, connection_factory, cursor_factory, **moved)
            return watch.connected(watched(made))

        hooks.replace(psycopg2, "connect", connect)
        # All cursors of Python belong to a subclass of the cursor of C.
        for owner in filter(_is_of_python, extensions.cursor.__subclasses__()):
            hooks.replace_method(owner, "execute", noting(watch))
            hooks.replace_method(owner, "executemany", noting(watch, repeats=True))
            for name in ("copy_expert", "callproc", "copy_from", "copy_to"):
                hooks.call_before(owner, name, partial(_note_before, watch, name))
        for connection in _open(extensions.connection):
            if watch.is_missed(connection):
                watched(connection)
        for cursor in _open(extensions.cursor):
            # It may send statements that are not noted.
            if type(cursor) is extensions.cursor and watch.is_missed(cursor.connection):
                watch.note(cursor.connection, "a cursor of psycopg2")

    def connections(self) -> tuple[type, ...]:
        """Return the classes of the library's connections."""
        from psycopg2.extensions import connection

        return (connection,)

    def backend(self, connection: Any) -> int:
        """Return the number of the server's process for a connection; 0 if it is closed."""
        return 0 if connection.closed else int(connection.get_backend_pid())

    def is_pipelined(self, connection: Any) -> bool:
        """Return false, because psycopg2 waits for each result before sending another statement."""
        return False

    def address(self, connection: Any) -> tuple[str, int]:
        """Return the host and the port of a connection's server; an empty host if it is closed."""
        return ("", 0) if connection.closed else (connection.info.host, connection.info.port)


def _is_of_python(kind: type) -> bool:
    """Return whether a class is one of Python, whose methods can be replaced."""
    return bool(kind.__flags__ & 1 << 9)


def _open(kind: type) -> Iterator[Any]:
    """Yield the connections or cursors of this process that are open."""
    for one in gc.get_objects():
        # An object may be a proxy of another one that is gone.
        if issubclass(type(one), kind) and not one.closed:
            yield one


def _note_before(
    watch: LibraryWatch, name: str, cursor: Any, query: Any = "", *_: Any, **__: Any
) -> None:
    known = name == "copy_expert"
    text = text_of(query, cursor.connection) if known else ""
    watch.note(cursor.connection, text, later=True)
