"""Sends requests as dictionaries to etcd's JSON gateway; keys and values are strings."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from http.client import HTTPConnection
from typing import Any, Final, TypeAlias

RESPONSE_TIMEOUT_S: Final = 10.0  # the time limit for a response

Request: TypeAlias = dict[str, Any]
Requests: TypeAlias = Sequence[Request]


class Gateway:
    """A connection to etcd's JSON gateway.

    Attributes:
        open: whether the connection is usable. After an error it is not, because the next response
            may belong to an earlier request.
    """

    def __init__(self, host: str, port: int) -> None:
        self._http = HTTPConnection(host, port, timeout=RESPONSE_TIMEOUT_S)
        self._http.connect()
        self.open = True

    def version(self) -> str:
        """Return the version reported by the server."""
        self._http.request("GET", "/version")
        return str(json.loads(self._http.getresponse().read())["etcdserver"])

    def call(self, path: str, body: Request) -> Request:
        """Send a request to a path such as ``kv/range``, and return the response."""
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
        """Send a transaction: do ``success`` if all comparisons hold, and ``failure`` otherwise."""
        return self.call("kv/txn", {"compare": compare, "success": success, "failure": failure})

    def exists(self, keys: Sequence[str]) -> str:
        """Return one of the keys that exist, or an empty string if none of them does."""
        found = self.txn([], [get(key) for key in keys])["responses"]
        rows = [one["response_range"].get("kvs") for one in found]
        return next((key for key, row in zip(keys, rows, strict=True) if row), "")

    def claim(self, key: str, value: str) -> bool:
        """Create a key and return true; if the key already exists, return false."""
        return bool(self.txn([unchanged(key, 0)], [put(key, value)]).get("succeeded"))

    def swap(self, key: str, old: str, new: str) -> bool:
        """Set a key to ``new`` if its value is ``old``; return false if it has another value."""
        return bool(self.txn([has_value(key, old)], [put(key, new)]).get("succeeded"))

    def put(self, key: str, value: str) -> None:
        """Write a value to a key."""
        self.txn([], [put(key, value)])

    def get(self, key: str) -> str:
        """Return the value of a key; if the key does not exist, return an empty string."""
        rows = self.call("kv/range", range_of(key)).get("kvs", [])
        return value_of(rows[0]) if rows else ""

    def remove(self, key: str) -> None:
        """Delete a key if it exists."""
        self.txn([], [delete(key)])

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


def put(key: str, value: str) -> Request:
    """Return the request that writes a key, as part of a transaction."""
    return {"requestPut": {"key": _text(key), "value": _text(value)}}


def delete(key: str) -> Request:
    """Return the request that deletes a key, as part of a transaction."""
    return {"requestDeleteRange": {"key": _text(key)}}


def get(key: str) -> Request:
    """Return the request that reads a key, as part of a transaction."""
    return {"requestRange": range_of(key)}


def range_of(key: str) -> Request:
    """Return the body of a ``kv/range`` request for a single key."""
    return {"key": _text(key)}


def has_value(key: str, value: str) -> Request:
    """Return the comparison that holds if a key has this value."""
    return {"key": _text(key), "target": "VALUE", "result": "EQUAL", "value": _text(value)}


def unchanged(key: str, revision: int) -> Request:
    """Return the comparison that holds if a key was last changed at a revision (0: never)."""
    return {"key": _text(key), "target": "MOD", "result": "EQUAL", "modRevision": str(revision)}


def value_of(row: Request) -> str:
    """Return the value in a row of a response, as decoded text."""
    return b64decode(row["value"]).decode()


def _text(text: str) -> str:
    return b64encode(text.encode()).decode()
