"""What the adapters of key-value stores share: writes that wait for one request at the end."""

from __future__ import annotations

from typing import Any

from isolang.run.operation import DELETED
from isolang.run.outcome import Outcome, RolledBack
from isolang.run.target import TargetError
from isolang.run.tokens import ask


class BufferedClient:
    """A client that sends its writes with COMMIT, and sees them before in its own reads.

    Attributes:
        own: the values of the keys that the transaction has written.
        appended: the elements that it appends to lists.
        token: what it leaves; empty for nothing.
    """

    def begin(self, level: str) -> None:
        """Begin a transaction; nothing is sent."""
        self.own: dict[str, Any] = {}
        self.appended: dict[str, list[int]] = {}
        self.token = ""
        self._begin(level)

    def _begin(self, level: str) -> None:
        raise NotImplementedError

    def read(self, key: str) -> Any:
        """Give what the transaction has written, or what is there."""
        return self.own[key] if key in self.own else self._fetch(key)

    def _fetch(self, key: str) -> Any:
        raise NotImplementedError

    def write(self, key: str, value: int) -> bool:
        """Keep a value to be written."""
        self.own[key] = value
        return True

    def append(self, key: str, value: int) -> bool:
        """Keep an element to be appended."""
        self.own[key] = [*self.read(key), value]
        self.appended.setdefault(key, []).append(value)
        return True

    def insert(self, key: str, value: int) -> None:
        """Keep a value to be written where there is none."""
        if self.read(key) != DELETED:
            raise RolledBack(f"{key} is there already")
        self.own[key] = value

    def delete(self, key: str) -> bool:
        """Keep in mind to delete a key."""
        there = bool(self.read(key) != DELETED)
        if there:
            self.own[key] = DELETED
        return there

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Refuse: the target lacks range reads."""
        raise TargetError("range reads are not offered; use a workload without them")

    def savepoint(self) -> None:
        """Refuse: the target lacks savepoints."""
        raise TargetError("writes wait for the end; there is nothing to undo")

    rollback_to_savepoint = savepoint

    def waits(self) -> bool | None:
        """Say that nobody knows whether a request waits for another transaction."""
        return None

    def resolve(self) -> Outcome:
        """Ask for the transaction's token."""
        return ask(self.token, self._has_committed)

    def _has_committed(self, token: str) -> bool:
        raise NotImplementedError
