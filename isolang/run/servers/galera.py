"""Starts a Galera cluster: MariaDB servers that replicate to each other on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from glob import glob

from isolang.errors import TargetError
from isolang.run.servers.mariadb import socket_of
from isolang.run.servers.server import Server, find_program, free_port

# With these settings, the cluster excludes a silent node after two seconds.
_TIMEOUTS = "evs.keepalive_period=PT0.2S;evs.inactive_check_period=PT0.1S;" \
         "evs.suspect_timeout=PT1S;evs.inactive_timeout=PT2S"  # fmt: skip

_JOIN_TIMEOUT_S = 60.0  # the time limit for a node to receive all data and join


def start(
    nodes: Sequence[Server],
    options: Mapping[str, str],
    answers: Callable[[Server], object],
) -> None:
    """Initialize the first node's data, and start all nodes one after another."""
    daemon, install = find_program("mariadbd", "/usr/sbin"), find_program("mariadb-install-db")
    library = next(iter(glob("/usr/lib*/galera*/libgalera_smm.so")), "")
    if not (daemon and install and library and find_program("rsync")):
        hint = "install the packages mariadb-server, galera-4 and rsync, or give the nodes' URL"
        raise TargetError(f"galera: no server is installed; {hint}")
    ports = [free_port() for _ in nodes]
    others = ",".join(f"127.0.0.1:{port}" for port in ports)
    more = [f"--{name}={value}" for name, value in options.items()]
    for number, (node, port) in enumerate(zip(nodes, ports, strict=True)):
        data = os.path.join(node.folder, "data")
        common = ["--no-defaults", f"--datadir={data}", f"--tmpdir={node.folder}",
                  "--innodb-use-native-aio=0", "--innodb-log-file-size=16M"]  # fmt: skip
        if number == 0:
            quiet = "--auth-root-authentication-method=normal"
            node.run([install, *common, "--skip-test-db", quiet])
        else:  # the other nodes get their data from the first node
            node.run(["cp", "-r", os.path.join(nodes[0].folder, "empty"), data])
        if number == 0:
            node.run(["cp", "-r", data, os.path.join(node.folder, "empty")])
        own = (
            f"gmcast.listen_addr=tcp://127.0.0.1:{port};ist.recv_addr=127.0.0.1:{free_port()};"
            f"gcache.size=32M;{_TIMEOUTS}"
        )
        command = [
            daemon, *common, "--skip-networking", f"--socket={socket_of(node)}",
            "--innodb-flush-log-at-trx-commit=2", "--wsrep-on=ON", f"--wsrep-provider={library}",
            f"--wsrep-cluster-address=gcomm://{others}", f"--wsrep-provider-options={own}",
            "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", f"--wsrep-node-name=n{number}",
            "--wsrep-node-address=127.0.0.1", "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=127.0.0.1:{free_port()}", *more,
        ]  # fmt: skip
        first = ["--wsrep-new-cluster"] if number == 0 else []
        node.start(
            [*command, *first], partial(answers, node), again=command, patience=_JOIN_TIMEOUT_S
        )
