"""Adds the writes that only the server's log shows to a history.

These are the writes of statements that cannot return their rows (of triggers, foreign keys, COPY,
functions), and those of unobserved sessions. The log contains the changes of each committed
transaction, and orders each row's changes by its versions, but does not contain the places of
versions. Readers and the table itself also name a version by its place. If a session has seen a
version, the version in the log therefore gets the name under which it was seen
(:mod:`isolang.observe.versions.sightings`).

In front of a statement whose writes may be unseen, the proxy writes a number, the *mark*, into the
log, in the same transaction. The changes behind it are those of the statement, and then those of
later statements, which all returned their rows. If a savepoint is rolled back, both its changes and
its marks are missing in the log.

A run's recorder completes its histories differently (:mod:`isolang.run.record.database_log`): its
lines do not state which version each write replaced, so the log numbers all versions. An observer
knows most replaced versions from the statements.

SOUND BECAUSE: an added transaction has no reads, has a separate session, and claims nothing about
its time. It is not one of the recorded transactions, because those either state their numbers or
wrote nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.observe.database import InitialSnapshot
from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.seen import (
    LoggedWrites,
    Observed,
    ReadRow,
    RowVersion,
    ScannedRows,
    SeenTransaction,
    WrittenRow,
)
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.values import BOOL
from isolang.observe.unseen import CONDITIONS, FOREIGN, TABLES
from isolang.observe.versions.sightings import RowWrites, Sightings
from isolang.run.drivers.postgres_log import is_older

if TYPE_CHECKING:
    from isolang.run.drivers.postgres_log import LoggedChange

_FOREIGN_CLIENT: Final = "a client that is not observed"


class RowChange(Struct, eq=False):
    """A change in the log, with the row's keys before and after it.

    Attributes:
        write: the recorded write that made this change; ``None`` if no statement returned it.
        name: the version's name; ``None`` if it is not known, or the row was deleted.
    """

    change: LoggedChange
    table: Table
    old_key: str | None
    new_key: str | None
    write: WrittenRow | None = None
    name: RowVersion | None = None

    def is_of(self, write: WrittenRow, *, exact: bool) -> bool:
        """Return whether a recorded write may have made the change."""
        new = None if write.version is None else write.version.key
        if write.table.name != self.table.name or new != self.new_key:
            return False
        if write.old is not None and write.old.key != self.old_key:
            return False
        if write.old is None and write.inserts and self.old_key is not None:
            return False
        row = _values(self.table, self.change) if exact and write.row is not None else None
        return row is None or row == write.row


class LogSegment(Struct):
    """The changes behind a mark, up to the next one.

    Attributes:
        mark: the mark; 0 before the first one.
        unknown: the tables with changes that cannot be added to a history.
    """

    mark: int
    changes: list[RowChange] = []
    unknown: set[str] = set()


class ReadLog:
    """The server's log of an observation, as far as it has been read."""

    def __init__(
        self,
        history: ObservedHistory,
        changes: Iterable[LoggedChange],
        *,
        tables: Mapping[str, Table],
        sightings: Sightings,
        start: InitialSnapshot,
        altered: Mapping[int, int],
        defers: bool = False,
    ) -> None:
        """Store the changes by transaction.

        Args:
            tables: the tables by the names in the log, also by those of their partitions.
            sightings: the versions that the tables have now.
            altered: the last transaction that altered a table, by the table's object identifier.
            defers: whether triggers may run behind their statement.
        """
        self._defers = defers
        self._history, self._tables, self._sightings = history, tables, sightings
        self._altered = altered
        self._last = dict(history.initial)
        self._transactions: dict[int, list[LogSegment]] = {}
        for number, group in groupby(changes, key=lambda change: change.transaction):
            if not start.contains(number):
                self._transactions[number] = self._segments(group)

    def add(self, *, foreign: bool) -> None:
        """Add the writes of recorded transactions and, if required, of unobserved ones."""
        history = self._history
        recorded = self._recorded()
        self._sightings.note_history(history)
        self._name_versions()
        if history.unclear or any(
            one.operations and one.unclear and not one.number and one.outcome != "fail"
            for one in history.recorded()
        ):
            # Its unseen writes would look like those of an unobserved session.
            foreign = False
        for number, segments in self._transactions.items():
            one = recorded.get(number)
            if one is not None and one.awaits_log:
                self._complete(one, segments)
            elif one is not None or not foreign:
                self._pass(number, segments)
            else:
                self._add_foreign(number, segments)
        for one in history.recorded():
            if one.awaits_log:  # the log has no change of it
                seen = [o for o in one.operations if not isinstance(o, LoggedWrites)]
                history.add_to(one, seen)

    def _segments(self, changes: Iterable[LoggedChange]) -> list[LogSegment]:
        segments = [LogSegment(0)]
        for change in changes:
            if change.kind == "MARK":
                segments.append(LogSegment(change.mark))
                continue
            table = self._tables.get(change.table)
            if change.kind == "TRUNCATE":
                segments[-1].unknown.update(change.table.split(", "))
            elif table is None or not self._is_known(table, change):
                segments[-1].unknown.add(change.table)
            else:
                segments[-1].changes.append(RowChange(change, table, *_keys(table, change)))
        return segments

    def _is_known(self, table: Table, change: LoggedChange) -> bool:
        """Return whether a change names its row, in a table that has the same form now.

        SOUND BECAUSE: a transaction that alters a table lets no other write it until it has ended.
        """
        altered = self._altered.get(table.oid)
        is_new = altered is None or is_older(altered, change.transaction)
        return is_new and not table.why and _names_row(table, change)

    def _recorded(self) -> dict[int, SeenTransaction]:
        """Return the recorded transactions by number, which marks tell of some."""
        recorded = {}
        marked: dict[int, SeenTransaction] = {}
        for one in self._history.recorded():
            if one.number:
                recorded[one.number] = one
            for operation in one.operations:
                if isinstance(operation, LoggedWrites):
                    marked[operation.mark] = one
        for number, segments in self._transactions.items():
            for segment in segments:
                if (by_mark := marked.get(segment.mark)) is not None:
                    by_mark.number = number
                    recorded[number] = by_mark
        return recorded

    def _name_versions(self) -> None:
        writers: defaultdict[tuple[str, str], dict[int, RowWrites]] = defaultdict(dict)
        for number, segments in self._transactions.items():
            for change in _all_changes(segments):
                for key in {change.old_key, change.new_key} - {None}:
                    writes = writers[change.table.name, str(key)].setdefault(number, RowWrites())
                    writes.number += 1
                    writes.leaves_version = key == change.new_key
        self._sightings.name_versions(writers)

    # --- the writes of one transaction ---

    def _pass(self, number: int, segments: Sequence[LogSegment]) -> None:
        """Follow the versions of rows through a transaction that nothing is added to."""
        changes = [*_all_changes(segments)]
        self._set_names(number, changes)
        for _ in self._writes(changes, "", ""):
            pass

    def _add_foreign(self, number: int, segments: Sequence[LogSegment]) -> None:
        """Add a transaction of an unobserved session."""
        for segment in segments:
            for name in segment.unknown:
                if name in self._tables and not self._tables[name].why:
                    self._note_incomplete(self._tables[name], "rows")
        changes = [*_all_changes(segments)]
        self._set_names(number, changes)
        writes = []
        for change, write in self._writes(changes, _FOREIGN_CLIENT, ""):
            if write is None:
                self._note_incomplete(change.table, change.old_key or change.new_key or "")
            else:
                writes.append(write)
        if writes:
            self._history.add(writes)

    def _complete(self, one: SeenTransaction, segments: Sequence[LogSegment]) -> None:
        """Add the writes of a recorded transaction that no statement returned."""
        parts = _split_at_marks(one.operations)
        by_mark = {segment.mark: segment for segment in segments}
        known = {table.name for table in self._tables.values()}
        aligned = [
            (part, segment, _Alignment(part, segment, one.number, defers=self._defers).order(known))
            for part in parts
            for segment in [by_mark.pop(part.mark, LogSegment(part.mark))]
        ]
        if (
            one.altered
            or any(order is None for _, _, order in aligned)
            or any(segment.changes or segment.unknown for segment in by_mark.values())
        ):
            self._give_up(one, segments)
            return
        ordered: list[Observed | RowChange] = []
        late: set[int] = set()
        for _, _, order in aligned:
            assert order is not None
            ordered += order.operations
            late |= {id(change) for change in order.late}
            for read in order.unclear:
                self._history.unseen.note(CONDITIONS, read.shown, read.caller)
        changes = [*_all_changes(segments)]
        self._set_names(one.number, changes)
        _name_by_own_reads(ordered)
        made: dict[int, WrittenRow | None] = {}
        for change, write in self._writes(changes, "", ""):
            made[id(change)] = write
        completed: list[Observed] = []
        current: LoggedWrites | None = None
        for operation in ordered:
            if isinstance(operation, LoggedWrites):
                current = operation
            elif not isinstance(operation, RowChange):
                completed.append(operation)
            else:
                write = made[id(operation)]
                if write is None:
                    self._note_incomplete(operation.table, operation.new_key or "")
                elif current is not None:
                    # Statements ascend, so a write behind a later one names none.
                    sent = "" if id(operation) in late else current.statement
                    completed.append(
                        replace(write, shown=current.shown, statement=sent, caller=current.caller)
                    )
        for part, segment, _ in aligned:
            if part.of is not None:
                self._note_unknown_tables(part.of, segment.unknown)
        self._history.add_to(one, _without_future_reads(completed))

    def _give_up(self, one: SeenTransaction, segments: Sequence[LogSegment]) -> None:
        """Count the writes of a transaction, because their order is not clear."""
        for operation in one.operations:
            if isinstance(operation, LoggedWrites):
                for kind in operation.unseen or (TABLES,):
                    self._history.unseen.note(kind, operation.text)
        for change in _all_changes(segments):
            self._history.doubtful.setdefault(change.table.name, change.table.name)
        self._pass(one.number, segments)
        seen = [o for o in one.operations if not isinstance(o, LoggedWrites)]
        self._history.add_to(one, seen)

    def _note_unknown_tables(self, logged: LoggedWrites, names: Iterable[str]) -> None:
        """Count writes of tables whose rows cannot be identified."""
        for name in names:
            table = self._tables.get(name)
            why = TABLES if table is None or not table.why else table.why
            short = name.rpartition(".")[2]
            self._history.unseen.note(why, logged.text, table=short)
            if table is not None and not table.why:
                self._history.doubtful.setdefault(table.name, table.name)

    def _note_incomplete(self, table: Table, key: str) -> None:
        """Count a write of a row that the log describes incompletely."""
        self._history.unseen.note(
            FOREIGN,
            f"{table.name}/{key}, in the log",
            form=f"rows of {table.name}, in the log",
            tables=(table.name,),
        )
        self._history.doubtful.setdefault(table.name, f"{table.name}/{key}")

    def _set_names(self, number: int, changes: Sequence[RowChange]) -> None:
        """Name the versions that statements returned, and those that others saw."""
        last: dict[tuple[str, str], RowChange] = {}
        for change in changes:
            if change.write is not None:
                change.name = change.write.version
                old = change.write.old
                before = None if old is None else last.get((change.table.name, old.key))
                if before is not None and before.name is None:
                    before.name = old
            if change.old_key is not None:
                last.pop((change.table.name, change.old_key), None)
            if change.new_key is not None:
                last[change.table.name, change.new_key] = change
        for (table, key), change in last.items():
            if change.name is None:
                change.name = self._sightings.name(table, key, number)

    def _writes(
        self, changes: Sequence[RowChange], shown: str, statement: str
    ) -> Iterator[tuple[RowChange, WrittenRow | None]]:
        """Yield each change with its write; ``None`` if the log describes it incompletely."""
        for number, change in enumerate(changes):
            table, old, row = change.table, None, None
            if change.old_key is not None:
                old = self._last.pop((table.name, change.old_key), None)
            if change.new_key is not None:
                if change.name is None:
                    made_up = f"{change.change.transaction}(log {number})"
                    change.name = RowVersion(change.new_key, made_up)
                self._last[table.name, change.new_key] = change.name
                row = _values(table, change.change)
            lacks_old = old is None and change.old_key is not None
            if change.write is not None:
                yield change, change.write
            elif lacks_old or (change.new_key is not None and row is None):
                yield change, None
            else:
                yield (
                    change,
                    WrittenRow(
                        table,
                        change.name,
                        row,
                        old,
                        shown,
                        inserts=old is None,
                        statement=statement,
                    ),
                )


