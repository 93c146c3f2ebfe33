"""The way in for MySQL Connector/Python, whose module is mysql.connector.

Its C extension holds the interpreter's lock while it waits for some answers, so a proxy in the same
process could never send them. During a watch, the library therefore uses its own implementation in
Python, as with ``use_pure=True``.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Final

from isolang.errors import IsolangError
from isolang.observe.ways.hooks import Hooks, Steps
from isolang.observe.ways.inside import PROXY_HOST, InsideProxy
from isolang.observe.ways.inside_mariadb import (
    MariaDBInsideProxy,
    connecting,
    goes_to_proxy,
    moved_attributes,
)
from isolang.observe.ways.library import LibraryWatch
from isolang.observe.ways.pymysql import noting_query

_WITH_ASYNCIO: Final = "mysql.connector.aio."
_OF_C: Final = "CMySQLConnection"


class MySQLConnector:
    """Implements :class:`isolang.observe.ways.library.Library` for MySQL Connector/Python."""

    name = "watch_mysql_connector"
    proxy: type[InsideProxy] = MariaDBInsideProxy

    def hook(self, hooks: Hooks, watch: LibraryWatch) -> None:
        """Replace the connecting of all connections, and note each statement.

        Raises:
            IsolangError: MySQL Connector/Python is not installed.
        """
        try:
            import mysql.connector as library
        except ImportError:
            raise IsolangError(
                "watch_mysql_connector: MySQL Connector/Python is not installed; hint: pip install "
                "mysql-connector-python"
            ) from None
        for kind in self.connections():
            awaits = kind.__module__.startswith(_WITH_ASYNCIO)
            name = "connect" if awaits else "_open_connection"
            hooks.replace_method(kind, name, self._opening(watch), awaits=awaits)
            hooks.replace_method(kind, "cmd_query", noting_query(watch), awaits=awaits)
        for module in (library, library.pooling):  # one of them has `connect`, by the version
            if getattr(module, _OF_C, None) is not None:
                hooks.replace(module, _OF_C, None)
        for kind in _prepared_cursors():
            awaits = kind.__module__.startswith(_WITH_ASYNCIO)
            hooks.replace_method(kind, "execute", _noting_prepared(watch), awaits=awaits)

    def _opening(self, watch: LibraryWatch) -> Any:
        def steps(original: Any, connection: Any) -> Steps:
            if not goes_to_proxy(watch, *self.address(connection)):
                return (yield partial(original, connection))
            if type(connection).__name__ == _OF_C:
                raise IsolangError(
                    "watch_mysql_connector: the C extension waits with the interpreter's lock, so "
                    f"the proxy in its process cannot answer (got a {_OF_C}); hint: "
                    "mysql.connector.connect(use_pure=True), or run isocheck observe"
                )
            with connecting(watch, connection), moved_attributes(
                connection, _host=PROXY_HOST, _port=watch.proxy.port, _unix_socket=None,
                _ssl_disabled=True,
            ):  # fmt: skip
                return (yield partial(original, connection))

        return steps

    def connections(self) -> tuple[type, ...]:
        """Return the classes of the library's connections."""
        return tuple(
            _classes(
                "connection.MySQLConnection", "connection_cext.CMySQLConnection",
                "aio.connection.MySQLConnection",
            )
        )  # fmt: skip

    def backend(self, connection: Any) -> int:
        """Return the server's number of a connection; 0 if it is closed."""
        return int(connection.connection_id or 0)

    def is_pipelined(self, connection: Any) -> bool:
        """Return false, because the library waits for each answer."""
        return False

    def address(self, connection: Any) -> tuple[str, int]:
        """Return the host, or the path of the socket, and the port of a connection's server."""
        return connection._unix_socket or connection._host, connection._port


def _prepared_cursors() -> list[type]:
    return _classes(
        "cursor.MySQLCursorPrepared", "cursor_cext.CMySQLCursorPrepared",
        "aio.cursor.MySQLCursorPrepared",
    )  # fmt: skip


def _classes(*names: str) -> list[type]:
    """Return the classes that this version of the library has."""
    classes = []
    for module, _, name in (name.rpartition(".") for name in names):
        with suppress(ImportError):
            classes.append(getattr(import_module(f"mysql.connector.{module}"), name))
    return classes


def _noting_prepared(watch: LibraryWatch) -> Any:
    """Return the steps of a cursor that prepares its statements, which no query shows."""

    def steps(original: Any, cursor: Any, operation: Any = "", *args: Any, **more: Any) -> Steps:
        send = partial(original, cursor, operation, *args, **more)
        connection = cursor._connection.get_self()  # it has a weak reference
        text = operation.decode() if isinstance(operation, bytes) else str(operation)
        return (yield from watch.noted(connection, text, send))

    return steps
