"""A small database in memory, whose levels are known: for tests, and to simulate workloads on.

It keeps versions. A transaction reads, by its level: ``serializable`` and ``snapshot`` the versions
of the moment of its BEGIN, ``read committed`` the newest committed ones, ``read uncommitted`` the
newest of all. COMMIT refuses what would break the level: at ``snapshot`` a key that another
transaction wrote since BEGIN, at ``serializable`` also one that was only read; lists that another
transaction has appended to at every level. So ``serializable`` is so in the order of COMMIT, which
is real time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from isolang.run.operation import DELETED
from isolang.run.outcome import Failure, Outcome, Phase, RolledBack
from isolang.run.target import Address, Client, Level, TargetError


class Memory:
    """The database."""

    name: ClassVar = "memory"
    tokens = False
    levels: ClassVar = (
        Level(name="serializable", claims="sser", says="reads and writes checked at COMMIT"),
        Level(name="snapshot", claims="strong-si", says="writes checked at COMMIT"),
        Level(name="read committed", claims="pl-2", says="the newest committed version"),
        Level(name="read uncommitted", claims="pl-1", says="the newest version"),
    )

    lacks: ClassVar = frozenset({"savepoints", "processes"})

    def __init__(self, address: Address, prefix: str) -> None:
        self.address = address
        self.lock = threading.Lock()
        self.now = 0
        self.versions: dict[str, list[tuple[int, Any]]] = {}
        self.dirty: dict[str, list[tuple[MemoryClient, Any]]] = {}

    def start(self) -> None:
        """Nothing has to be started."""

    def version(self) -> str:
        return "memory, the simulated database"

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        self.versions |= {key: [(0, None)] for key in registers}
        self.versions |= {key: [(0, [])] for key in lists}

    def connect(self) -> Client:
        return MemoryClient(self)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        """Say that what raises is never applied."""
        return "aborted"

    def statement(self, operation: str, key: str, value: object) -> str:
        return f"{operation} {key}" + ("" if operation == "r" else f" {value}")

    def remove(self) -> None:
        self.versions, self.dirty = {}, {}

    def close(self) -> None:
        """Nothing has to be stopped."""


class MemoryClient:
    """A session."""

    def __init__(self, target: Memory) -> None:
        self.target = target

    def begin(self, level: str) -> None:
        with self.target.lock:
            self.level, self.began = level, self.target.now
            self.seen: set[str] = set()
            self.written: dict[str, Any] = {}

    def read(self, key: str) -> Any:
        with self.target.lock:
            return self._read(key)

    def _read(self, key: str) -> Any:
        if key in self.written:
            return self.written[key]
        versions = self.target.versions[key]
        self.seen.add(key)
        if self.level == "read uncommitted" and (dirty := self.target.dirty.get(key)):
            return dirty[-1][1]
        if self.level in ("serializable", "snapshot"):
            return next(value for at, value in reversed(versions) if at <= self.began)
        return versions[-1][1]

    def _write(self, key: str, value: Any) -> None:
        self.written[key] = value
        if self.level == "read uncommitted":
            self.target.dirty.setdefault(key, []).append((self, value))

    def write(self, key: str, value: int) -> bool:
        with self.target.lock:
            if self._read(key) == DELETED:
                return False
            self._write(key, value)
            return True

    def append(self, key: str, value: int) -> bool:
        with self.target.lock:
            if any(client is not self for client, _ in self.target.dirty.get(key, ())):
                raise RolledBack("another transaction is appending")
            self._write(key, [*self._read(key), value])
            return True

    def insert(self, key: str, value: int) -> None:
        with self.target.lock:
            if self._read(key) != DELETED:
                raise RolledBack(f"{key} is there already")
            self._write(key, value)

    def delete(self, key: str) -> bool:
        with self.target.lock:
            if self._read(key) == DELETED:
                return False
            self._write(key, DELETED)
            return True

    def scan(self, low: str, high: str) -> dict[str, Any]:
        with self.target.lock:
            found = {key: self._read(key) for key in self.target.versions if low <= key <= high}
            return {key: value for key, value in found.items() if value != DELETED}

    def savepoint(self) -> None:
        raise TargetError("memory: there are no savepoints")

    rollback_to_savepoint = savepoint

    def commit(self) -> None:
        with self.target.lock:
            versions = self.target.versions
            lists = {key for key, value in self.written.items() if isinstance(value, list)}
            checked = {
                "serializable": self.seen | set(self.written), "snapshot": set(self.written),
            }.get(self.level, lists)  # fmt: skip
            if any(versions[key][-1][0] > self.began for key in checked):
                self._forget()
                raise RolledBack("another transaction has changed what this one used")
            self.target.now += 1
            for key, value in self.written.items():
                versions[key].append((self.target.now, value))
            self._forget()

    def rollback(self) -> None:
        with self.target.lock:
            self._forget()

    def _forget(self) -> None:
        for key in self.written:
            kept = [one for one in self.target.dirty.get(key, ()) if one[0] is not self]
            if self.level == "read uncommitted":
                self.target.dirty[key] = kept

    def resolve(self) -> Outcome:
        return "maybe"

    def waits(self) -> bool | None:
        return None

    def usable(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing has to be closed."""
