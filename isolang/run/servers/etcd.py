"""etcd: an installed server."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from isolang.run.servers.server import Server, free_port, program
from isolang.run.target import TargetError


def start(
    server: Server, options: Mapping[str, str], answers: Callable[[tuple[str, int]], object]
) -> tuple[str, int]:
    """Start the server on free ports of the loopback interface; give where its gateway listens.

    Args:
        server: it runs there.
        options: flags of the server.
        answers: raises as long as it does not, at this host and port.
    """
    daemon = program("etcd")
    if not daemon:
        hint = "install the package etcd-server, or give the URL of a server"
        raise TargetError(f"etcd: no server is installed; {hint}")
    where, peer = ("127.0.0.1", free_port()), free_port()
    mine, other = f"http://127.0.0.1:{where[1]}", f"http://127.0.0.1:{peer}"
    server.start(
        [daemon, "--data-dir", os.path.join(server.folder, "data"), "--unsafe-no-fsync",
         "--listen-client-urls", mine, "--advertise-client-urls", mine,
         "--listen-peer-urls", other, "--initial-advertise-peer-urls", other,
         "--initial-cluster", f"default={other}",
         *(f"--{name}={value}" for name, value in options.items())],
        lambda: answers(where),
    )  # fmt: skip
    return where
