"""Represents the row versions seen by sessions, and the transactions that accessed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.history.statements import Lock, SentStatement
from isolang.observe.history.evaluated import EvaluatedCondition
from isolang.observe.sql.catalogue import Table, is_key_of
from isolang.observe.sql.executed import PortalPosition

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


Observed: TypeAlias = ReadRow | ScannedRows | WrittenRow


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
        outcome: how the transaction ended; ``None`` before its end.
        end: the position of the transaction's last event.
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
    outcome: Outcome | None = None
    end: int = -1
    ended: int = 0
    error: str = ""
    planned: list[tuple[str, int | None]] = field(default_factory=list)

    def read(
        self, table: Table, version: RowVersion, shown: str, columns: tuple[str, ...] = ()
    ) -> None:
        """Note the read of a row, unless the transaction has already read the same version."""
        one = table.name, version.number
        if one not in self.seen:
            self.seen.add(one)
            made = ReadRow(table, version, shown, self.statement, self.caller, columns)
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
            written = one.version if isinstance(one, WrittenRow) else None
            if written is None or one.table.where != where:
                continue
            if is_key_of(one.table, written.values, key):
                self.operations[place] = replace(one, caller=caller)
                return

    def versions(self) -> Iterator[tuple[Table, RowVersion]]:
        """Yield the row versions read, replaced or written by the transaction."""
        for one in self.operations:
            found: Sequence[RowVersion | None]
            if isinstance(one, WrittenRow):
                found = one.old, one.version
            else:
                found = one.rows if isinstance(one, ScannedRows) else (one.version,)
            yield from ((one.table, version) for version in found if version is not None)

    def execute(self, lock: Lock = "") -> None:
        """Note that a statement was executed, and how it locked the rows it read."""
        self.sent += 1
        self.statement = str(SentStatement(self.sent, lock))

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
                self.seen = {
                    (o.table.name, o.version.number)
                    for o in self.operations
                    if isinstance(o, ReadRow)
                }
                self.failed = False
                # The server closes the portals that were bound after the savepoint.
                self.bound = [one for one in self.bound if one.savepoints <= place]
                self.cut = {n: o for n, o in self.cut.items() if o.position.savepoints <= place}
                return

    def release(self, name: str) -> None:
        """Remove a savepoint and all savepoints set after it."""
        for place in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[place][0] == name:
                del self.savepoints[place:]
                for bound in self.bound:
                    bound.savepoints = min(bound.savepoints, place)
                return
