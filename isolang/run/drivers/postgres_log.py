"""Reads the row changes of committed transactions from PostgreSQL's log, in log order.

A separate connection reads a temporary logical slot with SQL statements, in the text format of the
plugin ``test_decoding``. When the connection ends for any reason, the server drops the slot. The
log contains the changes of each row in the order of the row's versions. It does not order
transactions: a snapshot may contain a transaction whose COMMIT is later in the log, and lack a
transaction whose COMMIT is earlier.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from msgspec import Struct

from isolang.errors import TargetError, message_in_one_line

_BATCH: Final = 20_000
"""How many changes are fetched at a time, rounded up to whole transactions."""

_CHANGE: Final = re.compile(
    r"table (?P<table>(?:\"(?:[^\"]|\"\")*\"|[^\s\".])+\.(?:\"(?:[^\"]|\"\")*\"|[^\s\".:])+): "
    r"(?P<kind>INSERT|UPDATE|DELETE|TRUNCATE): ?(?P<rest>.*)",
    re.DOTALL,
)
_COLUMN: Final = re.compile(
    r"(?P<name>\"(?:[^\"]|\"\")*\"|[^\s\"\[]+)\[(?P<type>.+?)\]:"
    r"(?P<value>'[^']*+(?:''[^']*+)*+'|[^\s']\S*)(?:\s|$)",
    re.DOTALL,
)
_TOAST: Final = "unchanged-toast-datum"
_MARK: Final = re.compile(
    r"message: transactional: 1 prefix: isolang, sz: \d+ content:(?P<number>\d+)"
)

MARK_SQL: Final = "SELECT pg_catalog.pg_logical_emit_message(true, 'isolang', '{}')"
"""Writes a number into the log, behind the transaction's earlier changes."""


class LoggedChange(Struct, frozen=True, kw_only=True):
    """A change to a row by a committed transaction.

    Attributes:
        transaction: the number of the top-level transaction, even if the change belongs to a
            savepoint.
        table: the name of the table, preceded by its schema: ``public.account``.
        kind: ``INSERT``, ``UPDATE``, ``DELETE``, or ``TRUNCATE``, for which ``table`` may name
            several tables; ``MARK`` for a number that :data:`MARK_SQL` wrote.
        row: the columns after the change, as text, or ``None`` for NULL; for a DELETE, the columns
            in the replica identity. A column is missing if it is stored out of line and did not
            change.
        old: the columns in the replica identity before the change; empty if the change did not
            affect them.
        mark: the number of a ``MARK``.
    """

    transaction: int
    table: str
    kind: str
    row: Mapping[str, str | None]
    old: Mapping[str, str | None]
    mark: int = 0


class PostgresLog:
    """The log of all changes to a database since the creation of this object.

    Attributes:
        before: a transaction number; all transactions with smaller numbers had ended before the log
            began.
    """

    def __init__(self, connect: Callable[[], Any], who: str) -> None:
        """Create the temporary logical slot.

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
                f"{self._who}: the server does not log which rows change (got wal_level = "
                f"{level}, expected logical); hint: ALTER SYSTEM SET wal_level = logical, then "
                "restart the server"
            )
        sql = "SELECT pg_create_logical_replication_slot(%s, 'test_decoding', true)"
        try:
            raw.execute(sql, (self._slot,))
        except Exception as error:
            message = message_in_one_line(error)
            raise TargetError(
                f"{self._who}: cannot create a logical replication slot ({message}); "
                f"{_hint_for(error)}"
            ) from None
        (oldest,) = raw.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()
        return int(oldest)

    def changes(self) -> Iterator[LoggedChange]:
        """Yield the changes since the last call, in the order of the log.

        Raises:
            TargetError: the log has ended, because its connection was lost.
        """
        sql = (
            "SELECT xid::text, data FROM pg_logical_slot_get_changes(%s, NULL, %s, 'include-xids', "
            "'on', 'skip-empty-xacts', 'on')"
        )
        while True:
            try:
                rows = self._connection.execute(sql, (self._slot, _BATCH)).fetchall()
            except Exception as error:
                message = message_in_one_line(error)
                raise TargetError(
                    f"{self._who}: cannot read the server's log ({message})"
                ) from None
            if not rows:
                return
            for xid, data in rows:
                word = data.partition(" ")[0]
                if word == "table":
                    yield change_of(int(xid), data)
                elif word == "message:" and (mark := _MARK.fullmatch(data)) is not None:
                    yield LoggedChange(
                        transaction=int(xid), table="", kind="MARK", row={}, old={},
                        mark=int(mark["number"]),
                    )  # fmt: skip

    def is_writable(self) -> bool:
        """Return whether marks can be written, which a standby refuses."""
        return not self._connection.execute("SELECT pg_is_in_recovery()").fetchone()[0]

    def flush(self) -> None:
        """Let the log contain all transactions whose COMMIT has been answered.

        With ``synchronous_commit = off``, the server answers before it writes its log.
        """
        if self.is_writable():
            self._connection.execute("SET synchronous_commit = on")
            self._connection.execute(MARK_SQL.format(0))

    def close(self) -> None:
        """Close the connection, which drops the slot."""
        with suppress(Exception):  # a lost connection has already dropped the slot
            self._connection.close()


def is_older(number: int, other: int) -> bool:
    """Return whether a transaction got its number before another; both count modulo 2**32."""
    return 0 < (other - number) % 2**32 < 2**31


def change_of(transaction: int, text: str) -> LoggedChange:
    """Parse the change in a line written by ``test_decoding``.

    Raises:
        TargetError: the text is not in the format of ``test_decoding``.
    """
    found = _CHANGE.fullmatch(text)
    if found is None:
        if "TRUNCATE" in text:  # the names of several tables, separated by commas
            table = text.removeprefix("table ").partition(": TRUNCATE")[0]
            return LoggedChange(
                transaction=transaction, table=table, kind="TRUNCATE", row={}, old={}
            )
        raise TargetError(f"postgres: not a change from the server's log (got {text[:200]!r})")
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


def _hint_for(error: Exception) -> str:
    state = getattr(error, "sqlstate", None)
    if state == "42501":
        return "hint: a role needs REPLICATION for this: ALTER ROLE … REPLICATION"
    if state == "53400":
        return "hint: all slots are in use; raise max_replication_slots"
    if state in ("58P01", "42704"):
        return "hint: the plugin test_decoding comes with PostgreSQL's contrib package"
    return "hint: docs/versions.md lists the privileges to grant"
