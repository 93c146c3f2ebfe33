"""Names the versions of PostgreSQL's rows: the writer's number ``xmin``, and the place ``ctid``."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct

from isolang.errors import IsolangError, message_in_one_line
from isolang.observe.database import ReportedWrite, StoredVersion
from isolang.observe.history.seen import RowVersion
from isolang.observe.sql.catalogue import Table, exact_json
from isolang.run.drivers.postgres_log import is_older

_FIRST_NUMBER: Final = 3  # transactions with smaller numbers wrote versions older than all others


class StartSnapshot(Struct, frozen=True):
    """The snapshot from which the initial rows were read.

    Attributes:
        lowest: the number of the oldest transaction open at that time.
        others: the numbers of the open transactions between these two, modulo 2**32.
    """

    lowest: int
    highest: int
    others: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> StartSnapshot:
        """Parse a snapshot in PostgreSQL's format, such as ``10:20:10,14``."""
        lowest, highest, *others = re.split("[:,]", text)
        return cls(int(lowest), int(highest), frozenset(int(o) % 2**32 for o in others if o))

    def is_older(self, number: str) -> bool:
        """Return whether a version was written before all transactions open at that time."""
        xmin = _writer(number)
        return xmin < _FIRST_NUMBER or is_older(xmin, self.lowest)

    def contains(self, transaction: int) -> bool:
        """Return whether the snapshot contains the transaction with a number modulo 2**32."""
        if is_older(transaction, self.lowest):
            return True
        return is_older(transaction, self.highest) and transaction not in self.others


class PostgresVersions:
    """The versions of PostgreSQL's rows."""

    def of_read(self, table: Table, reported: bytes, *, all_rows: bool) -> Iterator[StoredVersion]:
        """Yield the versions in the column added to a row; with ``all_rows``, to a total."""
        for text in (json.loads(reported) or ()) if all_rows else (reported.decode(),):
            oid, _, rest = text.partition(" ")
            if oid.isdigit():  # otherwise, an outer join found no row of the table
                xmin, ctid, key = rest.split(" ", 2)
                yield _stored(table, oid, xmin, ctid, exact_json(key))

    def of_write(self, table: Table, reported: bytes) -> ReportedWrite:
        """Return the versions in the column added to a write."""
        (number, old_oid, old_xmin, old_ctid, old_key, new_oid, new_xmin, new_ctid, new_key,
         whole, image, *before) = exact_json(reported)  # fmt: skip
        old = new = None
        if before and before[0] and len(before[0]) == 1:
            old = _stored(table, *before[0][0])
        if old_oid is not None:
            old = _stored(table, old_oid, old_xmin, old_ctid, old_key)
        transaction = int(number) % 2**32
        if new_oid is not None:
            new = _stored(table, new_oid, new_xmin or str(transaction), new_ctid, new_key)
        by_number = new is not None and new_xmin is None
        return ReportedWrite(transaction, old, new, whole, _image(image), by_number)

    def writer(self, version: RowVersion) -> int:
        """Return the number of the transaction that wrote a version, modulo 2**32."""
        return _writer(version.number)

    @contextmanager
    def snapshot(self, connection: Any) -> Iterator[StartSnapshot]:
        """Read in one snapshot until the context manager ends."""
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        (text,) = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        yield StartSnapshot.parse(text)
        connection.execute("COMMIT")

    def rows(
        self, connection: Any, table: Table, most: int, *, whole: bool
    ) -> list[tuple[RowVersion, Sequence[Any] | None, bytes | None]] | None:
        """Return the versions in a table, and with ``whole`` their columns and images.

        Return ``None`` if there are more than ``most``.

        Raises:
            IsolangError: the table cannot be read.
        """
        columns = f"{table.row_sql('t')}::text, {table.image_sql('t')}" if whole else "NULL, NULL"
        answer = _query(
            connection,
            table,
            f"SELECT t.tableoid::text, t.xmin::text, t.ctid::text, {table.key_sql('t')}::text, "
            f"{columns} FROM {table.where} t LIMIT {most + 1}",
        )
        if len(answer) > most:
            return None
        return [
            (
                RowVersion.of(table, oid, xmin, ctid, exact_json(key)),
                row and exact_json(row),
                _image(image),
            )
            for oid, xmin, ctid, key, row, image in answer
        ]

    def present(self, connection: Any, table: Table, numbers: Iterable[str]) -> set[str]:
        """Return which of the numbered versions are in a table.

        Raises:
            IsolangError: the table cannot be read.
        """
        named = set(numbers)
        places = [number[number.index("(") :].partition("@")[0] for number in named]
        answer = _query(
            connection,
            table,
            f"SELECT t.tableoid::text, t.xmin::text, t.ctid::text FROM {table.where} t "
            "WHERE t.ctid = ANY (%s::tid[])",
            (places,),
        )
        return named.intersection(table.version(*row) for row in answer)

    def limit_waiting(self, connection: Any, seconds: int) -> None:
        """Let no statement of a connection wait longer for a lock."""
        connection.execute(f"SET lock_timeout = '{seconds}s'")


def _writer(number: str) -> int:
    return int(number.partition("(")[0])


def _image(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _stored(table: Table, oid: str, xmin: str, ctid: str, key: Sequence[Any]) -> StoredVersion:
    return StoredVersion(int(oid), RowVersion.of(table, oid, xmin, ctid, key))


def _query(connection: Any, table: Table, *query: Any) -> list[Any]:
    """Return the rows of a query about a table; an error ends no transaction around it."""
    import psycopg

    try:
        with connection.transaction():
            return list(connection.execute(*query).fetchall())
    except psycopg.Error as error:
        raise IsolangError(f"cannot read {table.name}: {message_in_one_line(error)}") from None