class _Part(Struct):
    """The operations from one placeholder to the next."""

    mark: int
    of: LoggedWrites | None
    operations: list[Observed] = []


class _Order(Struct):
    """The operations of a part with the changes that no statement returned.

    Attributes:
        late: the changes that triggers may have made behind later statements.
        unclear: the predicate reads that may precede or follow such a change.
    """

    operations: list[Observed | RowChange] = []
    late: list[RowChange] = []
    unclear: list[ScannedRows] = []


def changed_rows(
    changes: Iterable[LoggedChange], tables: Mapping[str, Table]
) -> Iterator[tuple[Table, str]]:
    """Yield the rows that changes in the log name."""
    for change in changes:
        table = tables.get(change.table)
        if table is not None and not table.why and _names_row(table, change):
            yield from ((table, key) for key in _keys(table, change) if key is not None)


def _all_changes(segments: Iterable[LogSegment]) -> Iterator[RowChange]:
    for segment in segments:
        yield from segment.changes


def _split_at_marks(operations: Iterable[Observed]) -> list[_Part]:
    parts = [_Part(0, None)]
    for operation in operations:
        if isinstance(operation, LoggedWrites):
            parts.append(_Part(operation.mark, operation))
        else:
            parts[-1].operations.append(operation)
    return parts


