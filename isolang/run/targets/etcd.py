"""Adapts etcd 3 through its JSON gateway.

A transaction reads key by key, and sends its writes at COMMIT, in one Txn that first compares the
versions read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from isolang.run.drivers import etcd
from isolang.run.families.key_value import BufferedClient, KeyValueTarget
from isolang.run.operation import DELETED
from isolang.run.outcome import RolledBack
from isolang.run.servers import etcd as servers
from isolang.run.servers.cluster import Cluster
from isolang.run.servers.server import Server
from isolang.run.target import Level

if TYPE_CHECKING:
    from pathlib import Path


class Etcd(KeyValueTarget):
    """An etcd server or cluster."""

    name: ClassVar = "etcd"
    levels: ClassVar = (
        Level(name="linearizable", claims="sser", says="range; txn: compare mod_revision, put"),
        Level(name="serializable", claims="ser", says="serializable range at one revision; txn"),
    )
    partitions: ClassVar = True
    where: tuple[tuple[str, int], ...] = ()
    ordered: ClassVar = True  # each response contains the mod_revision of its rows

    def account(self, path: Path) -> tuple[str, ...]:
        """Return no remarks; the clients have already recorded all versions."""
        return ()

    def start_server(self, server: Server) -> None:
        answers = lambda where: etcd.Gateway(*where).call("kv/range", etcd.range_of("a"))  # noqa: E731
        options = dict(self.address.options)
        members = int(options.pop("members", "1"))
        self.cluster = Cluster(server, members) if members > 1 else None
        nodes = (server,) if self.cluster is None else self.cluster.nodes
        self.where = servers.start(nodes, options, answers, self.cluster)

    def open(self, *, direct: bool) -> EtcdClient:
        if self.server is None:
            a = self.place(direct=direct)
            return EtcdClient(self, etcd.Gateway(a.host, a.port or 2379))
        node, where = self.server, self.where[0]
        if self.cluster is not None and not direct:
            node = self.cluster.next_node()
            where = self.where[self.cluster.nodes.index(node)]
        return EtcdClient(self, etcd.Gateway(*(where if direct else node.client_address(where))))

    def version(self) -> str:
        size = "" if self.cluster is None else f", {len(self.cluster.nodes)} members"
        return super().version() + size

    def statement(self, operation: str, key: str, value: object) -> str:
        name = self.prefix + key
        if operation == "r":
            return f"range {name}"
        return f"txn: deleteRange {name}" if value == DELETED else f"txn: put {name} {value}"


class EtcdClient(BufferedClient):
    """A connection to one member of the cluster."""

    raw: etcd.Gateway

    def _begin(self, level: str) -> None:
        self.weak, self.revision = level == "serializable", 0
        self.row_version, self.installed = None, {}
        self.seen: dict[str, int] = {}

    def _fetch(self, key: str) -> Any:
        body = etcd.range_of(self.target.prefix + key)
        if self.weak:
            body |= {"serializable": True, "revision": self.revision}
        found = self.raw.call("kv/range", body)
        if self.weak and not self.revision:
            self.revision = int(found["header"]["revision"])
        rows = found.get("kvs", [])
        self.seen.setdefault(key, int(rows[0]["mod_revision"]) if rows else 0)
        self.row_version = None
        if not rows:
            return DELETED
        if self.target.reports_versions and key not in self.target.lists:
            self.row_version = int(rows[0]["mod_revision"])
        numbers = [int(one) for one in etcd.value_of(rows[0]).split()]
        return numbers if key in self.target.lists else next(iter(numbers), None)

    def _swap(self, name: str, expected: int | None, value: int) -> bool:
        old = etcd.has_value(name, " " if expected is None else str(expected))
        found = self.raw.txn([old], [etcd.put(name, str(value))])
        self.row_version = (
            int(found["header"]["revision"]) if self.target.reports_versions else None
        )
        return bool(found.get("succeeded"))

    def commit(self) -> None:
        if not self.own_writes and (self.weak or not self.seen):
            return  # all reads saw the same revision
        prefix = self.target.prefix
        compare = [etcd.unchanged(prefix + key, seen) for key, seen in self.seen.items()]
        changes = [self._change(prefix + key, value) for key, value in self.own_writes.items()]
        if token := self.new_token():
            compare.append(etcd.unchanged(token, 0))
            changes.append(etcd.put(token, "1"))
        found = self.raw.txn(compare, changes)
        if not found.get("succeeded"):
            raise RolledBack("txn: a key that was read has changed")
        if self.target.reports_versions:  # all puts in a transaction get the same revision
            revision = int(found["header"]["revision"])
            self.installed = {
                key: revision for key in self.own_writes if key not in self.target.lists
            }

    def _change(self, name: str, value: Any) -> etcd.Request:
        if value == DELETED:
            return etcd.delete(name)
        numbers = value if isinstance(value, list) else [] if value is None else [value]
        return etcd.put(name, " ".join(map(str, numbers)) or " ")

    def usable(self) -> bool:
        return self.raw.open

    def claim_token(self, token: str) -> bool:
        unless = [etcd.unchanged(token, 0)]
        found = self.raw.txn(unless, [etcd.put(token, "0")], [etcd.get(token)])
        if found.get("succeeded"):
            return False
        return etcd.value_of(found["responses"][0]["response_range"]["kvs"][0]) == "1"
