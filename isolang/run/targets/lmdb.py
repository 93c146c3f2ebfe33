"""Adapts LMDB, which allows one writer at a time, while readers see snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from isolang.run.adapter import import_package
from isolang.run.families.embedded import EmbeddedClient, EmbeddedTarget
from isolang.run.target import Level


class LMDB(EmbeddedTarget):
    """An LMDB database in a memory-mapped file."""

    name: ClassVar = "lmdb"
    distribution: ClassVar = "lmdb"
    levels: ClassVar = (
        Level(
            name="write",
            claims="sser",
            says="begin(write=True)",
            promise="Writes are fully serialized; "
            "only one write transaction may be active at a time",
            source="http://www.lmdb.tech/doc/",
        ),
    )

    def import_engine(self) -> None:
        self.api = import_package("lmdb", self.name)

    def create(self, path: str, keys: Sequence[str]) -> None:
        size = 1 << 30
        self.database = self.api.open(path, map_size=size, sync=False, max_readers=1000)
        with self.database.begin(write=True) as all_at_once:
            for key in keys:
                all_at_once.put(key.encode(), b"")

    def connect(self) -> LMDBClient:
        return LMDBClient(self)

    def close_database(self) -> None:
        self.database.close()


class LMDBClient(EmbeddedClient):
    """A session in which every transaction is a write transaction."""

    target: LMDB
    transaction: Any = None

    def waits(self) -> bool | None:
        return None  # a writer may wait for another writer

    def begin(self, level: str) -> None:
        self.transaction = self.target.database.begin(write=True)

    def get(self, key: str) -> str | None:
        found = self.transaction.get(key.encode())
        return None if found is None else found.decode()

    def put(self, key: str, text: str | None) -> None:
        if text is None:
            self.transaction.delete(key.encode())
        else:
            self.transaction.put(key.encode(), text.encode())

    def scan_texts(self, low: str, high: str) -> dict[str, str]:
        found, cursor = dict[str, str](), self.transaction.cursor()
        if cursor.set_range(low.encode() or b"\0"):
            for key, text in cursor:
                if key > high.encode():
                    break
                found[key.decode()] = text.decode()
        return found

    def commit(self) -> None:
        self.transaction.commit()

    def rollback(self) -> None:
        self.transaction.abort()
