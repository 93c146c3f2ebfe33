"""Clusters: several started servers that form one database."""

from __future__ import annotations

from itertools import count

from isolang.run.servers.network import Network
from isolang.run.servers.server import Server


class Cluster:
    """Servers, and the network between them.

    Attributes:
        nodes: the servers; the target itself stops the first one.
        network: the network between them, if it goes through proxies; else ``None``.
    """

    def __init__(self, first: Server, size: int, user: str = "") -> None:
        """Create the folders of the other servers.

        Args:
            first: a server that was made and not started.
            size: how many there are to be.
            user: who runs them.
        """
        others = [Server(f"{first.name} ({number})", user) for number in range(1, size)]
        self.nodes: tuple[Server, ...] = (first, *others)
        self.network: Network | None = None
        self._next = count()

    def turn(self) -> Server:
        """Return the next node in turn, so that clients are spread over all nodes."""
        return self.nodes[next(self._next) % len(self.nodes)]

    def stop(self) -> None:
        """Stop all nodes except the first one."""
        if self.network is not None:
            self.network.close()
        for node in self.nodes[1:]:
            node.stop()