class _Alignment:
    """Puts a part's operations and the changes that no statement returned into one order.

    SOUND BECAUSE: a statement's changes precede those of later statements, which all returned their
    rows. Only a deferred trigger makes changes behind its statement: at the end of the transaction,
    or in SET CONSTRAINTS. If there are such triggers, a change precedes the first read that shows
    it, and what the log shows behind it. A predicate read before that which lacks the old version
    may precede or follow the change, so it claims nothing but the rows that it found.
    """

    def __init__(self, part: _Part, segment: LogSegment, number: int, *, defers: bool) -> None:
        """Create an alignment of a part of the transaction with a number."""
        self._part, self._changes, self._defers = part, segment.changes, defers
        self._name = None if part.of is None else part.of.statement.partition(" ")[0]
        self._number = number
        self._done = 0  # the number of changes that are in the order
        self._order = _Order()

    def order(self, known: set[str]) -> _Order | None:
        """Return the order; ``None`` if it is unknown.

        Args:
            known: the names of the tables in the log.
        """
        part, changes, order = self._part, self._changes, self._order
        writes = [
            write for write in part.operations
            if isinstance(write, WrittenRow) and write.table.name in known
            and not write.table.unlogged
        ]  # fmt: skip
        tail = self._match(writes)
        if tail is None:
            return None
        if part.of is not None:
            order.operations.append(part.of)
        elif any(change.write is None for change in changes):
            return None
        places = {id(change.write): n for n, change in enumerate(changes)}
        seen = {write.version.number for write in writes if write.version is not None}
        any_later = False
        for operation in part.operations:
            is_later = not self._is_first(operation)
            any_later |= is_later
            place = places.get(id(operation))
            if place is not None:
                self._add_changes(place + 1, late=is_later)
            elif is_later and not self._defers:
                self._add_changes(tail, late=False)
            elif is_later:
                self._add_changes(self._shown(operation, seen), late=True)
            order.operations.append(operation)
            if is_later and isinstance(operation, ScannedRows) and self._is_unclear(operation):
                order.operations.pop()
                order.unclear.append(operation)
                order.operations += (
                    ReadRow(
                        operation.table, row, operation.shown, operation.statement, operation.caller
                    )
                    for row in operation.rows
                )
        self._add_changes(tail, late=self._defers and any_later)
        self._add_changes(len(changes), late=True)
        return order

    def _is_first(self, operation: Observed) -> bool:
        """Return whether an operation is of the statement behind the mark."""
        # Behind its number, a statement has words about its locks and what it shows.
        return self._name is not None and operation.statement.partition(" ")[0] == self._name

    def _match(self, writes: Sequence[WrittenRow]) -> int | None:
        """Find the changes of the writes; return the place of the first one of later statements.

        Return ``None`` if the changes do not agree with the writes.
        """
        changes = self._changes
        first = [write for write in writes if self._is_first(write)]
        later = [write for write in writes if not self._is_first(write)]
        for exact, ordered in ((True, True), (False, True), (True, False)):
            # The queries of WITH write in any order.
            head = _matched(first, changes, exact=exact, ordered=ordered)
            back = _matched(later[::-1], changes[::-1], exact=exact)
            if head is not None and back is not None:
                tail = [len(changes) - 1 - n for n in reversed(back)]
                if not (head and tail) or max(head) < tail[0]:
                    break
        else:
            return None
        for places, matched in ((head, first), (tail, later)):
            for place, write in zip(places, matched, strict=True):
                changes[place].write = write
        return tail[0] if tail else len(changes)

    def _add_changes(self, end: int, *, late: bool) -> None:
        """Add the changes before a place that no statement returned."""
        added = [change for change in self._changes[self._done : end] if change.write is None]
        self._order.operations += added
        if late:
            self._order.late += added
        self._done = max(self._done, end)

    def _shown(self, operation: Observed, seen: set[str]) -> int:
        """Return the place behind the last change whose version a read shows.

        Args:
            seen: the numbers of the versions that statements returned.
        """
        if not isinstance(operation, ReadRow | ScannedRows):
            return 0
        own = {
            (operation.table.name, row.key)
            for row in _rows_read(operation)
            if row.number.startswith(f"{self._number}(") and row.number not in seen
        }
        places = [
            n for n, change in enumerate(self._changes)
            if change.write is None and (change.table.name, change.new_key) in own
        ]  # fmt: skip
        return max(places, default=-1) + 1

    def _is_unclear(self, read: ScannedRows) -> bool:
        """Return whether a row that a read lacks may be missing because of a later change."""
        keys = {row.key for row in read.rows}
        return any(
            change.write is None
            and change.table.name == read.table.name
            and change.old_key not in {None, *keys}
            for change in self._changes[self._done :]
        )


