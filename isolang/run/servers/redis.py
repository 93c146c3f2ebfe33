"""Redis: an installed server."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isolang.run.servers.server import Server, program
from isolang.run.target import TargetError


def start(server: Server, options: Mapping[str, str], answers: Callable[[], object]) -> None:
    """Start the server on a socket in its folder.

    Args:
        server: it runs there.
        options: settings of the server.
        answers: raises as long as it does not.
    """
    daemon = program("redis-server")
    if not daemon:
        hint = "install the package redis-server, or give the URL of a server"
        raise TargetError(f"redis: no server is installed; {hint}")
    # What was answered is with the system, so that it outlives the server.
    settings = {"appendonly": "yes", "appendfsync": "no", **options}
    server.start(
        [daemon, "--port", "0", "--unixsocket", socket_of(server), "--unixsocketperm", "777",
         "--save", "", "--dir", server.folder,
         *(word for name, value in settings.items() for word in (f"--{name}", value))],
        answers,
    )  # fmt: skip


def socket_of(server: Server) -> str:
    """Where the server listens."""
    return f"{server.folder}/socket"
