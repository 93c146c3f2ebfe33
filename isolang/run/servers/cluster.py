"""Several servers of our own that are one database."""

from __future__ import annotations

from itertools import count

from isolang.run.servers.network import Network
from isolang.run.servers.server import Server


class Cluster:
    """Servers, and the network between them.

    Attributes:
        nodes: the servers; the first one is the target's own, which the target stops.
        network: what they say to each other, where it goes through proxies; else ``None``.
    """

    def __init__(self, first: Server, size: int, user: str = "") -> None:
        """Make the folders of the others.

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
        """Give the node whose turn it is: clients are spread over all of them."""
        return self.nodes[next(self._next) % len(self.nodes)]

    def stop(self) -> None:
        """Stop all but the first one."""
        if self.network is not None:
            self.network.close()
        for node in self.nodes[1:]:
            node.stop()
