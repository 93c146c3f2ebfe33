"""Runs a proxy that observes nothing, so that commands find a server as they find the observer's.

A server may listen only at a socket in a folder, or want TLS with a client's certificate, which not
all drivers can name in a URL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from isolang.observe.unseen import Unseen
from isolang.observe.wire.listener import Listener, Send

if TYPE_CHECKING:
    from isolang.observe.database import ObservedDatabase, Wire
    from isolang.observe.wire.address import ServerAddress

HERE = "127.0.0.1"
"""The address at which such a proxy listens."""


class _NoHistory(Struct):
    """A history for connections of which nothing is recorded."""

    unseen: Unseen


class UnobservedProxy:
    """A proxy in front of a server that records nothing."""

    def __init__(self, server: ServerAddress, database: ObservedDatabase) -> None:
        """Start listening at a free port.

        Raises:
            IsolangError: no port can be used.
        """
        history: Any = _NoHistory(Unseen())

        def wire(to_client: Send, to_server: Send) -> Wire:
            return database.wire(history, lambda _: None, to_client=to_client, to_server=to_server)

        self._server = server
        self._listener = Listener(server, wire, _do_nothing)
        self._listener.start(HERE, 0)

    def environment(self, name: str) -> dict[str, str]:
        """Return the environment variables that make a command connect through the proxy.

        Args:
            name: the variable with the URL.
        """
        return self._server.environment(HERE, self._listener.port, name)

    def stop(self) -> None:
        """Stop listening, and end all connections."""
        self._listener.stop()


async def _do_nothing() -> None:
    """Do nothing between two waits of the listener."""