def _rows_read(operation: Observed) -> Sequence[RowVersion]:
    """Return the versions that an operation has read."""
    if isinstance(operation, ScannedRows):
        return operation.rows
    return (operation.version,) if isinstance(operation, ReadRow) else ()


def _matched(
    writes: Sequence[WrittenRow], changes: Sequence[RowChange], *, exact: bool, ordered: bool = True
) -> list[int] | None:
    """Return the first changes that may be those of the writes; ``None`` if none are.

    Args:
        ordered: whether the changes have the order of the writes.
    """
    places: list[int] = []
    at = 0
    for write in writes:
        while at < len(changes) and (
            (not ordered and at in places) or not changes[at].is_of(write, exact=exact)
        ):
            at += 1
        if at == len(changes):
            return None
        places.append(at)
        at = at + 1 if ordered else 0
    return places


def _name_by_own_reads(
    operations: Sequence[Observed | RowChange],
) -> None:
    """Name versions by the transaction's own reads behind them."""
    last: dict[tuple[str, str], RowChange] = {}
    for operation in operations:
        if isinstance(operation, RowChange):
            if operation.old_key is not None:
                last.pop((operation.table.name, operation.old_key), None)
            if operation.new_key is not None:
                last[operation.table.name, operation.new_key] = operation
        elif isinstance(operation, WrittenRow):
            for version in (operation.old, operation.version):
                if version is not None:
                    last.pop((operation.table.name, version.key), None)
        elif isinstance(operation, ReadRow | ScannedRows):
            for version in _rows_read(operation):
                change = last.get((operation.table.name, version.key))
                if change is not None and change.name is None:
                    change.name = version


