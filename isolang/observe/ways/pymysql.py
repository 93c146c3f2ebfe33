"""The way in for PyMySQL."""

from __future__ import annotations

from functools import partial
from typing import Any

from isolang.observe.ways.hooks import Hooks, Steps
from isolang.observe.ways.inside import PROXY_HOST, InsideProxy
from isolang.observe.ways.inside_mariadb import (
    MariaDBInsideProxy,
    connecting,
    goes_to_proxy,
    moved_attributes,
)
from isolang.observe.ways.library import LibraryWatch, text_of


class PyMySQL:
    """Implements :class:`isolang.observe.ways.library.Library` for PyMySQL."""

    name = "watch_pymysql"
    proxy: type[InsideProxy] = MariaDBInsideProxy

    def hook(self, hooks: Hooks, watch: LibraryWatch) -> None:
        """Replace the connecting of all connections, and note each statement."""
        from pymysql.connections import Connection
        from pymysql.constants import CLIENT

        original = Connection.connect

        def connect(connection: Any, sock: Any = None) -> Any:
            if sock is not None or not goes_to_proxy(watch, *self.address(connection)):
                return original(connection, sock)
            flags = connection.client_flag & ~CLIENT.SSL
            with connecting(watch, connection), moved_attributes(
                connection, host=PROXY_HOST, port=watch.proxy.port, unix_socket=None, ssl=False,
                _ssl_required=False, bind_address=None, client_flag=flags,
            ):  # fmt: skip
                return original(connection)

        hooks.replace(Connection, "connect", connect)
        hooks.replace_method(Connection, "query", noting_query(watch))

    def connections(self) -> tuple[type, ...]:
        """Return the classes of the library's connections."""
        from pymysql.connections import Connection

        return (Connection,)

    def backend(self, connection: Any) -> int:
        """Return the server's number of a connection; 0 if it is closed."""
        return int(connection.server_thread_id[0]) if connection.open else 0

    def is_pipelined(self, connection: Any) -> bool:
        """Return false, because PyMySQL waits for each answer."""
        return False

    def address(self, connection: Any) -> tuple[str, int]:
        """Return the host, or the path of the socket, and the port of a connection's server."""
        return connection.unix_socket or connection.host, connection.port


def noting_query(watch: LibraryWatch) -> Any:
    """Return the steps of a method of a connection whose argument is the text to send."""

    def steps(original: Any, connection: Any, query: Any = "", *args: Any, **more: Any) -> Steps:
        send = partial(original, connection, query, *args, **more)
        if watch.is_own():  # it is being opened
            return (yield send)
        text = query if isinstance(query, bytes | str) else bytes(query)
        return (yield from watch.noted(connection, text_of(text, connection), send))

    return steps
