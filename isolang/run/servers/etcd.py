"""Starts etcd, if it is installed: a single server or the members of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from isolang.errors import TargetError
from isolang.run.servers.cluster import Cluster
from isolang.run.servers.network import Network
from isolang.run.servers.server import Server, find_program, free_port

HostAndPort = tuple[str, int]

_TIMEOUTS: Final = (
    "--heartbeat-interval=50",
    "--election-timeout=500",
)  # short, because all servers run on one machine


def start(
    nodes: Sequence[Server],
    options: Mapping[str, str],
    answers: Callable[[HostAndPort], object],
    cluster: Cluster | None = None,
) -> tuple[HostAndPort, ...]:
    """Start the servers on free ports of the loopback interface, and return their addresses."""
    daemon = find_program("etcd")
    if not daemon:
        hint = "install the package etcd-server, or give the URL of a server"
        raise TargetError(f"etcd: no server is installed; {hint}")
    where = [("127.0.0.1", free_port()) for _ in nodes]
    peers = [("127.0.0.1", free_port()) for _ in nodes]
    heard = peers
    if cluster is not None:
        cluster.network = Network(nodes, peers)
        heard = [proxy.address for proxy in cluster.network.proxies]
    every = ",".join(f"n{i}={_url(place)}" for i, place in enumerate(heard))
    begun = 0

    def ready(place: HostAndPort) -> None:
        if begun == len(nodes):  # without a majority, no server responds
            answers(place)

    for i, node in enumerate(nodes):
        begun += 1
        own = _url(where[i])
        node.start(
            [daemon, "--name", f"n{i}", "--data-dir", os.path.join(node.folder, "data"),
             "--unsafe-no-fsync", "--listen-client-urls", own, "--advertise-client-urls", own,
             "--listen-peer-urls", _url(peers[i]), "--initial-advertise-peer-urls", _url(heard[i]),
             "--initial-cluster", every, *(_TIMEOUTS if cluster is not None else ()),
             *(f"--{name}={value}" for name, value in options.items())],
            partial(ready, where[i]),
        )  # fmt: skip
    return tuple(where)


def _url(place: HostAndPort) -> str:
    return f"http://{place[0]}:{place[1]}"