def _without_future_reads(operations: Sequence[Observed]) -> list[Observed]:
    """Return the operations without reads of versions that the transaction writes only later.

    Such a write was not placed where it happened, so its place among the reads is not known.
    """
    written = {
        (one.table.name, one.version.number): place
        for place, one in enumerate(operations)
        if isinstance(one, WrittenRow) and one.version is not None
    }
    kept: list[Observed] = []
    for place, one in enumerate(operations):
        rows: Sequence[RowVersion] = ()
        if isinstance(one, ReadRow | ScannedRows):
            rows = one.rows if isinstance(one, ScannedRows) else (one.version,)
        if all(written.get((one.table.name, row.number), -1) < place for row in rows):  # type: ignore[union-attr]
            kept.append(one)
    return kept


def _names_row(table: Table, change: LoggedChange) -> bool:
    """Return whether a change has the whole key of its row."""
    named = [] if change.kind == "INSERT" else [change.old or change.row]
    named += [] if change.kind == "DELETE" else [change.row]
    return all(row.keys() >= set(table.key) for row in named)


def _keys(table: Table, change: LoggedChange) -> tuple[str | None, str | None]:
    """Return the row's keys before and after a change; ``None`` for a missing row."""

    def key(row: Mapping[str, str | None]) -> str:
        return table.key_text([_json_value(table, one, row.get(one)) for one in table.key])

    if change.kind == "INSERT":
        return None, key(change.row)
    if change.kind == "DELETE":
        return key(change.old or change.row), None
    return key(change.old or change.row), key(change.row)


def _json_value(table: Table, name: str, value: str | None) -> Any:
    """Return a value from the log in its JSON form."""
    column = table.columns.get(name)
    if value is None or column is None or column.oid != BOOL:
        return value
    return value in ("t", "true")


def _values(table: Table, change: LoggedChange) -> dict[str, Any] | None:
    """Return the row to record in a history; ``None`` if the log lacks a column."""
    try:
        return {
            name: column.recorded(_json_value(table, name, change.row[name]))
            for name, column in table.columns.items()
        }
    except KeyError:  # the column is stored out of line, and did not change
        return None
