"""Starts a MariaDB server, if MariaDB is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from isolang.errors import TargetError
from isolang.run.servers.server import Server, find_program


def start(server: Server, options: Mapping[str, str], answers: Callable[[], object]) -> None:
    """Initialize the data, and start the server on a socket in its folder, without passwords."""
    daemon, install = find_program("mariadbd", "/usr/sbin"), find_program("mariadb-install-db")
    if not daemon or not install:
        hint = "install the package mariadb-server, or give the URL of a server"
        raise TargetError(f"mariadb: no server is installed; {hint}")
    # Several servers would exhaust the machine's native asynchronous I/O.
    common = ["--no-defaults", f"--datadir={os.path.join(server.folder, 'data')}",
              f"--tmpdir={server.folder}", "--innodb-use-native-aio=0"]  # fmt: skip
    server.run([install, *common, "--skip-test-db", "--auth-root-authentication-method=normal"])
    more = [f"--{name}={value}" for name, value in options.items()]
    server.start(
        [daemon, *common, "--skip-networking", f"--socket={socket_of(server)}",
         "--innodb-flush-log-at-trx-commit=2", *more],
        answers,
    )  # fmt: skip


def socket_of(server: Server) -> str:
    """Return the path of the socket on which the server listens."""
    return f"{server.folder}/socket"
