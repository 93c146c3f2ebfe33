"""Represents the row versions seen by sessions, and the transactions that accessed them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.history.statements import Lock, SentStatement
from isolang.observe.history.evaluated import EvaluatedCondition
from isolang.observe.sql.catalogue import Table, is_key_of
from isolang.observe.sql.executed import PortalPosition
from isolang.observe.sql.units import unit_named

Outcome: TypeAlias = Literal["ok", "fail", "info"]


class RowVersion(Struct, frozen=True, gc=False):
    """A version of a row, as named by the database.

    Attributes:
        values: the values of the primary key's columns, if they may be needed.
    """

    key: str
    number: str
    values: tuple[Any, ...] = ()

    @classmethod
    def of(cls, table: Table, oid: str, xmin: str, ctid: str, key: Sequence[Any]) -> RowVersion:
        """Return the row version described by the server, with the values of its key."""
        return cls(table.key_text(key), table.version(oid, xmin, ctid), tuple(key))


class ReadRow(Struct, frozen=True, gc=False):
    """A row returned by a read.

    Attributes:
        statement: the statement that read it, as named in the history; empty if unknown.
        caller: the ``file:line`` that sent the statement; empty if unknown.
        columns: the columns that were read, if the statement depends on no others.
        perhaps: whether the read only *may* have decided the statement's answer. Such a read can
            acquit, but not convict.
    """

    table: Table
    version: RowVersion
    shown: str
    statement: str = ""
    caller: str = ""
    columns: tuple[str, ...] = ()
    perhaps: bool = False


class ScannedRows(Struct, frozen=True, gc=False):
    """A predicate read: the rows found by a condition, and no others.

    Attributes:
        where: the predicate, in EDN.
        order: the column by which LIMIT chose the rows, and whether the order descends. All rows
            before the last returned row were returned, but perhaps not all rows with the same value
            in this column. ``None`` if no LIMIT applied.
        perhaps: as for :class:`ReadRow`.
        condition: the condition, if the server evaluates it at the end; ``where`` is then empty.
        columns: the columns of the found rows that count as read if the server cannot evaluate the
            condition; ``None`` for all.
        number: the number of the unseen read that it then is; 0 if it cannot be harmless.
        kept: the versions, each with the name of its table, that make a possible read certain if
            they are from before the observation, and nobody replaced them. Otherwise it is dropped.
        is_loose: whether only those of the rows were found that satisfy the condition. All of them
            satisfy ``where``, which is empty if that is unknown.
    """

    table: Table
    where: str
    rows: tuple[RowVersion, ...]
    shown: str
    order: tuple[str, bool] | None = None
    statement: str = ""
    caller: str = ""
    perhaps: bool = False
    condition: EvaluatedCondition | None = None
    columns: tuple[str, ...] | None = None
    number: int = 0
    kept: tuple[tuple[str, str], ...] = ()
    is_loose: bool = False


class FoundKey(Struct, frozen=True, gc=False):
    """A key that an INSERT found to exist; which version of its row is unknown.

    SOUND BECAUSE: a writer that is not seen may have inserted the key and deleted it again without
    a trace. So this only may have decided the answer, and acquits, but never convicts.
    """

    table: Table
    key: str
    shown: str
    statement: str = ""
    caller: str = ""
    perhaps: bool = True


class WrittenRow(Struct, frozen=True, gc=False):
    """A version that was written.

    Attributes:
        row: the version's column values; ``None`` for a deletion.
        old: the replaced version; ``None`` for an INSERT, or if it is unknown.
        same_key: whether the replaced version, which is unknown, had the same key.
        image: the version in binary format; ``None`` if it is unknown.
    """

    table: Table
    version: RowVersion | None
    row: Mapping[str, Any] | None
    old: RowVersion | None
    shown: str
    inserts: bool = False
    statement: str = ""
    same_key: bool = False
    caller: str = ""
    image: bytes | None = None


class LoggedWrites(Struct, frozen=True, gc=False):
    """Stands for the writes of a statement that only the server's log shows.

    Attributes:
        mark: the number in the log in front of the writes.
        unseen: the kinds that these writes count as if the log does not name them.
    """

    mark: int
    shown: str
    text: str
    unseen: tuple[str, ...] = ()
    statement: str = ""
    caller: str = ""


class UnseenRead(Struct, array_like=True, frozen=True, gc=False):
    """A read that was not recorded, of known tables.

    Attributes:
        what: the kind or detail that it counts as.
        text: the statement, without its values.
        caller: the ``file:line`` that sent it; empty if unknown.
        tables: the names of the tables that it may have read.
        sent: a position before the server took the snapshot of the read.
        answered: a position after that.
        number: the number of a read that was not seen only if the server cannot evaluate its
            condition; 0 for others.
    """

    what: str
    text: str
    caller: str
    tables: tuple[str, ...]
    sent: int
    answered: int
    number: int = 0

    @property
    def why(self) -> str:
        """Return what an order that the read shows is because of."""
        return f"not seen: {self.text}" + (f", {self.caller}" if self.caller else "")


Observed: TypeAlias = ReadRow | ScannedRows | FoundKey | WrittenRow | LoggedWrites


class SeenTransaction(Struct, kw_only=True, gc=False):
    """A transaction of a session.

    Attributes:
        begin: the position of the transaction's first event.
        began: the time of the transaction's first event.
        level: the isolation level, in PostgreSQL's words.
        statement: the current statement, as named in the history; empty if it is incomplete.
        cut: the SELECTs whose rows the application has not all requested yet.
        bound: the positions of the statements that are bound, and may still be executed.
        number: the database's number for the transaction, modulo 2**32; 0 if unknown.
        caller: the ``file:line`` that sent the current statement; empty if unknown.
        client: the number of the application's call that the transaction belongs to; 0 if unknown.
        units: the names of the unit that the transaction belongs to, by what names it; empty if two
            statements disagree.
        awaits_log: whether only the server's log shows some of the transaction's writes, and has
            not been read.
        outcome: how the transaction ended; ``None`` before its end.
        end: the position of the transaction's last event.
        snapshot: the position at which its first statement with a snapshot was answered; -1 before.
        commit_sent: the position at which COMMIT was sent; -1 if it was not seen.
        unseen_reads: the reads of known tables that were not recorded.
        unseen_tables: the tables of these reads.
        has_doubtful_times: whether its reads may be of another time than their statements.
        first_line: the number of the line of its begin in the file; 0 before.
        locks: the advisory locks and locks of tables that it holds until its end, by name, each
            with the number of savepoints that were set before.
        holds: the locks that it or its session held at its current statement. If the session
            releases one before the end, the operations recorded so far no longer name it.
        open_cursors: how many cursors may still return rows after its end; -1 if it was written
            before.
    """

    process: int
    begin: int
    began: int
    implicit: bool = False
    level: str = ""
    labels: tuple[str, ...] = ()
    operations: list[Observed] = field(default_factory=list)
    sent: int = 0
    statement: str = ""
    caller: str = ""
    client: int = 0
    savepoints: list[tuple[str, int]] = field(default_factory=list)
    own: dict[tuple[str, str], str] = field(default_factory=dict)
    seen: set[tuple[str, str]] = field(default_factory=set)
    failed: bool = False
    altered: bool = False
    cut: dict[int, Any] = field(default_factory=dict)
    bound: list[PortalPosition] = field(default_factory=list)
    number: int = 0
    unclear: bool = False
    units: dict[str, str] = field(default_factory=dict)
    awaits_log: bool = False
    outcome: Outcome | None = None
    end: int = -1
    ended: int = 0
    error: str = ""
    planned: list[tuple[str, int | None]] = field(default_factory=list)
    snapshot: int = -1
    commit_sent: int = -1
    unseen_reads: list[UnseenRead] = field(default_factory=list)
    unseen_tables: list[Table] = field(default_factory=list)
    has_doubtful_times: bool = False
    first_line: int = 0
    open_cursors: int = 0
    locks: dict[str, int] = field(default_factory=dict)
    holds: tuple[str, ...] = ()

    @property
    def has_lines(self) -> bool:
        """Return whether the history has lines of the transaction."""
        return bool(self.operations or self.unseen_reads)

    @property
    def keeps_snapshot(self) -> bool:
        """Return whether all statements of the transaction read one snapshot."""
        return self.level in ("repeatable read", "serializable")

    def read(
        self,
        table: Table,
        version: RowVersion,
        shown: str,
        columns: tuple[str, ...] = (),
        *,
        perhaps: bool = False,
    ) -> None:
        """Note the read of a row, unless the transaction has already read the same version."""
        one = table.name, version.number
        if one not in self.seen:
            if not perhaps:
                self.seen.add(one)
            made = ReadRow(table, version, shown, self.statement, self.caller, columns, perhaps)
            self.operations.append(made)

    def write(self, operation: WrittenRow) -> None:
        """Add a write to the operations."""
        self.operations.append(operation)
        if operation.version is not None:
            self.seen.discard((operation.table.name, operation.version.number))

    def set_write_caller(self, where: str, key: Mapping[str, Any], caller: str) -> None:
        """Name the ``file:line`` that caused the last write of a row.

        Args:
            where: the name of the table with its schema, quoted for SQL.
            key: the values of the row's primary key in Python, by column.
        """
        for place in range(len(self.operations) - 1, -1, -1):
            one = self.operations[place]
            if not isinstance(one, WrittenRow) or one.version is None or one.table.where != where:
                continue
            if is_key_of(one.table, one.version.values, key):
                self.operations[place] = replace(one, caller=caller)
                return

    def versions(self) -> Iterator[tuple[Table, RowVersion]]:
        """Yield the row versions read, replaced or written by the transaction."""
        for one in self.operations:
            found: Sequence[RowVersion | None]
            if isinstance(one, LoggedWrites | FoundKey):
                continue
            if isinstance(one, WrittenRow):
                found = one.old, one.version
            else:
                found = one.rows if isinstance(one, ScannedRows) else (one.version,)
            yield from ((one.table, version) for version in found if version is not None)

    def name_unit(self, source: str, name: str) -> None:
        """Note the unit of a statement. A transaction of two units belongs to none."""
        if self.units.setdefault(source, name) != name:
            self.units[source] = ""

    def unit(self) -> str:
        """Return the name of the transaction's unit; empty if it has none.

        A program that only reads, and then rolls back without an error, has not failed. In the
        history such a transaction is aborted, and would seem to be an attempt that was undone.
        """
        writes = any(isinstance(one, WrittenRow | LoggedWrites) for one in self.operations)
        if self.outcome == "fail" and not (self.failed or self.error or writes):
            return ""
        return unit_named(self.units)

    def execute(self, lock: Lock = "", session_locks: Collection[str] = ()) -> None:
        """Note that a statement was executed, and how it locked the rows it read.

        Args:
            session_locks: the locks that its session holds.
        """
        self.sent += 1
        self.holds = tuple(sorted({*self.locks, *session_locks}))
        self.statement = self.statement_now(lock)

    def statement_now(self, lock: Lock) -> str:
        """Return the name of the current statement, if it locks the rows that it reads."""
        return str(SentStatement(self.sent, lock, holds=self.holds))

    def bind(self) -> PortalPosition:
        """Return the position of a statement that is bound now."""
        position = PortalPosition(len(self.operations), len(self.savepoints))
        self.bound.append(position)
        return position

    def insert(self, position: PortalPosition, operations: Sequence[Observed]) -> None:
        """Add the operations of a statement that was bound before others were executed."""
        self.operations[position.at : position.at] = operations
        added = len(operations)
        for one in self.bound:
            if one is not position and one.at > position.at:
                one.at += added
        self.savepoints = [
            (name, at + added * (place >= position.savepoints))
            for place, (name, at) in enumerate(self.savepoints)
        ]
        position.at += added

    def roll_back_to(self, name: str) -> None:
        """Remove the operations after a savepoint."""
        for place in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[place][0] == name:
                del self.operations[self.savepoints[place][1] :]
                del self.savepoints[place + 1 :]
                self.seen = self._rows_seen()
                self.failed = False
                # The server closes the portals that were bound after the savepoint.
                self.bound = [one for one in self.bound if one.savepoints <= place]
                for bound in self.bound:
                    bound.at = min(bound.at, len(self.operations))
                self.cut = {n: o for n, o in self.cut.items() if o.position.savepoints <= place}
                self.locks = {name: at for name, at in self.locks.items() if at <= place}
                return

    def _rows_seen(self) -> set[tuple[str, str]]:
        """Return the table and version of each row that the operations have certainly read.

        SOUND BECAUSE: the rows of a portal are recorded again when the transaction ends. Those that
        a predicate read has found must not become reads behind later writes then.
        """
        seen: set[tuple[str, str]] = set()
        for operation in self.operations:
            if isinstance(operation, ReadRow) and not operation.perhaps:
                seen.add((operation.table.name, operation.version.number))
            elif isinstance(operation, ScannedRows):
                certain = not (operation.perhaps or operation.is_loose)
                rows = operation.rows if certain else ()
                seen |= {(operation.table.name, version.number) for version in rows}
            elif isinstance(operation, WrittenRow) and operation.version is not None:
                seen.discard((operation.table.name, operation.version.number))
        return seen

    def release(self, name: str) -> None:
        """Remove a savepoint and all savepoints set after it."""
        for place in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[place][0] == name:
                del self.savepoints[place:]
                for bound in self.bound:
                    bound.savepoints = min(bound.savepoints, place)
                self.locks = {name: min(at, place) for name, at in self.locks.items()}
                return
