"""Runs the proxy in front of a MariaDB server inside an application's process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

from isolang.errors import IsolangError
from isolang.observe.mariadb.address import MariaDBAddress, address_of, is_mariadb
from isolang.observe.mariadb.observer import MariaDBObserver
from isolang.observe.mariadb.tls import TLSSettings, tls_settings
from isolang.observe.unseen import Unseen
from isolang.observe.ways.inside import MOST_ROWS, PROXIES, PROXY_HOST, InsideProxy, same_host
from isolang.observe.ways.library import LibraryWatch

ANY_SOCKET: Final = "/"
"""The path of a socket that is not known, which may be that of any server."""
_ANY_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class MariaDBInsideProxy(InsideProxy):
    """The proxy in front of a MariaDB server, and the history of all that goes through it.

    A history is that of a server: all of its databases.
    """

    server: MariaDBAddress

    def _new_observer(self, names: Mapping[str, str] | None) -> MariaDBObserver:
        return MariaDBObserver(
            self.server,
            self.path,
            listen=(PROXY_HOST, 0),
            most_rows=MOST_ROWS,
            names=names,
            notes=self.notes,
        )

    @staticmethod
    def server_of(who: str, conninfo: str, parameters: Mapping[str, Any]) -> MariaDBAddress:
        """Return the address of a server, from a URL or the arguments of a driver's ``connect``.

        Raises:
            IsolangError: an argument is wrong.
        """
        return mariadb_server_of(who, conninfo, parameters)

    def _start_observer(self) -> None:
        with closing(self.server.connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute("SELECT @@socket, @@port")
            self._socket, self._port = cursor.fetchone()
        self._observer.start()

    def refused(self) -> bool:
        """Return whether a transaction was rolled back because it met another."""
        return bool(self._observer.history.refused)

    def transactions(self) -> int:
        """Return how many transactions have ended."""
        return self._ended if self.is_over else int(self._observer.history.outcomes.total())

    def unseen(self) -> Unseen:
        """Return the counts of activity that was not recorded.

        The log tells what was not seen, so the history is completed first.
        """
        last = self._completed
        ended = 0 if last is None else last[2]
        if not self.is_over and ended != self.transactions():
            self.complete()
        return super().unseen()

    # --- where connections go ---

    def serves(self, host: str, port: int) -> bool:
        """Return whether an address is that of the proxy's server."""
        if host == ANY_SOCKET:
            return True
        if host.startswith("/"):
            with suppress(OSError):
                return os.path.samefile(host, self._socket)
            return host in (self._socket, self.server.host)
        here = _ANY_LOCAL if self.server.host.startswith("/") else {self.server.host}
        is_here = host in here or any(same_host(host, name) for name in here)
        return is_here and int(port) in (self._port, self.server.port)

    def is_for(self, host: str, port: int, database: str) -> bool:
        """Return whether a server is the one that this proxy was started for."""
        return not self.is_over and self.serves(host, port)


@contextmanager
def moved_attributes(connection: Any, **changed: Any) -> Iterator[None]:
    """Change attributes of a connection while it connects, so that it connects to a proxy."""
    kept = {name: getattr(connection, name) for name in changed}
    vars(connection).update(changed)
    try:
        yield
    finally:
        vars(connection).update(kept)


@contextmanager
def connecting(watch: LibraryWatch, connection: Any) -> Iterator[None]:
    """Note that a connection is being opened through the proxy, which its first statements know."""
    watch.connected(connection)
    try:
        yield
    except BaseException:
        PROXIES.pop(connection, None)
        raise


def goes_to_proxy(watch: LibraryWatch, host: str, port: int) -> bool:
    """Return whether a connection to an address must go through a watch's proxy."""
    proxy = watch.proxy
    return not watch.is_own() and not proxy.is_over and proxy.serves(host, port)


# The arguments of drivers, by what they mean. All others do not concern the way to the server.
_MEANINGS: Final = {
    "host": "host", "port": "port", "unix_socket": "socket", "user": "user",
    "username": "user", "password": "password", "passwd": "password", "database": "database",
    "db": "database",
}  # fmt: skip


def mariadb_server_of(who: str, url: str, parameters: Mapping[str, Any]) -> MariaDBAddress:
    """Return the address of a MariaDB server, from a URL or the arguments of ``connect``.

    Args:
        who: the name of the watch, for messages.
        url: ``mysql://user@host/database``; empty if the arguments name the server.
        parameters: the arguments of ``connect`` in any of the libraries.

    Raises:
        IsolangError: the text is not a URL of MariaDB, or an argument is wrong.
    """
    if url:
        if not is_mariadb(url) or "//" not in url:
            raise IsolangError(
                f"{who}: not a URL of MariaDB (got {url!r}, expected mysql://user@host/database)"
            )
        if parameters:
            raise IsolangError(
                f"{who}: both a URL and arguments (got {', '.join(parameters)}); hint: give one"
            )
        return address_of(url)
    named = {_MEANINGS[name]: v for name, v in parameters.items() if name in _MEANINGS and v}
    host = str(named.get("socket") or named.get("host") or "localhost")
    return MariaDBAddress(
        host=host,
        port=int(named.get("port") or 3306),
        user=str(named.get("user") or "root"),
        password=_text(named.get("password", "")),
        database=_text(named.get("database", "")),
        tls=_tls_of(who, parameters),
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _tls_of(who: str, parameters: Mapping[str, Any]) -> TLSSettings:
    """Return what the arguments of a driver's ``connect`` say about encryption."""
    options = {
        name: str(parameters[name])
        for name in ("ssl_mode", "ssl_ca", "ssl_cert", "ssl_key")
        if parameters.get(name)
    }
    inner = parameters.get("ssl")
    checks_name = bool(parameters.get("ssl_verify_identity"))
    if isinstance(inner, Mapping):
        options |= {f"ssl_{k}": str(inner[k]) for k in ("ca", "cert", "key") if inner.get(k)}
        checks_name |= bool(inner.get("check_hostname"))
    elif inner:
        options.setdefault("ssl_mode", "REQUIRED")
    if parameters.get("ssl_disabled"):
        return TLSSettings()
    if options and checks_name:
        options["ssl_mode"] = "VERIFY_IDENTITY"
    if options.get("ssl_mode") == "PREFERRED":
        del options["ssl_mode"]
    return tls_settings(options, who)
