"""What PostgreSQL's log says: which committed transaction changed which row, in which order.

A temporary logical slot on a connection of its own is read through plain SQL, as the plugin
``test_decoding`` writes it. The server drops such a slot when the connection ends, however that
comes about. The log has the changes of one row in the order of its versions; it is no order of
transactions: a snapshot may show a later COMMIT of the log and miss an earlier one.
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
"""Changes that are fetched at a time; whole transactions are."""

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
    """What a committed transaction did to a row.

    Attributes:
        transaction: its number, without those of its savepoints.
        table: with its schema: ``public.account``.
        kind: ``INSERT``, ``UPDATE``, ``DELETE``, or ``TRUNCATE``, which names several tables.
        row: what the row has after it, by column, as text; of a DELETE the columns of the replica
            identity; ``None`` of nil. A column that is stored apart and did not change is missing.
        old: the columns of the replica identity before it, where they were others.
    """

    transaction: int
    table: str
    kind: str
    row: Mapping[str, str | None]
    old: Mapping[str, str | None]


class PostgresLog:
    """The changes of one database from now on.

    Attributes:
        before: older transactions, by number, had ended before; all that the log lacks did.
    """

    def __init__(self, connect: Callable[[], Any], who: str) -> None:
        """Begin.

        Args:
            connect: gives a connection of psycopg, in autocommit mode, that is used for nothing
                else.
            who: what messages begin with.

        Raises:
            TargetError: the server keeps no such log, or may not be asked for it.
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
            said = " ".join(str(error).split())
            raise TargetError(f"{self._who}: no logical slot ({said}); {_hint(error)}") from None
        (oldest,) = raw.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()
        return int(oldest)

    def changes(self) -> Iterator[LoggedChange]:
        """Give what was changed since the last call, in the order of the log.

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
                said = " ".join(str(error).split())
                raise TargetError(f"{self._who}: the log cannot be read ({said})") from None
            if not rows:
                return
            for (data,) in rows:
                word, _, rest = data.partition(" ")
                if word == "BEGIN":
                    transaction = int(rest)
                elif word == "table":
                    yield change_of(transaction, data)

    def close(self) -> None:
        """End the connection, and the slot with it."""
        with suppress(Exception):  # it is lost, and so is the slot
            self._connection.close()


def change_of(transaction: int, text: str) -> LoggedChange:
    """What a line of ``test_decoding`` says of a row.

    Raises:
        TargetError: it is no such line.
    """
    found = _CHANGE.fullmatch(text)
    if found is None:
        if "TRUNCATE" in text:  # of several tables, with commas between
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
