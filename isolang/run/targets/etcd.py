"""etcd 3, through its JSON gateway: reads, then one Txn that compares and puts."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import closing
from http.client import HTTPConnection
from typing import Any, ClassVar

from isolang.run.buffered import BufferedClient
from isolang.run.operation import DELETED
from isolang.run.outcome import Failure, Phase, RolledBack
from isolang.run.server import Server, free_port, program
from isolang.run.target import Address, Level, TargetError
from isolang.run.tokens import new_token


class Etcd:
    """A server; the keys of the history stand behind the prefix."""

    name: ClassVar = "etcd"
    levels: ClassVar = (
        Level(name="linearizable", claims="sser", says="range; txn: compare mod_revision, put"),
        Level(name="serializable", claims="ser", says="serializable range at one revision; txn"),
    )
    lacks: ClassVar = frozenset({"range reads", "savepoints"})
    server: Server | None = None
    proxied = False
    tokens = False

    def __init__(self, address: Address, prefix: str) -> None:
        self.prefix, self.address = prefix, address
        self.host, self.port = address.host, address.port or 2379
        self._made = False

    def start(self) -> None:
        if not self.host:
            daemon = program("etcd")
            if not daemon:
                hint = "install the package etcd-server, or give the URL of a server"
                raise TargetError(f"etcd: no server is installed; {hint}")
            server = self.server = Server("etcd", "etcd")
            self.host, self.port, peer = "127.0.0.1", free_port(), free_port()
            mine, other = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{peer}"
            server.start(
                [daemon, "--data-dir", os.path.join(server.folder, "data"), "--unsafe-no-fsync",
                 "--listen-client-urls", mine, "--advertise-client-urls", mine,
                 "--listen-peer-urls", other, "--initial-advertise-peer-urls", other,
                 "--initial-cluster", f"default={other}"],
                lambda: self.connect(direct=True).call("kv/range", {"key": _b("a")}),
            )  # fmt: skip
            server.proxied = self.proxied
        try:
            self.version()
        except (OSError, ValueError) as error:
            msg = f"{self.address}: no connection ({error}); is it running?"
            raise TargetError(msg) from None

    def version(self) -> str:
        http = HTTPConnection(self.host, self.port, timeout=10)
        http.request("GET", "/version")
        return f"etcd {json.loads(http.getresponse().read())['etcdserver']}"

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        self.lists = frozenset(lists)
        client = self.connect(direct=True)
        if client.call("kv/range", self._all() | {"limit": "1"}).get("kvs"):
            hint = "--table-prefix NAME gives other names"
            raise TargetError(f"etcd: there are keys {self.prefix}… already; {hint}")
        self._made = True
        keys = [*registers, *lists]
        for start in range(0, len(keys), 100):
            puts = [{"requestPut": {"key": _b(self.prefix + key), "value": _b(" ")}}
                    for key in keys[start : start + 100]]  # fmt: skip
            client.call("kv/txn", {"success": puts})

    def _all(self) -> dict[str, str]:
        """The range of all keys with the prefix."""
        low = self.prefix.encode()
        end = b64encode(low[:-1] + bytes([low[-1] + 1])).decode()
        return {"key": b64encode(low).decode(), "range_end": end}

    def connect(self, *, direct: bool = False) -> EtcdClient:
        where = (self.host, self.port)
        if self.server is not None and not direct:
            where = self.server.reach(where)
        client = EtcdClient(self, HTTPConnection(*where, timeout=10))
        client.http.connect()
        return client

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        refused = isinstance(error, RolledBack)
        return "aborted" if phase == "statement" or refused else "maybe"

    def statement(self, operation: str, key: str, value: object) -> str:
        if operation == "r":
            return f"range {self.prefix}{key}"
        if value == DELETED:
            return f"txn: deleteRange {self.prefix}{key}"
        return f"txn: put {self.prefix}{key} {value}"

    def remove(self) -> None:
        if self._made:
            self.connect(direct=True).call("kv/deleterange", self._all())
            self._made = False

    def close(self) -> None:
        if self.server is not None:
            self.server.stop()
        else:
            self.remove()


class EtcdClient(BufferedClient):
    """A connection; writes wait for the Txn, and are seen by the transaction's own reads before."""

    def __init__(self, target: Etcd, http: HTTPConnection) -> None:
        self.target, self.http = target, http
        self.open = True

    def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request to the gateway."""
        try:
            self.http.request("POST", f"/v3/{path}", json.dumps(body))
            answer = self.http.getresponse()
            found: dict[str, Any] = json.loads(answer.read())
        except Exception:
            self.open = False  # what comes next over it may answer this
            raise
        if answer.status != 200:
            raise OSError(f"etcd: {found.get('error', answer.status)}")
        return found

    def _begin(self, level: str) -> None:
        self.weak, self.revision = level == "serializable", 0
        self.swapping = False
        self.seen: dict[str, int] = {}

    def _fetch(self, key: str) -> Any:
        body: dict[str, Any] = {"key": _b(self.target.prefix + key)}
        if self.weak:
            body |= {"serializable": True, "revision": self.revision}
        found = self.call("kv/range", body)
        if self.weak and not self.revision:
            self.revision = int(found["header"]["revision"])
        rows = found.get("kvs", [])
        self.seen.setdefault(key, int(rows[0]["mod_revision"]) if rows else 0)
        if not rows:
            return DELETED
        text = b64decode(rows[0]["value"]).decode().split()
        if key in self.target.lists:
            return [int(one) for one in text]
        return int(text[0]) if text else None

    def swap(self, key: str, expected: int | None, value: int) -> bool:
        name, old = _b(self.target.prefix + key), _b(" " if expected is None else str(expected))
        self.swapping = True
        found = self.call("kv/txn", {
            "compare": [{"key": name, "target": "VALUE", "result": "EQUAL", "value": old}],
            "success": [{"requestPut": {"key": name, "value": _b(str(value))}}],
        })  # fmt: skip
        self.swapping = False
        return bool(found.get("succeeded"))

    def commit(self) -> None:
        if self.weak and not self.own:
            return  # what was read is one revision
        if not self.seen and not self.own:
            return
        compare = [{"key": _b(self.target.prefix + key), "target": "MOD", "result": "EQUAL",
                    "modRevision": str(seen)} for key, seen in self.seen.items()]  # fmt: skip
        puts = list(map(self._put, self.own))
        if self.own and self.target.tokens:
            self.token = self.target.prefix + new_token()
            compare.append(_absent(self.token))
            puts.append({"requestPut": {"key": _b(self.token), "value": _b("1")}})
        found = self.call("kv/txn", {"compare": compare, "success": puts})
        if not found.get("succeeded"):
            raise RolledBack("txn: a key that was read has changed")

    def _put(self, key: str) -> dict[str, Any]:
        value, name = self.own[key], _b(self.target.prefix + key)
        if value == DELETED:
            return {"requestDeleteRange": {"key": name}}
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        return {"requestPut": {"key": name, "value": _b(text or " ")}}

    def rollback(self) -> None:
        """Nothing was sent, but perhaps a comparison that has not answered."""
        if self.swapping:
            raise ConnectionError("the txn was sent, and has not answered")

    def usable(self) -> bool:
        return self.open

    def _has_committed(self, token: str) -> bool:
        # SOUND BECAUSE: the transaction compares its token; once ours is there, it fails.
        asked = {
            "compare": [_absent(token)],
            "success": [{"requestPut": {"key": _b(token), "value": _b("0")}}],
            "failure": [{"requestRange": {"key": _b(token)}}],
        }
        with closing(self.target.connect(direct=True)) as other:
            found = other.call("kv/txn", asked)
        if found.get("succeeded"):
            return False
        (row,) = found["responses"][0]["response_range"]["kvs"]
        return b64decode(row["value"]) == b"1"

    def close(self) -> None:
        self.http.close()


def _absent(key: str) -> dict[str, str]:
    return {"key": _b(key), "target": "CREATE", "result": "EQUAL", "createRevision": "0"}


def _b(text: str) -> str:
    return b64encode(text.encode()).decode()
