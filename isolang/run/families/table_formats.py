"""Provides base classes for table formats: a transaction reads a snapshot and writes one upsert.

A table format offers only single operations. A scan reads one version of the table. An upsert is
based on one version; if another commit intervenes, it fails or is retried. Therefore a transaction
scans the table at BEGIN. At COMMIT it performs at most one upsert or deletion, based on the scanned
version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from isolang.run.adapter import import_package
from isolang.run.families.embedded import EmbeddedClient, EmbeddedTarget
from isolang.run.operation import SeveralRows
from isolang.run.outcome import RolledBack


class TableTarget(EmbeddedTarget):
    """The base class for a table with a column ``k`` of keys and a column ``v`` of their texts."""

    tables: ClassVar[str] = "pyarrow"

    def rows(self, texts: Mapping[str, str]) -> Any:
        """Return an Arrow table with a row for each key and its text."""
        arrow = import_package(self.tables, self.name)
        return arrow.table({"k": list(texts), "v": list(texts.values())})

    def create(self, path: str, keys: Sequence[str]) -> None:
        """Create a table that maps each key to an empty string."""
        self.path = path
        self.create_table(self.rows(dict.fromkeys(keys, "")))

    def create_table(self, rows: Any) -> None:
        """Create a table that contains these rows."""
        raise NotImplementedError

    def statement(self, operation: str, key: str, value: object) -> str:
        """Return the call made by a client for a recorded operation, for explanations."""
        return super().statement(operation, key, value).replace("w ", "upsert ", 1)


class TableClient(EmbeddedClient):
    """The base class for a session; ``table`` is the version read by its transaction."""

    def begin(self, level: str) -> None:
        """Scan the newest version of the table."""
        self.own_writes: dict[str, str | None] = {}
        self.table = self.open()
        self.seen: dict[str, list[str]] = {}
        found = self.scan_rows()
        for key, text in zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True):
            self.seen.setdefault(key, []).append(text)

    def read(self, key: str) -> Any:
        """Return the value of a key; if the key has several rows, return the values of all rows."""
        rows = self.seen.get(key, [])
        if key in self.own_writes or len(rows) < 2:
            return super().read(key)
        return SeveralRows(tuple(self.value(key, text) for text in rows))

    def get(self, key: str) -> str | None:
        """Return the transaction's own text for a key, or else the scanned text."""
        return (
            self.own_writes[key]
            if key in self.own_writes
            else next(iter(self.seen.get(key, [])), None)
        )

    def put(self, key: str, text: str | None) -> None:
        """Buffer a text until the upsert at COMMIT."""
        self.own_writes[key] = text

    def scan_texts(self, low: str, high: str) -> dict[str, str]:
        """Return the texts of all keys from ``low`` to ``high``, including own writes."""
        every = {key: self.get(key) for key in {*self.seen, *self.own_writes} if low <= key <= high}
        return {key: text for key, text in every.items() if text is not None}

    def commit(self) -> None:
        """Send the buffered writes as one upsert or one deletion.

        Raises:
            RolledBack: the transaction both deletes and writes, which would take two operations.
        """
        gone = [key for key, text in self.own_writes.items() if text is None]
        texts = {key: text for key, text in self.own_writes.items() if text is not None}
        if gone and texts:
            raise RolledBack("one operation cannot both delete rows and write rows")
        if gone:
            self.delete_rows(gone)
        elif texts:
            self.upsert(self.target.rows(texts))  # type: ignore[attr-defined]

    def rollback(self) -> None:
        """Discard the buffered writes."""
        self.own_writes = {}

    # --- methods that adapters define ---

    def open(self) -> Any:
        """Return the newest version of the table."""
        raise NotImplementedError

    def scan_rows(self) -> Any:
        """Return all rows of the opened version as an Arrow table."""
        raise NotImplementedError

    def upsert(self, rows: Any) -> None:
        """Update the rows of existing keys and insert rows for new keys, in one call."""
        raise NotImplementedError

    def delete_rows(self, keys: Sequence[str]) -> None:
        """Delete the rows of these keys in one call."""
        raise NotImplementedError
