"""Provides adapters of table formats, whose transactions read a snapshot and write by one upsert.

A table format has single operations: a scan of one version, and an upsert based on one version,
which is refused or repeated if another commit came in between. Here a transaction is one scan at
BEGIN, and at most one upsert or deletion at COMMIT, which is based on the scanned version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from isolang.run.adapter import package
from isolang.run.families.embedded import EmbeddedClient, EmbeddedTarget
from isolang.run.operation import Several
from isolang.run.outcome import RolledBack


class TableTarget(EmbeddedTarget):
    """A table with a column ``k`` for keys and a column ``v`` for texts."""

    tables: ClassVar[str] = "pyarrow"

    def rows(self, texts: Mapping[str, str]) -> Any:
        """Return an Arrow table of the rows."""
        arrow = package(self.tables, self.name)
        return arrow.table({"k": list(texts), "v": list(texts.values())})

    def create(self, path: str, keys: Sequence[str]) -> None:
        """Create a table in which each key has an empty text."""
        self.path = path
        self.make(self.rows(dict.fromkeys(keys, "")))

    def make(self, rows: Any) -> None:
        """Create a table with these rows."""
        raise NotImplementedError

    def statement(self, operation: str, key: str, value: object) -> str:
        """Return the call for a recorded operation, to show it."""
        return super().statement(operation, key, value).replace("w ", "upsert ", 1)


class TableClient(EmbeddedClient):
    """A session, in which ``table`` is the version that the transaction reads."""

    def begin(self, level: str) -> None:
        """Scan the table at its newest version."""
        self.own: dict[str, str | None] = {}
        self.table = self.open()
        self.seen: dict[str, list[str]] = {}
        found = self.scanned()
        for key, text in zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True):
            self.seen.setdefault(key, []).append(text)

    def read(self, key: str) -> Any:
        """Return the value of a key, or the values of all its rows if it has several."""
        rows = self.seen.get(key, [])
        if key in self.own or len(rows) < 2:
            return super().read(key)
        return Several(tuple(self.value(key, text) for text in rows))

    def get(self, key: str) -> str | None:
        """Return the text that the transaction has written, or otherwise the scanned text."""
        return self.own[key] if key in self.own else next(iter(self.seen.get(key, [])), None)

    def put(self, key: str, text: str | None) -> None:
        """Buffer a text for the upsert."""
        self.own[key] = text

    def texts(self, low: str, high: str) -> dict[str, str]:
        """Return the scanned texts of a range of keys, with the transaction's own writes."""
        every = {key: self.get(key) for key in {*self.seen, *self.own} if low <= key <= high}
        return {key: text for key, text in every.items() if text is not None}

    def commit(self) -> None:
        """Send the upsert or the deletion.

        Raises:
            RolledBack: the transaction has both deletions and writes.
        """
        gone = [key for key, text in self.own.items() if text is None]
        texts = {key: text for key, text in self.own.items() if text is not None}
        if gone and texts:
            raise RolledBack("one operation cannot delete rows and write others")
        if gone:
            self.drop(gone)
        elif texts:
            self.upsert(self.target.rows(texts))  # type: ignore[attr-defined]

    def rollback(self) -> None:
        """Discard the buffered writes."""
        self.own = {}

    # --- adapters define these ---

    def open(self) -> Any:
        """Return the table at its newest version."""
        raise NotImplementedError

    def scanned(self) -> Any:
        """Return the rows of the table as an Arrow table."""
        raise NotImplementedError

    def upsert(self, rows: Any) -> None:
        """Update existing rows by key and insert new rows, by one call."""
        raise NotImplementedError

    def drop(self, keys: Sequence[str]) -> None:
        """Delete rows by key, by one call."""
        raise NotImplementedError
