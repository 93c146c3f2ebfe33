"""Replays transactions with the definitions that tables have at each position of the log.

When the log changes a table's definition, its rows get the values of new columns from a snapshot at
a later position, without the changes that the log contains up to there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.observe.log import events
from isolang.observe.log.assembler import EventGroup, WrittenRows
from isolang.observe.log.definitions import Definition
from isolang.observe.log.events import (
    Collation,
    LogError,
    LoggedQuery,
    TableMap,
    columns_of,
    decode_rows,
    decoders_of,
    fits,
)
from isolang.observe.log.replay import (
    COMMENTS,
    DEFINITIONS,
    DIFFERENT,
    EVENTS,
    STATEMENTS,
    Key,
    LogReplay,
    ReplayedChange,
    Rows,
    difference,
)
from isolang.observe.log.stream import LogPosition
from isolang.observe.log.tables import (
    SEQUENCE,
    SYSTEM_SCHEMAS,
    Catalogue,
    LoggedColumn,
    LoggedTable,
    Name,
    Row,
)
from isolang.observe.log.values import Decoder, UnknownTypeError

_ALTERED_AGAIN: Final = "altered again before its rows could be read"
_MOST_BOUND: Final = 1000  # how many table maps are remembered with their tables
_SYSTEM_TABLE: Final = "a table of the system"
_MARK: Final = re.compile(r"\s*/\*(i\d+\.p?\d+)\*/")


class LoggedStatement(Struct, eq=False):
    """The changes of a statement.

    Attributes:
        comment: the statement's text in the log; empty if the log does not contain it.
        mark: what the comment in front of the text says: ``i3.17``; empty without one.
    """

    comment: str = ""
    mark: str = ""
    changes: list[ReplayedChange] = []


class Group(Struct, eq=False):
    """A committed transaction, or the change of a definition, in the order of the log.

    Attributes:
        position: the position behind the transaction.
        ddl: the statement that changed a definition.
        defined: the tables that have a new definition from here on.
    """

    gtid: str
    position: LogPosition
    statements: list[LoggedStatement] = []
    ddl: str = ""
    defined: list[LoggedTable] = []


class _Bound(Struct):
    """A table map with the table that it describes.

    Attributes:
        columns: the stored columns, by their positions; ``None`` for virtual ones.
    """

    table: LoggedTable
    columns: list[LoggedColumn | None]
    decoders: list[Decoder]


LookAhead = Callable[[Name], tuple[dict[Key, Row] | None, Sequence[EventGroup]]]


class Transactions:
    """Replays transactions, with the definitions that tables have at each position of the log."""

    def __init__(
        self,
        catalogue: Catalogue,
        rows: Rows,
        collation: Callable[[int], Collation],
        look_ahead: LookAhead,
    ) -> None:
        """Store the definitions and rows of a snapshot.

        Args:
            look_ahead: a function that returns a table's rows at a later position, or ``None`` if
                they cannot be read, and the transactions up to there.
        """
        self.replay = LogReplay(catalogue.tables, catalogue.foreign, rows)
        self._catalogue, self._collation, self._look_ahead = catalogue, collation, look_ahead
        self._bound: dict[int, tuple[TableMap, _Bound]] = {}
        self._generations = dict.fromkeys(catalogue.tables, 1)

    def apply(self, transaction: EventGroup, end: LogPosition) -> Group:
        """Return a transaction's changes, after applying them to the rows."""
        self._defined: list[LoggedTable] = []
        group = Group(transaction.gtid.name, end, defined=self._defined)
        for query in transaction.definitions:
            group.ddl = query.text
            group.statements.append(self._define(query))
        problems = self.replay.problems
        for text in transaction.others:
            problems.add(STATEMENTS, None, text[:200])
        for written in transaction.statements:
            group.statements.append(self._statement(written))
        return group

    def _statement(self, written: WrittenRows) -> LoggedStatement:
        match = _MARK.match(written.comment)
        statement = LoggedStatement(written.comment, match[1] if match else "")
        for table_map, rows in written.rows:
            bound = self._bind(table_map)
            if bound.table.why:
                if bound.table.why not in (SEQUENCE, _SYSTEM_TABLE):
                    statement.changes.append(ReplayedChange("unknown", bound.table))
                continue
            if not written.comment:
                self.replay.problems.add(COMMENTS, bound.table, bound.table.name)
            try:
                for before, after in decode_rows(rows, bound.decoders):
                    statement.changes += self.replay.apply(
                        bound.table,
                        _row(bound, before),
                        _row(bound, after),
                        cascades=not rows.ignores_foreign_keys,
                    )
            except (UnknownTypeError, LogError, IndexError, ValueError) as error:
                self.replay.problems.add(EVENTS, bound.table, str(error))
        return statement

    def _bind(self, table_map: TableMap) -> _Bound:
        """Return the table that a table map describes."""
        cached = self._bound.get(id(table_map))
        if cached is not None and cached[0] is table_map:
            return cached[1]
        name = table_map.schema, table_map.name
        table = self.replay.tables.get(name)
        if table is None or not (table.why or fits(table_map, [*table.columns.values()])):
            table = self._redefine(table_map)
        columns = [*table.columns.values()]
        decoders = []
        if not table.why:
            try:
                decoders = decoders_of(table_map, columns)
            except UnknownTypeError as error:
                table.why = f"a column of {error}"
        stored = [None if column.virtual else column for column in columns]
        bound = _Bound(table, stored, decoders)
        if len(self._bound) >= _MOST_BOUND:  # the server sends new maps after it has closed a table
            self._bound.clear()
        self._bound[id(table_map)] = table_map, bound
        return bound

    def _redefine(self, table_map: TableMap) -> LoggedTable:
        """Return a table as the log defines it: the catalogue is already another one.

        The rows that it has are not known in this definition.
        """
        name = table_map.schema, table_map.name
        table = LoggedTable(schema=name[0], name=name[1])
        if name[0] in SYSTEM_SCHEMAS:
            table.why = _SYSTEM_TABLE
        elif not self._catalogue.observes(name[0]):
            table.why = "another database"
        elif not table_map.names or not table_map.key:
            table.why = "a definition that the log does not contain"
        else:
            now = self._catalogue.tables.get(name)
            columns = columns_of(table_map, self._collation, {} if now is None else now.columns)
            table.columns = {column.name: column for column in columns}
            table.key = [columns[n].name for n in table_map.key]
        if self.replay.rows.get(name):
            table.why = table.why or _ALTERED_AGAIN
            self.replay.problems.add(DEFINITIONS, table, f"{name[0]}.{name[1]}")
        self._add(table)
        self._refresh()
        return table

    def _add(self, table: LoggedTable) -> None:
        """Add a new definition of a table, without rows."""
        name = table.schema, table.name
        table.generation = self._generations[name] = self._generations.get(name, 0) + 1
        self.replay.tables[name] = table
        self.replay.rows[name] = {}
        self._defined.append(table)

    def _refresh(self) -> None:
        self._bound.clear()
        self.replay.set_foreign_keys(self._catalogue.foreign)

    def _define(self, query: LoggedQuery) -> LoggedStatement:
        """Apply the change of a definition."""
        match = _MARK.match(query.text)
        statement = LoggedStatement(query.text, match[1] if match else "")
        definition = Definition(query.text, query.schema)
        if definition.kind == "other":
            return statement
        if definition.kind == "truncate":
            for name in definition.tables:
                statement.changes += self._drop(name, keep=True)
            return statement
        try:
            self._catalogue.load()
        except Exception as error:
            self.replay.problems.add(DEFINITIONS, None, f"{query.text[:100]}: {error}")
        names = definition.tables
        if definition.kind == "schema":
            names = [name for name in self.replay.tables if name[0] == definition.schema]
        for name in names:
            if definition.kind in ("schema", "drop"):
                statement.changes += self._drop(name)
            elif definition.kind == "create":
                if definition.unless_exists and name in self.replay.tables:
                    continue
                statement.changes += self._drop(name)
                if name in self._catalogue.tables:
                    self._add(self._catalogue.tables[name])
            elif definition.kind == "alter":
                statement.changes += self._alter(name, definition.renamed.pop(name, name))
        for old, new in definition.renamed.items():
            # Behind an earlier ALTER in a hurry, the columns may be others, too.
            known = new in self._catalogue.tables
            statement.changes += self._alter(old, new) if known else self._rename(old, new)
        self._refresh()
        return statement

    def _drop(self, name: Name, *, keep: bool = False) -> list[ReplayedChange]:
        table = self.replay.tables.get(name)
        if table is None:
            return []
        changes = [ReplayedChange("unknown", table)] if table.why else self.replay.empty(table)
        if not keep:
            del self.replay.tables[name]
            self.replay.rows.pop(name, None)
        return changes

    def _rename(self, old: Name, new: Name) -> list[ReplayedChange]:
        table, rows = self.replay.tables.get(old), [*self.replay.rows.get(old, {}).values()]
        changes = self._drop(old)
        if table is not None:
            self._add(replace(table, schema=new[0], name=new[1]))
            changes += self._fill(new, rows)
        return changes

    def _fill(self, name: Name, rows: Iterable[Row]) -> list[ReplayedChange]:
        table = self.replay.tables[name]
        changes = []
        for row in rows:
            changes += self.replay.apply(table, None, row)
        return changes

    def _alter(self, old: Name, new: Name) -> list[ReplayedChange]:
        """Replace a definition, with the rows that the server has made of the old ones."""
        known, table = self.replay.tables.get(old), self._catalogue.tables.get(new)
        if known is not None and table is not None and _alike(known, table):
            if old != new:
                return self._rename(old, new)
            table.generation = known.generation
            self.replay.tables[old] = table
            return []
        before = dict(self.replay.rows.get(old, {}))
        if known is not None and not known.why and not before:
            self._drop(old)
            if table is not None:
                self._add(table)
            return []
        rows, ahead = self._look_ahead(new)
        if self._is_superseded(new, ahead):
            return self._rename(old, new) if old != new else []
        changes = self._drop(old)
        if table is None:
            table = LoggedTable(schema=new[0], name=new[1])
        self._add(table)
        self._bound.clear()
        after = None if rows is None else self._undone(table, rows, ahead)
        if after is None:
            if not table.why:
                table.why = _ALTERED_AGAIN
                self.replay.problems.add(DEFINITIONS, table, f"{new[0]}.{new[1]}: {table.why}")
            return changes
        if known is not None and not known.why:
            self._compare(known, table, before, after)
        return changes + self._fill(new, after.values())

    @staticmethod
    def _is_superseded(name: Name, transactions: Sequence[EventGroup]) -> bool:
        """Return whether a table's definition changes again before its rows do."""
        for transaction in transactions:
            if any(Definition(q.text, q.schema).touches(name) for q in transaction.definitions):
                return True
            if any(m.schema == name[0] and m.name == name[1] for m in transaction.table_maps()):
                return False
        return False

    def _undone(
        self, table: LoggedTable, rows: dict[Key, Row], transactions: Sequence[EventGroup]
    ) -> dict[Key, Row] | None:
        """Return a table's rows without the changes of transactions, or ``None`` if not known."""
        name = table.schema, table.name
        changes: list[tuple[Row | None, Row | None]] = []
        for transaction in transactions:
            if any(Definition(q.text, q.schema).touches(name) for q in transaction.definitions):
                return None
            for written in transaction.statements:
                for table_map, event in written.rows:
                    if (table_map.schema, table_map.name) == name:
                        if not fits(table_map, [*table.columns.values()]):
                            return None
                        bound = self._bind(table_map)
                        changes += [
                            (_row(bound, before), _row(bound, after))
                            for before, after in decode_rows(event, bound.decoders)
                        ]
        for old, new in reversed(changes):
            later = {} if new is None else rows.pop(table.key_of({**(old or {}), **new}), {})
            if old is not None:
                rows[table.key_of(old)] = {**later, **old}
        return rows

    def _compare(
        self, old: LoggedTable, new: LoggedTable, before: dict[Key, Row], after: dict[Key, Row]
    ) -> None:
        """Compare the rows in front of ALTER with those behind it, by their common columns."""
        common = [name for name, column in old.columns.items() if new.columns.get(name) == column]
        if not set(old.key) <= set(common) or old.key != new.key:
            return
        for key in {**before, **after}:
            actual = _only(common, after.get(key))
            replayed = _only(common, before.get(key))
            if actual != replayed:
                self.replay.problems.add(DIFFERENT, new, difference(new, actual, replayed))


def _alike(table: LoggedTable, other: LoggedTable) -> bool:
    """Return whether two definitions have the same columns and keys."""
    same = table.columns == other.columns and table.key == other.key
    return same and table.why == other.why


def _only(names: Iterable[str], row: Row | None) -> Row | None:
    return None if row is None else {name: row[name] for name in names if name in row}


def _row(bound: _Bound, texts: events.Texts | None) -> Row | None:
    if texts is None:
        return None
    row: Row = {}
    for n, text in texts.items():
        column = bound.columns[n]
        if column is not None:
            row[column.name] = column.value(text)
    return row
