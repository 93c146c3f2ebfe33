"""The way in for psycopg2."""

from __future__ import annotations

from typing import Any

from isolang.errors import IsolangError
from isolang.observe.ways.hooks import Hooks
from isolang.observe.ways.library import LibraryWatch


class Psycopg2:
    """Implements :class:`isolang.observe.ways.library.Library` for psycopg2."""

    name = "watch_psycopg2"

    def hook(self, hooks: Hooks, watch: LibraryWatch) -> None:
        """Replace ``connect``; the cursors of its connections note each statement.

        Raises:
            IsolangError: psycopg2 is not installed.
        """
        try:
            import psycopg2
        except ImportError:
            raise IsolangError(
                "watch_psycopg2: psycopg2 is not installed; hint: pip install psycopg2-binary"
            ) from None
        from psycopg2 import extensions

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
            made.cursor_factory = _noting(watch, made.cursor_factory or extensions.cursor)
            return watch.connected(made)

        hooks.replace(psycopg2, "connect", connect)

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


def _noting(watch: LibraryWatch, factory: Any) -> Any:
    """Return a class of cursors that note the caller of each statement."""

    def text_of(query: Any, connection: Any) -> str:
        if isinstance(query, bytes):
            return query.decode(errors="replace")
        return str(query.as_string(connection)) if hasattr(query, "as_string") else str(query)

    class NotingCursor(factory):  # type: ignore[misc]
        """A cursor of the application that notes the caller of each statement."""

        def execute(self, query: Any, vars: Any = None) -> Any:  # noqa: A002
            note = watch.note(self.connection, text_of(query, self.connection))
            try:
                return super().execute(query, vars)
            finally:
                if note is not None:
                    watch.proxy.notes.remove(*note)

        def executemany(self, query: Any, vars_list: Any) -> Any:
            text = text_of(query, self.connection)
            note = watch.note(self.connection, text, repeats=True)
            try:
                return super().executemany(query, vars_list)
            finally:
                if note is not None:
                    watch.proxy.notes.remove(*note)

    return NotingCursor
