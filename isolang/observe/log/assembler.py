"""Joins the events of the log to transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from isolang.observe.log import events
from isolang.observe.log.events import Event, Gtid, LoggedQuery, RowsEvent, TableMap

_MAPS: Final = 1000  # how many table maps are remembered


class WrittenRows(Struct):
    """The rows of a statement, not yet decoded."""

    comment: str = ""
    is_whole: bool = False
    rows: list[tuple[TableMap, RowsEvent]] = []


class EventGroup(Struct):
    """The events of a transaction."""

    gtid: Gtid
    statements: list[WrittenRows] = []
    definitions: list[LoggedQuery] = []
    others: list[str] = []  # statements that the log contains instead of rows
    savepoints: dict[str, int] = {}  # the number of statements in front of each savepoint

    def table_maps(self) -> Iterator[TableMap]:
        """Yield the table of each event with rows."""
        for written in self.statements:
            for table_map, _ in written.rows:
                yield table_map


class Assembler:
    """Joins events to transactions."""

    def __init__(self) -> None:
        """Start in front of a transaction."""
        self._open: EventGroup | None = None
        self._maps: dict[int, TableMap] = {}
        self._bodies: dict[bytes, tuple[int, TableMap]] = {}
        self._prepared: dict[bytes, EventGroup] = {}
        self.unknown: list[str] = []

    @property
    def between(self) -> bool:
        """Return whether the last event ended a transaction, or belongs to none."""
        return self._open is None

    def restart(self) -> None:
        """Forget a transaction of which only the beginning was read."""
        self._open = None

    def feed(self, event: Event) -> EventGroup | None:
        """Return the transaction that ends with an event."""
        if event.kind == events.GTID:
            self._open = EventGroup(events.parse_gtid(event))
            self._maps = {}
            return None
        transaction = self._open
        if transaction is None:
            if event.kind not in _OUTSIDE and not event.flags & _IGNORABLE:
                self.unknown.append(f"an event of type {event.kind} outside a transaction")
            return None
        if event.kind == events.TABLE_MAP:
            self._add_map(event.body)
        elif event.kind in events.ROWS:
            self._add_rows(transaction, events.parse_rows(event))
        elif event.kind == events.ANNOTATE:
            transaction.statements.append(WrittenRows(events.parse_annotation(event)))
        elif event.kind in (events.QUERY, events.QUERY_COMPRESSED):
            return self._add_query(transaction, events.parse_query(event))
        elif event.kind == events.XID:
            return self._end()
        elif event.kind == events.XA_PREPARE:
            if event.body[0]:  # XA COMMIT … ONE PHASE
                return self._end()
            self._end()
            self._prepared[transaction.gtid.xid] = transaction
        elif event.kind not in _INSIDE and not event.flags & _IGNORABLE:
            self.unknown.append(f"an event of type {event.kind}")
        return None

    def _end(self) -> EventGroup | None:
        transaction, self._open = self._open, None
        return transaction

    def _add_map(self, body: bytes) -> None:
        if body not in self._bodies:
            if len(self._bodies) >= _MAPS:
                self._bodies.clear()
            self._bodies[body] = events.parse_table_map(body)
        number, table = self._bodies[body]
        self._maps[number] = table

    def _add_rows(self, transaction: EventGroup, rows: RowsEvent) -> None:
        # A session may stop to log comments; the last one is not that of the next statement.
        if not transaction.statements or transaction.statements[-1].is_whole:
            transaction.statements.append(WrittenRows())
        written = transaction.statements[-1]
        written.is_whole = rows.ends_statement
        if rows.rows:  # an event without rows only ends its statement
            written.rows.append((self._maps[rows.table], rows))

    def _add_query(self, transaction: EventGroup, query: LoggedQuery) -> EventGroup | None:
        words = query.text.split()
        word = words[0].upper() if words else ""
        if word == "XA":
            return self._complete(transaction, query)
        if word == "COMMIT" and len(words) == 1:
            return self._end()
        if word == "ROLLBACK" and len(words) == 1:
            # The group is in the log for tables without transactions, which are not observed.
            self._end()
            return None
        if word == "SAVEPOINT":
            transaction.savepoints[words[-1]] = len(transaction.statements)
            return None
        if word == "ROLLBACK" and words[-1] in transaction.savepoints:
            del transaction.statements[transaction.savepoints[words[-1]] :]
            return None
        if word == "BEGIN" and len(words) == 1:
            return None
        if transaction.gtid.standalone:
            transaction.definitions.append(query)
            return self._end()
        if word in _DEFINING:
            transaction.definitions.append(query)
        else:
            transaction.others.append(query.text)
        return None

    def _complete(self, transaction: EventGroup, query: LoggedQuery) -> EventGroup | None:
        """Handle the statements of XA: only XA COMMIT makes the prepared rows visible."""
        verb = query.text.split()[1].upper()
        if verb in ("START", "END"):
            return None
        self._end()
        prepared = self._prepared.pop(transaction.gtid.xid, None)
        if verb == "ROLLBACK":
            return None
        if prepared is None:  # it was prepared before the observation
            transaction.others.append(query.text)
            return transaction
        prepared.gtid = transaction.gtid
        return prepared


_DEFINING: Final = ("CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME")
_IGNORABLE: Final = 0x80
_OUTSIDE: Final = frozenset(
    {events.STOP, events.ROTATE, events.FORMAT, events.HEARTBEAT, events.CHECKPOINT,
     events.GTID_LIST, events.ENCRYPTION}
)  # fmt: skip
_INSIDE: Final = _OUTSIDE | {events.INTVAR, events.RAND, events.USER_VAR}
