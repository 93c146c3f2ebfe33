"""Yields the committed transactions in a MariaDB server's log, while the server writes it.

An observation starts with a snapshot, of which the server knows the position in the log. A thread
reads the log from there, and replays each transaction. A bounded queue holds what the observer has
not taken, so the thread waits for it, and the memory does not grow with the log.

To compare the replayed rows with the tables, the thread pauses, a second snapshot is taken, and the
thread goes on to its position, which is not before the last transaction that was replayed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from queue import Empty, Full, Queue
from typing import Any, Final

from msgspec import Struct

from isolang.errors import TargetError
from isolang.observe.log import events
from isolang.observe.log.definitions import Definition
from isolang.observe.log.events import (
    Collation,
    Event,
    Gtid,
    LogError,
    Query,
    RowsEvent,
    TableMap,
    columns_of,
    decode_rows,
    decoders_of,
    fits,
)
from isolang.observe.log.replay import (
    DEFINITIONS,
    EVENTS,
    STATEMENTS,
    Change,
    Problem,
    Replay,
    Rows,
)
from isolang.observe.log.stream import Position, Stream, position
from isolang.observe.log.tables import Catalogue, Column, Name, Row, Table
from isolang.observe.log.values import Decoder, UnknownTypeError

Connect = Callable[[], Any]

_MARK: Final = re.compile(r"\s*/\*(i\d+\.p?\d+)\*/")
_QUEUED: Final = 1000  # how many transactions wait for the observer
_POLL_S: Final = 0.2  # how often a waiting thread looks whether it must end
_ATTEMPTS: Final = 3  # how often a snapshot is tried while definitions change

_SETTINGS: Final = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_annotate_row_events": "ON",
}


class LoggedStatement(Struct, eq=False):
    """The changes of a statement.

    Attributes:
        comment: the statement's text in the log; empty if the log does not contain it.
        mark: what the comment in front of the text says: ``i3.17``; empty without one.
    """

    comment: str = ""
    mark: str = ""
    changes: list[Change] = []


class Group(Struct, eq=False):
    """A committed transaction, or the change of a definition, in the order of the log.

    Attributes:
        position: the position behind the transaction.
        ddl: the statement that changed a definition.
    """

    gtid: str
    position: Position
    statements: list[LoggedStatement] = []
    ddl: str = ""


def check_settings(connection: Any) -> list[str]:
    """Return the lines of my.cnf that the server lacks, with the present values."""
    lines = []
    with connection.cursor() as cursor:
        for name, needed in _SETTINGS.items():
            cursor.execute(f"SELECT @@global.{name}")
            value = str(cursor.fetchone()[0]).upper()
            present = {"1": "ON", "0": "OFF"}.get(value, value)
            if present != needed:
                line = name if name == "log_bin" else f"{name} = {needed}"
                lines.append(f"{line} (now {present})")
    return lines


def check_access(connect: Connect, start: Position) -> None:
    """Read the first event of the log.

    Raises:
        TargetError: the role may not.
    """
    stream = None
    try:
        stream = Stream(connect, start)
        next(iter(stream))
    except LogError as error:
        hint = "GRANT REPLICATION SLAVE ON *.* TO the role that observes"
        raise TargetError(f"mariadb: the log cannot be read: {error}; {hint}") from error
    finally:
        if stream is not None:
            stream.close()


def snapshot(connect: Connect, catalogue: Catalogue, *, most: int = 0) -> tuple[Position, Rows]:
    """Return the rows of all tables, and the position in the log of the same moment.

    A table that cannot be read, or has more than ``most`` rows if that is not 0, gets a reason why
    it is not observed.

    Raises:
        TargetError: definitions changed again and again.
    """
    for _ in range(_ATTEMPTS):
        with closing(connect()) as connection, closing(connection.cursor()) as cursor:
            at = _begin_snapshot(cursor)
            rows: Rows = {}
            for name, table in catalogue.tables.items():
                if table.why:
                    continue
                try:
                    _read_rows(cursor, table, rows.setdefault(name, {}), most)
                except Exception as error:
                    if error.args and error.args[0] in _NO_PRIVILEGE:
                        table.why = "no privilege SELECT"
                    elif not error.args or error.args[0] not in _CHANGED:
                        raise
                    else:
                        break
                if table.why:
                    del rows[name]
            else:
                connection.rollback()
                return at, rows
        catalogue.load()
    raise TargetError("mariadb: no snapshot, as definitions changed meanwhile; try again")


_NO_PRIVILEGE: Final = (1142, 1143, 1044)
_CHANGED: Final = (1412, 1054, 1146)  # a definition changed; a column, a table is missing


def _begin_snapshot(cursor: Any) -> Position:
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
    status = {name.lower(): value for name, value in cursor.fetchall()}
    if not status.get("binlog_snapshot_file"):
        raise TargetError("mariadb: the snapshot has no position in the log (log_bin)")
    return position(status["binlog_snapshot_file"], int(status["binlog_snapshot_position"]))


def _read_rows(cursor: Any, table: Table, rows: dict[Any, Row], most: int) -> None:
    limit = f" LIMIT {most + 1}" if most else ""
    name = f"{_quoted(table.schema)}.{_quoted(table.name)}"
    cursor.execute(f"SELECT CAST({table.image_sql('t')} AS BINARY) FROM {name} t{limit}")
    for (image,) in cursor.fetchall():
        row = table.row_of_texts(image.decode().split(","))
        rows[table.key_of(row)] = row
    if most and len(rows) > most:
        table.why = "more rows than --most-rows"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class _Written(Struct):
    """The rows of a statement, not yet decoded."""

    comment: str = ""
    rows: list[tuple[TableMap, RowsEvent]] = []


class _Transaction(Struct):
    """The events of a transaction."""

    gtid: Gtid
    statements: list[_Written] = []
    definitions: list[Query] = []
    others: list[str] = []  # statements that the log contains instead of rows
    rolled_back: bool = False


class Assembler:
    """Joins events to transactions."""

    def __init__(self) -> None:
        """Start in front of a transaction."""
        self._open: _Transaction | None = None
        self._maps: dict[int, TableMap] = {}
        self._bodies: dict[bytes, tuple[int, TableMap]] = {}
        self._prepared: dict[bytes, _Transaction] = {}
        self.unknown: list[str] = []

    def feed(self, event: Event) -> _Transaction | None:
        """Return the transaction that ends with an event."""
        if event.kind == events.GTID:
            self._open = _Transaction(events.parse_gtid(event))
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
            transaction.statements.append(_Written(events.parse_annotation(event)))
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

    def _end(self) -> _Transaction | None:
        transaction, self._open = self._open, None
        return transaction

    def _add_map(self, body: bytes) -> None:
        if body not in self._bodies:
            if len(self._bodies) >= _QUEUED:
                self._bodies.clear()
            self._bodies[body] = events.parse_table_map(body)
        number, table = self._bodies[body]
        self._maps[number] = table

    def _add_rows(self, transaction: _Transaction, rows: RowsEvent) -> None:
        if not transaction.statements:
            transaction.statements.append(_Written())
        if rows.rows:  # an event without rows only ends its statement
            transaction.statements[-1].rows.append((self._maps[rows.table], rows))

    def _add_query(self, transaction: _Transaction, query: Query) -> _Transaction | None:
        words = query.text.split(None, 3)
        word = words[0].upper() if words else ""
        if word == "XA":
            return self._complete(transaction, query)
        if word in ("COMMIT", "ROLLBACK") and len(words) == 1:
            transaction.rolled_back = word == "ROLLBACK"
            return self._end()
        if word == "SAVEPOINT" or (word == "BEGIN" and len(words) == 1):
            return None
        if word == "ROLLBACK":  # to a savepoint: rows that are in the log did not stay
            transaction.others.append(query.text)
            return None
        if transaction.gtid.standalone:
            transaction.definitions.append(query)
            return self._end()
        if word in _DEFINING:
            transaction.definitions.append(query)
        else:
            transaction.others.append(query.text)
        return None

    def _complete(self, transaction: _Transaction, query: Query) -> _Transaction | None:
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


class _Bound(Struct):
    """A table map with the table that it describes.

    Attributes:
        names: the names of the stored columns, by their positions; ``None`` for virtual ones.
    """

    table: Table
    columns: list[Column | None]
    decoders: list[Decoder]


class Transactions:
    """Replays transactions, with the definitions that tables have at each position of the log."""

    def __init__(
        self, catalogue: Catalogue, rows: Rows, collation: Callable[[int], Collation]
    ) -> None:
        """Store the definitions and rows of a snapshot."""
        self.replay = Replay(catalogue.tables, catalogue.foreign, rows)
        self._catalogue, self._collation = catalogue, collation
        self._bound: dict[int, tuple[TableMap, _Bound]] = {}

    def apply(self, transaction: _Transaction, end: Position) -> Group:
        """Return a transaction's changes, after applying them to the rows."""
        group = Group(transaction.gtid.name, end)
        for query in transaction.definitions:
            group.ddl = query.text
            group.statements.append(self._define(query))
        problems = self.replay.problems
        for text in transaction.others:
            problems.add(STATEMENTS, None, text[:200])
        if transaction.rolled_back:
            problems.add(STATEMENTS, None, "a group that ends with ROLLBACK")
        for written in transaction.statements:
            group.statements.append(self._statement(written))
        return group

    def _statement(self, written: _Written) -> LoggedStatement:
        match = _MARK.match(written.comment)
        statement = LoggedStatement(written.comment, match[1] if match else "")
        for table_map, rows in written.rows:
            bound = self._bind(table_map)
            if bound.table.why:
                statement.changes.append(Change("unknown", bound.table))
                continue
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
        if table is None or not fits(table_map, [*table.columns.values()]):
            table = self._redefine(table_map, table)
        columns = [*table.columns.values()]
        decoders = []
        if not table.why:
            try:
                decoders = decoders_of(table_map, columns)
            except UnknownTypeError as error:
                table.why = f"a column of {error}"
        stored = [None if column.virtual else column for column in columns]
        bound = _Bound(table, stored, decoders)
        self._bound[id(table_map)] = table_map, bound
        return bound

    def _redefine(self, table_map: TableMap, known: Table | None) -> Table:
        """Return a table as the log defines it, as no statement in the log explained it."""
        name = table_map.schema, table_map.name
        generation = 1 if known is None else known.generation + 1
        table = Table(schema=name[0], name=name[1], generation=generation)
        if name[0] in _SYSTEM_SCHEMAS:
            table.why = "a table of the system"
        elif not table_map.names or not table_map.key:
            table.why = "a definition that the log does not contain"
        else:
            columns = columns_of(table_map, self._collation)
            table.columns = {column.name: column for column in columns}
            table.key = [columns[n].name for n in table_map.key]
        self.replay.problems.add(DEFINITIONS, table, f"{name[0]}.{name[1]}")
        self._replace(table)
        return table

    def _replace(self, table: Table) -> None:
        self.replay.tables[table.schema, table.name] = table
        self._bound.clear()
        self.replay.set_foreign_keys(self._catalogue.foreign)

    def _define(self, query: Query) -> LoggedStatement:
        """Apply the change of a definition."""
        match = _MARK.match(query.text)
        statement = LoggedStatement(query.text, match[1] if match else "")
        definition = Definition(query.text, query.schema)
        names = definition.tables
        if definition.kind == "schema":
            names = [name for name in self.replay.tables if name[0] == definition.schema]
        if definition.kind == "other":
            return statement
        if definition.kind != "truncate":
            with suppress(Exception):  # the next table map shows what is missing
                self._catalogue.load()
        for name in names:
            table = self.replay.tables.get(name)
            if table is None:
                self._add_table(name, 1)
            elif definition.kind != "index":
                statement.changes += self.replay.empty(table)
                if definition.kind != "truncate":
                    self._add_table(name, table.generation + 1)
        for old, new in definition.renamed.items():
            self._rename(old, new)
        self._bound.clear()
        self.replay.set_foreign_keys(self._catalogue.foreign)
        return statement

    def _add_table(self, name: Name, generation: int) -> None:
        table = self._catalogue.tables.get(name)
        if table is None:
            self.replay.tables.pop(name, None)
        else:
            table.generation = generation
            self.replay.tables[name] = table
            self.replay.rows.setdefault(name, {})

    def _rename(self, old: Name, new: Name) -> None:
        table = self.replay.tables.pop(old, None)
        rows = self.replay.rows.pop(old, {})
        self._add_table(new, 1)
        if table is not None and new in self.replay.tables:
            self.replay.rows[new] = rows


