"""Sends requests to etcd's JSON gateway. Keys and values are texts; requests are dictionaries."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from http.client import HTTPConnection
from typing import Any, Final, TypeAlias

PATIENCE: Final = 10.0  # seconds for a response

Request: TypeAlias = dict[str, Any]
Requests: TypeAlias = Sequence[Request]


class Gateway:
    """A connection to the gateway.

    Attributes:
        open: whether the connection is usable; after an error, the next response may be for an old
            request.
    """

    def __init__(self, host: str, port: int) -> None:
        self._http = HTTPConnection(host, port, timeout=PATIENCE)
        self._http.connect()
        self.open = True

    def version(self) -> str:
        """Return the server's version."""
        self._http.request("GET", "/version")
        return str(json.loads(self._http.getresponse().read())["etcdserver"])

    def call(self, path: str, body: Request) -> Request:
        """Send a request, such as ``kv/range``, and return its response."""
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
        """Send a transaction: ``success`` if all comparisons hold, and otherwise ``failure``."""
        return self.call("kv/txn", {"compare": compare, "success": success, "failure": failure})

    def exists(self, keys: Sequence[str]) -> str:
        """Return one of the keys that exists; empty if none does."""
        found = self.txn([], [get(key) for key in keys])["responses"]
        rows = [one["response_range"].get("kvs") for one in found]
        return next((key for key, row in zip(keys, rows, strict=True) if row), "")

    def claim(self, key: str, value: str) -> bool:
        """Write a key that does not exist; return false if it exists."""
        return bool(self.txn([unchanged(key, 0)], [put(key, value)]).get("succeeded"))

    def swap(self, key: str, old: str, new: str) -> bool:
        """Write a key if it has the old value; return false if it has another value."""
        return bool(self.txn([has_value(key, old)], [put(key, new)]).get("succeeded"))

    def put(self, key: str, value: str) -> None:
        """Write a key."""
        self.txn([], [put(key, value)])

    def get(self, key: str) -> str:
        """Return the value of a key; empty if it does not exist."""
        rows = self.call("kv/range", range_of(key)).get("kvs", [])
        return value_of(rows[0]) if rows else ""

    def remove(self, key: str) -> None:
        """Delete a key, if it exists."""
        self.txn([], [delete(key)])

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


def put(key: str, value: str) -> Request:
    """Return the part of a transaction that sets a key."""
    return {"requestPut": {"key": _text(key), "value": _text(value)}}


def delete(key: str) -> Request:
    """Return the part of a transaction that deletes a key."""
    return {"requestDeleteRange": {"key": _text(key)}}


def get(key: str) -> Request:
    """Return the part of a transaction that reads a key."""
    return {"requestRange": range_of(key)}


def range_of(key: str) -> Request:
    """Return the body of ``kv/range`` for one key."""
    return {"key": _text(key)}


def has_value(key: str, value: str) -> Request:
    """Return the comparison that a key has this value."""
    return {"key": _text(key), "target": "VALUE", "result": "EQUAL", "value": _text(value)}


def unchanged(key: str, revision: int) -> Request:
    """Return the comparison that a revision changed a key last; 0 if the key does not exist."""
    return {"key": _text(key), "target": "MOD", "result": "EQUAL", "modRevision": str(revision)}


def value_of(row: Request) -> str:
    """Return the value of a row in a response."""
    return b64decode(row["value"]).decode()


def _text(text: str) -> str:
    return b64encode(text.encode()).decode()
