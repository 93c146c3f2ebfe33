"""The way in for mysqlclient, whose module is MySQLdb."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from isolang.errors import IsolangError
from isolang.observe.ways.hooks import Hooks
from isolang.observe.ways.inside import PROXY_HOST, InsideProxy
from isolang.observe.ways.inside_mariadb import (
    ANY_SOCKET,
    MariaDBInsideProxy,
    connecting,
    goes_to_proxy,
)
from isolang.observe.ways.library import LibraryWatch
from isolang.observe.ways.pymysql import noting_query

_POSITIONS: Final = ("host", "user", "password", "database", "port", "unix_socket")
_SYNONYMS: Final = {"passwd": "password", "db": "database"}
_OF_THE_WAY: Final = frozenset({"host", "port", "unix_socket", "ssl", "ssl_mode", "named_pipe"})
# Where the client library expects the socket of a server on its machine.
_SOCKETS: Final = ("/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock")


class Mysqlclient:
    """Implements :class:`isolang.observe.ways.library.Library` for mysqlclient."""

    name = "watch_mysqlclient"
    proxy: type[InsideProxy] = MariaDBInsideProxy

    def hook(self, hooks: Hooks, watch: LibraryWatch) -> None:
        """Replace the connecting of all connections, and note each statement.

        Raises:
            IsolangError: mysqlclient is not installed.
        """
        try:
            import MySQLdb.connections
        except ImportError:
            raise IsolangError(
                "watch_mysqlclient: mysqlclient is not installed; hint: pip install mysqlclient, "
                "which needs the package libmariadb-dev"
            ) from None
        connection_class = MySQLdb.connections.Connection
        original = connection_class.__init__

        def begin(connection: Any, *args: Any, **options: Any) -> Any:
            named = {
                _SYNONYMS.get(name, name): value
                for name, value in {**dict(zip(_POSITIONS, args, strict=False)), **options}.items()
            }
            if len(args) > len(_POSITIONS) or not goes_to_proxy(watch, *_address(named)):
                return original(connection, *args, **options)
            rest = {name: value for name, value in named.items() if name not in _OF_THE_WAY}
            with connecting(watch, connection):
                return original(connection, host=PROXY_HOST, port=watch.proxy.port, **rest)

        hooks.replace(connection_class, "__init__", begin)
        hooks.replace_method(connection_class, "query", noting_query(watch))

    def connections(self) -> tuple[type, ...]:
        """Return the classes of the library's connections."""
        from MySQLdb.connections import Connection

        return (Connection,)

    def backend(self, connection: Any) -> int:
        """Return the server's number of a connection; 0 if it is closed."""
        return int(connection.thread_id()) if connection.open else 0

    def is_pipelined(self, connection: Any) -> bool:
        """Return false, because mysqlclient waits for each answer."""
        return False

    def address(self, connection: Any) -> tuple[str, int]:
        """Return the host and the port of a connection's server; an empty host if it is closed."""
        if not connection.open:
            return "", 0
        host = connection.get_host_info().partition(" via ")[0]
        return (ANY_SOCKET, 0) if host == "Localhost" else (host, connection.port)


def _address(options: Mapping[str, Any]) -> tuple[str, int]:
    """Return the host, or the path of the socket, and the port that ``connect`` names."""
    file = options.get("read_default_file")
    settings = _settings_in(file, options.get("read_default_group") or "client") if file else {}
    socket = options.get("unix_socket") or settings.get("socket")
    host = options.get("host") or settings.get("host") or "localhost"
    if host == "localhost":  # which means the socket
        return str(socket or _default_socket()), 0
    return str(host), int(options.get("port") or settings.get("port") or 3306)


def _settings_in(file: str, group: str) -> Mapping[str, str]:
    """Return the settings of a group in a file of options."""
    from pymysql.optionfile import Parser

    settings = Parser(strict=False)
    settings.read(os.path.expanduser(file))
    return dict(settings[group]) if settings.has_section(group) else {}


@cache
def _default_socket() -> str:
    return next(filter(os.path.exists, _SOCKETS), _SOCKETS[0])