_SYSTEM_SCHEMAS: Final = ("mysql", "information_schema", "performance_schema", "sys")


def _row(bound: _Bound, texts: events.Texts | None) -> Row | None:
    if texts is None:
        return None
    row: Row = {}
    for n, text in texts.items():
        column = bound.columns[n]
        if column is not None:
            row[column.name] = column.value(text)
    return row


def collations(connect: Connect) -> Callable[[int], Collation]:
    """Return a function from a collation's number to its character set and name."""
    with closing(connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(
            "SELECT id, character_set_name, collation_name FROM information_schema.collations"
        )
        known = {number: (charset or "", name) for number, charset, name in cursor.fetchall()}
    return lambda number: known.get(number, ("", ""))


class LogReader:
    """Reads and replays the log in a thread.

    Attributes:
        replay: the rows at the position that the thread has reached. Only :meth:`finish` may read
            them while the thread runs.
        failure: why the thread has ended early.
    """

    def __init__(self, connect: Connect, catalogue: Catalogue, start: Position, rows: Rows) -> None:
        """Store the definitions, the rows and the position of a snapshot."""
        self._connect = connect
        self._transactions = Transactions(catalogue, rows, collations(connect))
        self.replay = self._transactions.replay
        self._queue: Queue[Group] = Queue(_QUEUED)
        self._gate = threading.Lock()
        self._position, self._until = start, None
        self._ended = threading.Event()
        self._abandoned = False
        self.failure = ""
        self._stream = Stream(connect, start)
        self._thread = threading.Thread(target=self._run, daemon=True, name="isolang-log")
        self._thread.start()

    _until: Position | None

    def _run(self) -> None:
        assembler = Assembler()
        try:
            for event in self._stream:
                with self._gate:
                    if self._until is not None and self._position >= self._until:
                        return
                    transaction = assembler.feed(event)
                    here = self._stream.position
                    for text in assembler.unknown:
                        self.replay.problems.add(EVENTS, None, text)
                    assembler.unknown.clear()
                    group = None
                    if transaction is not None:
                        group = self._transactions.apply(transaction, here)
                if group is not None:
                    self._put(group)
                with self._gate:
                    self._position = here
                    if self._abandoned or (self._until is not None and here >= self._until):
                        return
        except Exception as error:
            self.failure = str(error) or type(error).__name__
        finally:
            self._ended.set()

    def _put(self, group: Group) -> None:
        while not self._abandoned:
            with suppress(Full):
                self._queue.put(group, timeout=_POLL_S)
                return

    def take(self, timeout: float = 0.0) -> list[Group]:
        """Return the transactions that were read since the last call, in the order of the log.

        Args:
            timeout: the seconds to wait for the first one.
        """
        groups = []
        with suppress(Empty):
            groups.append(self._queue.get(timeout=timeout) if timeout else self._queue.get_nowait())
            while True:
                groups.append(self._queue.get_nowait())
        return groups

    def finish(self, end: Position) -> Iterator[Group]:
        """Yield the remaining transactions up to a position.

        Raises:
            TargetError: the log cannot be read any further.
        """
        with self._gate:
            self._until = end
            reached = self._position >= end
        if reached:
            self._stream.close()
        while not self._ended.is_set() or not self._queue.empty():
            yield from self.take(_POLL_S)
        self._stream.close()
        if self.failure and self._position < end:
            raise TargetError(f"mariadb: the log cannot be read: {self.failure}")

    def audited(self, catalogue: Catalogue) -> Iterator[Group]:
        """Yield the remaining transactions up to now, then compare the rows with the tables.

        The differences are :attr:`problems` afterwards.
        """
        with self._gate:  # the thread pauses, so it does not pass the position of the snapshot
            end, rows = snapshot(self._connect, catalogue)
            self._until = end
        yield from self.finish(end)
        for problem in self.replay.differences(rows):
            self.replay.problems.counts[problem.kind] += 1
            self.replay.problems.examples.append(problem)

    @property
    def problems(self) -> Sequence[Problem]:
        """Return examples of each kind of problem: if there are any, no verdict is VALID."""
        return self.replay.problems.examples

    def close(self) -> None:
        """End the thread."""
        self._abandoned = True
        self._stream.close()
        self._thread.join(5)
