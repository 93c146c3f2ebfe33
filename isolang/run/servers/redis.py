"""Starts a Redis server, if Redis is installed, and a replica of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isolang.errors import TargetError
from isolang.run.servers.proxy import Proxy
from isolang.run.servers.server import Server, find_program, free_port


def start(
    server: Server, options: Mapping[str, str], answers: Callable[[], object], *, port: int = 0
) -> None:
    """Start the server on a socket in its folder, and on a port if a replica needs one."""
    daemon = find_program("redis-server")
    if not daemon:
        hint = "install the package redis-server, or give the URL of a server"
        raise TargetError(f"redis: no server is installed; {hint}")
    # The operating system holds all acknowledged writes, so they survive if the server is killed.
    settings = {"appendonly": "yes", "appendfsync": "no", **options}
    server.start(
        [daemon, "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", socket_of(server),
         "--unixsocketperm", "777", "--save", "", "--dir", server.folder,
         *(word for name, value in settings.items() for word in (f"--{name}", value))],
        answers,
    )  # fmt: skip


def start_replica(
    replica: Server, options: Mapping[str, str], port: int, answers: Callable[[], object]
) -> tuple[Proxy, int]:
    """Start a replica that follows a running server through a proxy."""
    link, own = Proxy(("127.0.0.1", port)), free_port()
    host, at = link.address
    more = {"replicaof": f"{host} {at}", "repl-diskless-sync-delay": "0"}
    start(replica, {**options, **more}, answers, port=own)
    return link, own


def socket_of(server: Server) -> str:
    """Return the path of the socket on which the server listens."""
    return f"{server.folder}/socket"
