"""etcd's JSON gateway: keys and values are texts, requests are dictionaries as etcd names them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from http.client import HTTPConnection
from typing import Any, Final, TypeAlias

PATIENCE: Final = 10.0  # seconds for an answer

Request: TypeAlias = dict[str, Any]
Requests: TypeAlias = Sequence[Request]


class Gateway:
    """A connection.

    Attributes:
        open: whether it can be used; after an error what comes next over it may be an old answer.
    """

    def __init__(self, host: str, port: int) -> None:
        self._http = HTTPConnection(host, port, timeout=PATIENCE)
        self._http.connect()
        self.open = True

    def version(self) -> str:
        """The server's."""
        self._http.request("GET", "/version")
        return str(json.loads(self._http.getresponse().read())["etcdserver"])

    def call(self, path: str, body: Request) -> Request:
        """Send a request, such as ``kv/range``."""
        try:
            self._http.request("POST", f"/v3/{path}", json.dumps(body))
            answer = self._http.getresponse()
            found: Request = json.loads(answer.read())
        except Exception:
            self.open = False
            raise
        if answer.status != 200:
            raise OSError(f"etcd: {found.get('error', answer.status)}")
        return found

    def txn(self, compare: Requests, success: Requests, failure: Requests = ()) -> Request:
        """Send a transaction: by the comparisons, the one or the other."""
        return self.call("kv/txn", {"compare": compare, "success": success, "failure": failure})

    def exists(self, keys: Sequence[str]) -> str:
        """Give one of these keys that is there; empty if none is."""
        found = self.txn([], [get(key) for key in keys])["responses"]
        rows = [one["response_range"].get("kvs") for one in found]
        return next((key for key, row in zip(keys, rows, strict=True) if row), "")

    def claim(self, key: str, value: str) -> bool:
        """Write a key that is not there; false if it is."""
        return bool(self.txn([unchanged(key, 0)], [put(key, value)]).get("succeeded"))

    def swap(self, key: str, old: str, new: str) -> bool:
        """Write a key if it has the old value; false if it has not."""
        return bool(self.txn([has_value(key, old)], [put(key, new)]).get("succeeded"))

    def put(self, key: str, value: str) -> None:
        """Write a key."""
        self.txn([], [put(key, value)])

    def get(self, key: str) -> str:
        """Give the value of a key; empty if it is not there."""
        rows = self.call("kv/range", asked(key)).get("kvs", [])
        return value_of(rows[0]) if rows else ""

    def remove(self, key: str) -> None:
        """Delete a key, if it is there."""
        self.txn([], [delete(key)])

    def close(self) -> None:
        """Close it."""
        self._http.close()


def put(key: str, value: str) -> Request:
    """Part of a transaction: set a key."""
    return {"requestPut": {"key": _text(key), "value": _text(value)}}


def delete(key: str) -> Request:
    """Part of a transaction: remove a key."""
    return {"requestDeleteRange": {"key": _text(key)}}


def get(key: str) -> Request:
    """Part of a transaction: read a key."""
    return {"requestRange": asked(key)}


def asked(key: str) -> Request:
    """The body of ``kv/range`` for one key."""
    return {"key": _text(key)}


def has_value(key: str, value: str) -> Request:
    """A comparison: the key has this value."""
    return {"key": _text(key), "target": "VALUE", "result": "EQUAL", "value": _text(value)}


def unchanged(key: str, revision: int) -> Request:
    """A comparison: the key was last changed by this revision; 0: it is not there."""
    return {"key": _text(key), "target": "MOD", "result": "EQUAL", "modRevision": str(revision)}


def value_of(row: Request) -> str:
    """The value of a row of an answer."""
    return b64decode(row["value"]).decode()


def _text(text: str) -> str:
    return b64encode(text.encode()).decode()
