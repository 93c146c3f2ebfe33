"""Adapts isocheck's own in-memory database, with exact levels, for tests and simulations."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from isolang.run.adapter import BaseClient, BaseTarget
from isolang.run.families.versioned_store import StoreTransaction, VersionedStore
from isolang.run.operation import (
    DELETED,
    SelectWhere,
    bounds_in,
    child_key,
    condition_in,
    keys_in,
    parent_key,
)
from isolang.run.outcome import RolledBack
from isolang.run.target import Level


class Memory(BaseTarget):
    """An in-memory database shared by all sessions in this process."""

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
    offers = frozenset(
        {"skip locked", "upsert", "merge", "rows at once", "two ranges", "nulls", "cascades"}
    )

    def version(self) -> str:
        return "memory, the simulated database"

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        first = dict.fromkeys(registers) | {key: [] for key in lists}
        self.versions = VersionedStore(first)

    def connect(self) -> MemoryClient:
        return MemoryClient(self)

    def statement(self, operation: str, key: str, value: object) -> str:
        if operation == "scan":
            if condition := condition_in(key):
                keys = keys_in(key)
                return f"select value {condition} and key between {keys[0]} and {keys[-1]}"
            low, high = bounds_in(key)
            keys = keys_in(key)
            within = f" and key between {keys[0]} and {keys[-1]}" if keys else ""
            return f"select value between {low} and {high}{within}"
        return f"{operation} {key}" + ("" if operation == "r" else f" {value}")


class MemoryClient(BaseClient):
    """A session on the in-memory database."""

    def __init__(self, target: Memory) -> None:
        self.target = target

    def begin(self, level: str) -> None:
        with self.target.lock:
            self.changes = StoreTransaction(self.target.versions, level)

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
        self.insert_rows(((key, value),))

    def insert_rows(self, rows: Sequence[tuple[str, int]]) -> None:
        with self.target.lock:
            for key, value in rows:
                if self.changes.read(key) != DELETED:
                    raise RolledBack(f"{key} already exists")
                if (parent := parent_key(key)) and self.changes.read(parent) == DELETED:
                    raise RolledBack(f"{parent} does not exist")
                self.changes.write(key, value)

    def insert_or_update(self, key: str, value: int, *, merge: bool = False) -> None:
        with self.target.lock:
            self.changes.read(key)
            self.changes.write(key, value)

    def delete(self, key: str) -> bool:
        with self.target.lock:
            if self.changes.read(key) == DELETED:
                return False
            for one in (key, *self.cascaded(key)):
                self.changes.write(one, DELETED)
            return True

    def cascaded(self, key: str) -> list[str]:
        """Return the child rows deleted along with a row."""
        if parent_key(key):
            return []
        return list(self.changes.scan(child_key(key, ""), child_key(key, "\U0010ffff")))

    def scan(self, low: str, high: str) -> dict[str, Any]:
        with self.target.lock:
            return self.changes.scan(low, high)

    def select(self, low: int, high: int) -> dict[str, Any]:
        with self.target.lock:
            return self.changes.select(low, high)

    def within(self, low: int, high: int, first: str, last: str) -> dict[str, Any]:
        found = self.select(low, high)
        return {key: value for key, value in found.items() if first <= key <= last}

    def clear(self, key: str) -> bool:
        with self.target.lock:
            there = bool(self.changes.read(key) != DELETED)
            if there:
                self.changes.write(key, None)
            return there

    def where(self, where: SelectWhere) -> dict[str, Any]:
        with self.target.lock:
            return self.changes.where(where)

    def take(self, low: int, high: int) -> dict[str, Any]:
        with self.target.lock:
            return self.changes.take(low, high)

    def remove(self, low: int, high: int) -> list[str]:
        with self.target.lock:
            return self.changes.remove(low, high)

    def change(self, low: int, high: int, value: int) -> list[str]:
        with self.target.lock:
            return self.changes.change(low, high, value)

    def commit(self) -> None:
        with self.target.lock:
            self.changes.commit()

    def rollback(self) -> None:
        with self.target.lock:
            self.changes.roll_back()
