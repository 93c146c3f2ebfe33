"""Routes the network between the nodes of a cluster through proxies, so that it can be partitioned.

Each node has a proxy, through which the other nodes reach it. The operating system reveals which
node has opened a connection, because the socket belongs to a process of that node. During a
partition, messages between separated nodes are held back. They are delivered when the partition
ends, because TCP would resend them then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Literal, TypeAlias

from isolang.run.servers.keeper import process_tree
from isolang.run.servers.proxy import Direction, Proxy
from isolang.run.servers.server import Server

Partition: TypeAlias = Literal["halves", "one-node", "one-way"]


class Network:
    """The network between the nodes of a cluster, built from proxies."""

    def __init__(self, nodes: Sequence[Server], where: Sequence[tuple[str, int]]) -> None:
        """Start a proxy for each node."""
        self._nodes = nodes
        self._cut: frozenset[tuple[int, int]] = frozenset()
        self.proxies = tuple(
            Proxy(place, is_blocked=partial(self._link, to)) for to, place in enumerate(where)
        )

    def partition(self, kind: Partition, random: Random) -> str:
        """Cut the network between two sets of nodes, and return a description of the cut."""
        size = len(self.proxies)
        order = random.sample(range(size), size)
        here = order[: 1 if kind != "halves" else size // 2]
        there = [node for node in range(size) if node not in here]
        cut = {(a, b) for a in here for b in there}
        if kind != "one-way":
            cut |= {(b, a) for a, b in cut}
        self._cut = frozenset(cut)
        arrow = "-x->" if kind == "one-way" else "|"
        return f"{sorted(here)} {arrow} {there}"

    def heal(self) -> None:
        """End the partition, so that all nodes can reach each other again."""
        self._cut = frozenset()

    def close(self) -> None:
        """Close all proxies and their connections."""
        for one in self.proxies:
            one.close()

    def _link(self, to: int, local: int) -> Callable[[Direction], bool]:
        """Return a function that tells whether a port's connection to a node is currently cut."""
        source: list[int | None] = []  # the node that owns the port, once it is known

        def is_blocked(direction: Direction) -> bool:
            if not self._cut:
                return False
            if not source:
                source.append(self._owner(local))
            return ((source[0], to) if direction == "requests" else (to, source[0])) in self._cut

        return is_blocked

    def _owner(self, port: int) -> int | None:
        """Return the node whose process has opened a port; ``None`` if it is unknown."""
        socket = f"socket:[{_inode(port)}]"
        for node, server in enumerate(self._nodes):
            for process in process_tree(server.process):
                folder = f"/proc/{process}/fd"
                try:
                    files = os.listdir(folder)
                except OSError:
                    continue
                for file in files:
                    try:
                        if os.readlink(f"{folder}/{file}") == socket:
                            return node
                    except OSError:
                        continue
        return None


def _inode(port: int) -> str:
    """Return the inode of the connected socket on a port of the loopback interface."""
    end = f"0100007F:{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as lines:
        for line in lines:
            fields = line.split()
            if fields[1] == end and fields[3] == "01":
                return fields[9]
    return ""
