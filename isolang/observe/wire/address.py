"""Parses a server address, and opens connections to the server."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final
from urllib.parse import quote
from weakref import WeakSet

from msgspec import Struct

from isolang.errors import IsolangError, message_in_one_line

_SSL_REQUEST: Final = b"\0\0\0\10\4\xd2\x16\x2f"
CONNECTS_ITSELF: Final[ContextVar[bool]] = ContextVar("observer connects itself", default=False)
"""Whether a connection that is being opened belongs to the observer, not to the application."""
OWN_CONNECTIONS: Final[WeakSet[Any]] = WeakSet()
"""The observer's own connections."""
_CONNECT_SECONDS: Final = 30  # how many seconds the server may take to accept a connection

# Schemes of URLs of other databases, which the proxy does not understand.
_OTHERS: Final = frozenset({"sqlite", "duckdb", "redis", "etcd", "mongodb"})


class ServerAddress(Struct, frozen=True, kw_only=True):
    """The address of a server.

    Attributes:
        conninfo: the connection string for the observer's own connections through
            ``psycopg.connect``.
        password: the password; empty if there is none.
        tls: ``require``, ``verify-ca`` or ``verify-full`` if the proxy connects applications to the
            server over TLS; otherwise empty.
        root: the file with the root certificates, for ``verify-ca`` and ``verify-full``.
        certificate: the file with the client's certificate; empty if it has none.
        key: the file with the certificate's key; empty if the certificate's file contains it.
    """

    conninfo: str
    host: str
    port: int
    user: str = ""
    password: str = ""
    database: str = ""
    tls: str = ""
    root: str = ""
    certificate: str = ""
    key: str = ""

    def environment(self, host: str, port: int, name: str) -> dict[str, str]:
        """Return the environment variables that make a command connect to the proxy."""
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        user = f"{quote(self.user, safe='')}{secret}"
        more = {"PGPASSWORD": self.password} if self.password else {}
        return {
            **os.environ, "PGHOST": host, "PGPORT": str(port), "PGUSER": self.user, **more,
            "PGDATABASE": self.database, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable",
            name: f"postgresql://{user}@{host}:{port}/{quote(self.database, safe='')}",
        }  # fmt: skip

    def connect(self, database: str = "") -> Any:
        """Open a connection for the observer; by default, to the address's database.

        Raises:
            IsolangError: the database cannot be reached.
        """
        import psycopg

        more = {"dbname": database} if database else {}
        before = CONNECTS_ITSELF.set(True)
        try:
            made = psycopg.connect(self.conninfo, autocommit=True, **more)  # type: ignore[arg-type]
        except psycopg.Error as error:
            what = message_in_one_line(error)
            raise IsolangError(
                f"observe: cannot connect to the database (got {what}); hint: name it as for "
                "psql: postgresql://user@host:5432/database"
            ) from None
        finally:
            CONNECTS_ITSELF.reset(before)
        OWN_CONNECTIONS.add(made)
        return made

    async def open_connection(self, protocol: Callable[[], asyncio.Protocol]) -> Any:
        """Open a connection on behalf of an application.

        Raises:
            OSError: the server cannot be reached, or does not offer TLS although the address
                requires it.
            TimeoutError: the server does not answer.
        """
        loop = asyncio.get_running_loop()
        if self.host.startswith("/"):
            path = f"{self.host}/.s.PGSQL.{self.port}"
            return (await loop.create_unix_connection(protocol, path))[1]
        stream = await asyncio.wait_for(self._connect_socket(), _CONNECT_SECONDS)
        context = self._tls_context() if self.tls else None
        name = self.host if context else None
        made = loop.create_connection(protocol, sock=stream, ssl=context, server_hostname=name)
        return (await made)[1]

    async def _connect_socket(self) -> socket.socket:
        """Connect to the server and request TLS; the caller performs the TLS handshake."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        one = socket.socket(family, kind, protocol)
        one.setblocking(False)
        try:
            await loop.sock_connect(one, address)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                await loop.sock_sendall(one, _SSL_REQUEST)
                if await loop.sock_recv(one, 1) != b"S":
                    raise OSError("the server does not offer TLS")
        except BaseException:
            one.close()
            raise
        return one

    def _tls_context(self) -> ssl.SSLContext:
        """Return the settings for checking the server's certificate."""
        file = "" if self.root == "system" else self.root
        context = ssl.create_default_context(cafile=file or None)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key or None)
        context.check_hostname = self.tls == "verify-full"
        if self.tls == "require":
            context.verify_mode = ssl.CERT_NONE
        return context


def address_of(url: str) -> ServerAddress:
    """Return the address in a PostgreSQL URL.

    Raises:
        IsolangError: the text is not a PostgreSQL URL, or the URL names no host.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    scheme, _, rest = url.partition("://")
    plain = f"{scheme.partition('+')[0]}://{rest}"
    try:
        if scheme.partition("+")[0] not in ("postgres", "postgresql"):
            raise psycopg.ProgrammingError("not a PostgreSQL URL")
        reported = conninfo_to_dict(plain)
    except psycopg.Error as error:
        hint = "postgresql://user@host:5432/database, or postgres for a new server"
        if scheme.partition("+")[0] in _OTHERS:
            hint = "for another database, the application records its transactions: docs/record.md"
        raise IsolangError(f"{url}: {message_in_one_line(error)}; hint: {hint}") from None
    host = str(reported.get("host") or reported.get("hostaddr") or "")
    if not host or "," in host:
        raise IsolangError(
            f"{url}: wrong number of hosts (expected one); hint: "
            "postgresql://user@host:5432/database"
        )
    mode = str(reported.get("sslmode") or "")
    user = str(reported.get("user") or getpass.getuser())
    return ServerAddress(
        conninfo=plain,
        host=host,
        port=int(reported.get("port") or 5432),
        user=user,
        password=str(reported.get("password") or ""),
        database=str(reported.get("dbname") or user),
        tls=mode if mode in ("require", "verify-ca", "verify-full") else "",
        root=str(reported.get("sslrootcert") or ""),
    )
