"""Parses the address of a MariaDB server, and opens connections to it."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from isolang.errors import IsolangError, message_in_one_line
from isolang.observe.mariadb.streams import PacketStream
from isolang.observe.mariadb.tls import TLSSettings, tls_settings
from isolang.observe.wire.address import CONNECTS_ITSELF, OWN_CONNECTIONS
from isolang.run.adapter import import_package
from isolang.run.address import Address

SCHEMES: Final = ("mariadb", "mysql")
_LOCAL: Final = frozenset({"127.0.0.1", "::1", "localhost"})
# The errors of a server that lets nobody, or not this role, connect without encryption.
_PERHAPS_TLS: Final = frozenset({1045, 3159})
_CONNECT_SECONDS: Final = 30  # how many seconds the server may take to accept a connection


class MariaDBAddress(Struct, frozen=True, kw_only=True):
    """The address of a server.

    Attributes:
        host: a host name, or the path of the server's socket.
        user: the role of applications, and of the observer's own connections.
        tls: how the proxy and the observer encrypt their connections to the server.
    """

    host: str
    port: int = 3306
    user: str = "root"
    password: str = ""
    database: str = ""
    tls: TLSSettings = TLSSettings()

    def environment(self, host: str, port: int, name: str) -> dict[str, str]:
        """Return the environment variables that make a command connect to the proxy."""
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        user = f"{quote(self.user, safe='')}{secret}"
        return {
            **os.environ, "MYSQL_HOST": host, "MYSQL_TCP_PORT": str(port), "MYSQL_USER": self.user,
            "MYSQL_PWD": self.password, "MYSQL_PASSWORD": self.password,
            "MYSQL_DATABASE": self.database,
            name: f"mysql://{user}@{host}:{port}/{quote(self.database, safe='')}",
        }  # fmt: skip

    def connect(self) -> Any:
        """Open a connection for the observer.

        Raises:
            IsolangError: the database cannot be reached.
        """
        pymysql = import_package("pymysql", "mariadb")
        is_socket = self.host.startswith("/")
        where = {"unix_socket": self.host} if is_socket else {"host": self.host, "port": self.port}
        # Encryption, for which PyMySQL reads all certificates of the system, protects nothing here.
        is_local = is_socket or self.host in _LOCAL
        encryption = {"ssl": self.tls.context()} if self.tls else {"ssl_disabled": is_local}
        before = CONNECTS_ITSELF.set(True)
        try:
            made = pymysql.connect(
                user=self.user, password=self.password, charset="utf8mb4", autocommit=True,
                init_command="SET time_zone='+00:00', sql_mode=''",
                connect_timeout=_CONNECT_SECONDS, **encryption, **where,
            )  # fmt: skip
        except pymysql.Error as error:
            hint = "name it as mariadb://user@host:3306/database"
            if not self.tls and error.args and error.args[0] in _PERHAPS_TLS:
                hint = "if the password is right, the server may require ?ssl-mode=REQUIRED"
            raise IsolangError(
                f"observe: cannot connect to the database (got {message_in_one_line(error)}); "
                f"hint: {hint}"
            ) from None
        finally:
            CONNECTS_ITSELF.reset(before)
        OWN_CONNECTIONS.add(made)
        return made

    @property
    def certified_name(self) -> str:
        """The name that the server's certificate must have; a socket is one of this machine."""
        return "localhost" if self.host.startswith("/") else self.host

    async def open_connection(self, stream: PacketStream) -> None:
        """Connect a stream to the server on behalf of an application.

        Raises:
            OSError: the server cannot be reached.
        """
        loop = asyncio.get_running_loop()
        if self.host.startswith("/"):
            connecting = loop.create_unix_connection(lambda: stream, self.host)
        else:
            connecting = loop.create_connection(lambda: stream, self.host, self.port)
        await asyncio.wait_for(connecting, _CONNECT_SECONDS)


def is_mariadb(target: str) -> bool:
    """Return whether a target is a MariaDB server: a URL, or the name alone for a new server."""
    return target.partition(":")[0].partition("+")[0].lower() in SCHEMES


def address_of(url: str) -> MariaDBAddress:
    """Return the address in a URL.

    Raises:
        IsolangError: the URL names no host, or options that the proxy does not have.
    """
    parsed = Address.parse(url)
    if not parsed.host or parsed.nodes:
        raise IsolangError(
            f"{parsed}: wrong number of hosts (expected one); hint: "
            "mariadb://user@host:3306/database"
        )
    tls = tls_settings(parsed.options, str(parsed))
    return MariaDBAddress(
        host=parsed.host, port=parsed.port or 3306, user=parsed.user or "root",
        password=parsed.password, database=parsed.database, tls=tls,
    )  # fmt: skip
