"""Finds the rows on disk that a predicate read may match; each compared column has an index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from isolang import _native

if TYPE_CHECKING:
    from isolang._native import Columns, LastValues

#: The name of the index file in the folder of a watch. The file is built from the state file when a
#: predicate read first needs it, and deleted when the watch ends.
NAME: Final = "rows.sqlite"

_AT_ONCE: Final = 2000

#: A key and its last value, both in the format of ``LastValues``.
Record: TypeAlias = tuple[bytes, bytes]

#: The SQL condition for each kind of range that ``ranges_of`` returns. In the index, a number is
#: stored as a number and a text as bytes that begin with ``=``; SQLite orders numbers before bytes.
#: Empty bytes represent a value that cannot be compared, so every condition selects them.
_TEXT: Final = "cell.value IN (x'', ?)"
_NUMBERS: Final = "(cell.value BETWEEN ? AND ? OR cell.value = x'')"
_NUMBERS_AND_TEXTS: Final = "(cell.value BETWEEN ? AND ? OR cell.value >= x'')"


class RowsOnDisk:
    """Indexes on the table ``value``, one for each column compared by a predicate read.

    Raises:
        sqlite3.Error: the index cannot be read or written; every method raises it.
    """

    def __init__(
        self, data: sqlite3.Connection, folder: Path, unsealed: Callable[[bytes, bytes], bytes]
    ) -> None:
        self._data, self._unsealed = data, unsealed
        self._path = folder / NAME
        # maps a table and a column to the number of the column's index
        self._places: dict[tuple[str, str], int] = {}
        for name in (self._path, self._path.with_name(NAME + "-journal")):
            name.unlink(missing_ok=True)
        data.execute("ATTACH ? AS asked", (str(self._path),))
        data.execute("PRAGMA asked.journal_mode = OFF")
        data.execute("PRAGMA asked.synchronous = OFF")
        data.execute("PRAGMA asked.cache_size = -16000")

    def close(self) -> None:
        """Delete the index file."""
        self._path.unlink(missing_ok=True)

    def update(self, records: Sequence[Record]) -> None:
        """Update all indexes with new and changed rows."""
        for names, place in self._places.items():
            self._add_to_index(place, names, records)

    def fetch(self, columns: Columns, last: LastValues) -> None:
        """Load into ``last`` the rows that the predicate reads in these columns may match."""
        for predicate in _native.predicates_of(columns):
            table, ranges = _native.ranges_of(predicate)
            for column, low, high, text, texts in ranges:
                place = self._index_of(table, column)
                where = _TEXT if text else _NUMBERS_AND_TEXTS if texts else _NUMBERS
                found = self._data.execute(
                    f"SELECT stored.key, stored.record FROM asked.cell_{place} AS cell "
                    f"JOIN main.value AS stored ON stored.key = cell.key WHERE {where}",
                    (text,) if text else (low, high),
                )
                for some in _batches(found):
                    entries = b"".join(self._unsealed(*record) for record in some)
                    last.take_matching(entries, [predicate])

    def _index_of(self, table: str, column: str) -> int:
        """Return the number of the index for a column; create the index if it does not exist."""
        names = table, column
        if names in self._places:
            return self._places[names]
        place = len(self._places)
        self._data.execute(
            f"CREATE TABLE asked.cell_{place} (key BLOB PRIMARY KEY, value) WITHOUT ROWID"
        )
        for some in _batches(self._data.execute("SELECT key, record FROM main.value")):
            records = [(key, self._unsealed(key, record)) for key, record in some]
            self._add_to_index(place, names, records)
        self._data.execute(f"CREATE INDEX asked.by_value_{place} ON cell_{place} (value)")
        self._data.commit()
        self._places[names] = place
        return place

    def _add_to_index(self, place: int, names: tuple[str, str], records: Sequence[Record]) -> None:
        cells = _native.cells_of(b"".join(record for _, record in records), *names)
        rows = [(key, cell) for (key, _), cell in zip(records, cells, strict=True)]
        self._data.executemany(
            f"INSERT OR REPLACE INTO asked.cell_{place} VALUES (?, ?)",
            (row for row in rows if row[1] is not None),
        )
        self._data.executemany(
            f"DELETE FROM asked.cell_{place} WHERE key = ?",
            ((key,) for key, cell in rows if cell is None),
        )


def _batches(found: Iterable[Record]) -> Iterator[list[Record]]:
    records = iter(found)
    while some := list(islice(records, _AT_ONCE)):
        yield some
