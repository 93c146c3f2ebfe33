"""Adapts isocheck's own in-memory database, with exact levels, for tests and simulations."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from isolang.run.adapter import BaseClient, BaseTarget
from isolang.run.families.versioned_store import Changes, VersionedStore
from isolang.run.operation import DELETED, bounds_of
from isolang.run.outcome import RolledBack
from isolang.run.target import Level


class Memory(BaseTarget):
    """An in-memory database, which all sessions in this process share."""

    name: ClassVar = "memory"
    levels: ClassVar[tuple[Level, ...]] = (
        Level(name="serializable", claims="sser", says="reads and writes checked at COMMIT"),
        Level(name="snapshot", claims="strong-si", says="writes checked at COMMIT"),
        Level(name="read committed", claims="pl-2", says="the newest committed version"),
        Level(name="read uncommitted", claims="pl-1", says="the newest version"),
    )
    mixes = ""
    lacks: ClassVar = frozenset({"savepoints", "processes"})
    lock: ClassVar = threading.Lock()

    def version(self) -> str:
        return "memory, the simulated database"

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        first = dict.fromkeys(registers) | {key: [] for key in lists}
        self.versions = VersionedStore(first)

    def connect(self) -> MemoryClient:
        return MemoryClient(self)

    def statement(self, operation: str, key: str, value: object) -> str:
        if operation == "scan":
            low, high = bounds_of(key)
            return f"select value between {low} and {high}"
        return f"{operation} {key}" + ("" if operation == "r" else f" {value}")


class MemoryClient(BaseClient):
    """A session on the in-memory database."""

    def __init__(self, target: Memory) -> None:
        self.target = target

    def begin(self, level: str) -> None:
        with self.target.lock:
            self.changes = Changes(self.target.versions, level)

    def read(self, key: str) -> Any:
        with self.target.lock:
            return self.changes.read(key)

    def write(self, key: str, value: Any) -> bool:
        with self.target.lock:
            there = bool(self.changes.read(key) != DELETED)
            if there:
                self.changes.write(key, value)
            return there

    def append(self, key: str, value: int) -> bool:
        with self.target.lock:
            self.changes.write(key, [*self.changes.read(key), value])
            return True

    def insert(self, key: str, value: int) -> None:
        with self.target.lock:
            if self.changes.read(key) != DELETED:
                raise RolledBack(f"{key} is there already")
            self.changes.write(key, value)

    def delete(self, key: str) -> bool:
        return self.write(key, DELETED)

    def scan(self, low: str, high: str) -> dict[str, Any]:
        with self.target.lock:
            return self.changes.scan(low, high)

    def select(self, low: int, high: int) -> dict[str, Any]:
        with self.target.lock:
            return self.changes.select(low, high)

    def change(self, low: int, high: int, value: int) -> list[str]:
        with self.target.lock:
            return self.changes.change(low, high, value)

    def commit(self) -> None:
        with self.target.lock:
            self.changes.commit()

    def rollback(self) -> None:
        with self.target.lock:
            self.changes.roll_back()
