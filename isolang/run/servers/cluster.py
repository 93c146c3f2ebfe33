"""Represents a cluster: several started servers that form one database."""

from __future__ import annotations

from itertools import count

from isolang.run.servers.network import Network
from isolang.run.servers.server import Server


class Cluster:
    """The servers of a cluster, with the network between them.

    Attributes:
        nodes: all servers; the target is responsible for stopping the first server.
        network: the network between the servers, if it runs through proxies; otherwise ``None``.
    """

    def __init__(self, first: Server, size: int, user: str = "") -> None:
        """Create all servers except the first, without starting them."""
        others = [Server(f"{first.name} ({number})", user) for number in range(1, size)]
        self.nodes: tuple[Server, ...] = (first, *others)
        self.network: Network | None = None
        self._next = count()

    def next_node(self) -> Server:
        """Return the next node in turn, to spread clients over all nodes."""
        return self.nodes[next(self._next) % len(self.nodes)]

    def stop(self) -> None:
        """Stop all nodes except the first, and close the network."""
        if self.network is not None:
            self.network.close()
        for node in self.nodes[1:]:
            node.stop()
