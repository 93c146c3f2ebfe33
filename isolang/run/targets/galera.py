"""Adapts MariaDB with Galera: clients use all of three started nodes, or the nodes in a URL."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from isolang.run.servers import galera as servers
from isolang.run.servers.cluster import Cluster
from isolang.run.servers.mariadb import socket_of
from isolang.run.servers.server import Server
from isolang.run.targets.mariadb import MariaDB, MariaDBClient


class GaleraClient(MariaDBClient):
    """A connection to one node of the cluster."""

    def waits(self) -> bool | None:
        return None  # a statement may wait for a transaction on another node


class Galera(MariaDB):
    """A Galera cluster of MariaDB nodes."""

    name: ClassVar = "galera"
    # The nodes do not exchange transactions' reads, so no level is serializable across nodes.
    levels: ClassVar = tuple(
        replace(level, claims="si") if level.claims == "ser" else level for level in MariaDB.levels
    )
    client: ClassVar = GaleraClient

    def start_server(self, server: Server) -> None:
        options = dict(self.address.options)
        self.cluster = Cluster(server, int(options.pop("nodes", "3")), self.server_user)
        servers.start(self.cluster.nodes, options, self._in_step)
        with self._connect("mysql", direct=True) as raw:
            raw.cursor().execute("CREATE DATABASE isocheck")

    def _in_step(self, node: Server) -> None:
        with self.connect_to(socket_of(node), "mysql") as raw:
            cursor = raw.cursor()
            cursor.execute("SHOW STATUS LIKE 'wsrep_local_state_comment'")
            ((_, state),) = cursor.fetchall()
            if state != "Synced":
                raise ConnectionError(f"the node is {state}")

    def version(self) -> str:
        sql = "SHOW STATUS LIKE 'wsrep_provider_version'"
        ((_, provider),) = self.admin().execute(sql, ()).fetchall()
        self.admin().raw.rollback()
        return f"{super().version()}, Galera {provider.partition('(')[0]}, {self.size()} nodes"

    def size(self) -> int:
        """Return the current number of nodes in the cluster."""
        sql = "SHOW STATUS LIKE 'wsrep_cluster_size'"
        ((_, size),) = self.admin().execute(sql, ()).fetchall()
        self.admin().raw.rollback()
        return int(size)
