"""Starts a MariaDB server whose log names all rows, for one observation."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import ClassVar, Final

from isolang.observe.log.mariadb import SERVER_OPTIONS
from isolang.observe.mariadb.address import MariaDBAddress, address_of
from isolang.run.address import Address
from isolang.run.targets.mariadb import MariaDB

DATABASE: Final = "test"
"""The database of a new server that applications find in their environment."""


class LoggingMariaDB(MariaDB):
    """A server whose log names all rows that change."""

    settings: ClassVar = MappingProxyType(SERVER_OPTIONS)


@contextmanager
def server_named(target: str) -> Iterator[MariaDBAddress]:
    """Yield the address of the server named by a target.

    If the target names no host, start a server on a port of its own, and stop it at the end.
    """
    address = Address.parse(target)
    if address.host:
        yield address_of(target)
        return
    made = LoggingMariaDB(address, "isocheck_")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    options = {"skip-networking": "0", "bind-address": "127.0.0.1", "port": str(port)}
    made.settings = MappingProxyType({**made.settings, **options})  # type: ignore[misc]
    try:
        made.start()
        started = MariaDBAddress(host="127.0.0.1", port=port, database=DATABASE)
        with closing(started.connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4")
        yield started
    finally:
        made.close()
