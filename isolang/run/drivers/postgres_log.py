"""Reads PostgreSQL's log: the changes of rows by committed transactions, in order.

A separate connection reads a temporary logical slot through plain SQL, in the text format of the
plugin ``test_decoding``. The server drops the slot when the connection ends for any reason. The log
has the changes of a row in the order of its versions. It does not order transactions: a snapshot
may contain a later COMMIT of the log and lack an earlier one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from msgspec import Struct

from isolang.errors import TargetError

_BATCH: Final = 20_000
"""The number of changes to fetch at a time; a transaction is always fetched as a whole."""

_CHANGE: Final = re.compile(
    r"table (?P<table>(?:\"(?:[^\"]|\"\")*\"|[^\s\".])+\.(?:\"(?:[^\"]|\"\")*\"|[^\s\".:])+): "
    r"(?P<kind>INSERT|UPDATE|DELETE|TRUNCATE): ?(?P<rest>.*)",
    re.DOTALL,
)
_COLUMN: Final = re.compile(
    r"(?P<name>\"(?:[^\"]|\"\")*\"|[^\s\"\[]+)\[(?P<type>.+?)\]:"
    r"(?P<value>'(?:[^']|'')*'|[^\s']\S*)(?:\s|$)",
    re.DOTALL,
)
_TOAST: Final = "unchanged-toast-datum"


class LoggedChange(Struct, frozen=True, kw_only=True):
    """A change of a row by a committed transaction.

    Attributes:
        transaction: the number of the transaction, not that of a savepoint.
        table: the name of the table with its schema: ``public.account``.
        kind: ``INSERT``, ``UPDATE``, ``DELETE``, or ``TRUNCATE``, which names several tables.
        row: the columns after the change, as text, or ``None`` for NULL; for a DELETE, the columns
            of the replica identity. A column that is stored apart and did not change is missing.
        old: the columns of the replica identity before the change; empty if it did not change them.
    """

    transaction: int
    table: str
    kind: str
    row: Mapping[str, str | None]
    old: Mapping[str, str | None]


class PostgresLog:
    """The log of a database's changes, from its creation on.

    Attributes:
        before: a number; all transactions with smaller numbers had ended before the log begins.
    """

    def __init__(self, connect: Callable[[], Any], who: str) -> None:
        """Create the slot.

        Args:
            connect: a function that returns a psycopg connection in autocommit mode for the log.
            who: the first words of error messages.

        Raises:
            TargetError: the server does not keep such a log, or the user may not read it.
        """
        self._who = who
        self._connection = connect()
        self._slot = f"isolang_{os.getpid()}_{uuid4().hex[:12]}"
        try:
            self.before = self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> int:
        raw = self._connection
        (level,) = raw.execute("SHOW wal_level").fetchone()
        if level != "logical":
            raise TargetError(
                f"{self._who}: the server does not log which rows were changed (got wal_level = "
                f"{level}, expected logical); hint: ALTER SYSTEM SET wal_level = logical, and "
                "restart it"
            )
        sql = "SELECT pg_create_logical_replication_slot(%s, 'test_decoding', true)"
        try:
            raw.execute(sql, (self._slot,))
        except Exception as error:
            message = " ".join(str(error).split())
            raise TargetError(f"{self._who}: no logical slot ({message}); {_hint(error)}") from None
        (oldest,) = raw.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()
        return int(oldest)

    def changes(self) -> Iterator[LoggedChange]:
        """Yield the changes since the last call, in the order of the log.

        Raises:
            TargetError: the log has ended with its connection.
        """
        sql = (
            "SELECT data FROM pg_logical_slot_get_changes(%s, NULL, %s, 'include-xids', 'on', "
            "'skip-empty-xacts', 'on')"
        )
        transaction = 0
        while True:
            try:
                rows = self._connection.execute(sql, (self._slot, _BATCH)).fetchall()
            except Exception as error:
                message = " ".join(str(error).split())
                raise TargetError(f"{self._who}: the log cannot be read ({message})") from None
            if not rows:
                return
            for (data,) in rows:
                word, _, rest = data.partition(" ")
                if word == "BEGIN":
                    transaction = int(rest)
                elif word == "table":
                    yield change_of(transaction, data)

    def close(self) -> None:
        """Close the connection, which drops the slot."""
        with suppress(Exception):  # the connection is lost, and so is the slot
            self._connection.close()


def change_of(transaction: int, text: str) -> LoggedChange:
    """Return the change in a line of ``test_decoding``.

    Raises:
        TargetError: the text is not such a line.
    """
    found = _CHANGE.fullmatch(text)
    if found is None:
        if "TRUNCATE" in text:  # the names of several tables, with commas between
            table = text.removeprefix("table ").partition(": TRUNCATE")[0]
            return LoggedChange(
                transaction=transaction, table=table, kind="TRUNCATE", row={}, old={}
            )
        raise TargetError(f"postgres: not a change of the log (got {text[:200]!r})")
    rest, old = found["rest"], ""
    if rest.startswith("old-key: "):
        old, _, rest = rest.removeprefix("old-key: ").partition(" new-tuple: ")
    row = {} if rest.startswith("(no-") or found["kind"] == "TRUNCATE" else _columns(rest)
    return LoggedChange(
        transaction=transaction,
        table=found["table"].replace('"', ""),
        kind=found["kind"],
        row=row,
        old=_columns(old),
    )


def _columns(text: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for column in _COLUMN.finditer(text):
        name, value = column["name"], column["value"]
        if value == _TOAST:
            continue
        if name.startswith('"'):
            name = name[1:-1].replace('""', '"')
        quoted = value.startswith("'")
        plain = value[1:-1].replace("''", "'") if quoted else value
        found[name] = None if value == "null" else plain
    return found


def _hint(error: Exception) -> str:
    state = getattr(error, "sqlstate", None)
    if state == "42501":
        return "hint: a role with REPLICATION may have one: ALTER ROLE … REPLICATION"
    if state == "53400":
        return "hint: all of max_replication_slots are taken"
    if state in ("58P01", "42704"):
        return "hint: the plugin test_decoding comes with PostgreSQL's contrib package"
    return "hint: docs/versions.md says what to grant"
