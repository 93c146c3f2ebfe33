"""Yields the committed transactions in a MariaDB server's log, while the server writes it.

An observation starts with a snapshot, of which the server knows the position in the log. A thread
reads the log from there, and replays each transaction. A bounded queue holds what the observer has
not taken, so the thread waits for it, and the memory does not grow with the log.

To compare the replayed rows with the tables, the thread pauses, a second snapshot is taken, and the
thread goes on to its position, which is not before the last transaction that was replayed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from queue import Empty, Full, Queue
from typing import Any, Final

from isolang.errors import TargetError
from isolang.observe.log.assembler import Assembler, EventGroup
from isolang.observe.log.events import Collation, Event, LogError
from isolang.observe.log.replay import EVENTS, Key, LogProblem, Rows
from isolang.observe.log.stream import LogPosition, LogStream, position
from isolang.observe.log.tables import TOO_LONG, Catalogue, Foreign, LoggedTable, Name, Row
from isolang.observe.log.transactions import Group, LoggedStatement, Transactions

__all__ = ["Group", "LogReader", "LoggedStatement", "check_access", "check_settings", "snapshot"]

Connect = Callable[[], Any]

_QUEUED: Final = 1000  # how many transactions wait for the observer
_POLL_S: Final = 0.2  # how often a waiting thread looks whether it must end
_RECONNECT_S: Final = 20  # how long a server may take to restart
_LOCK_WAIT_S: Final = 10  # how long a table may be locked by another session
_ATTEMPTS: Final = 3  # how often a snapshot is tried while definitions change

_SETTINGS: Final = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_annotate_row_events": "ON",
}


def check_settings(connection: Any) -> list[str]:
    """Return the lines of my.cnf that the server lacks, with the present values."""
    lines = []
    with connection.cursor() as cursor:
        for name, needed in _SETTINGS.items():
            cursor.execute(f"SHOW GLOBAL VARIABLES LIKE '{name}'")
            row = cursor.fetchone()  # old servers do not have all of them
            present = "not known to the server" if row is None else str(row[1]).upper()
            if present != needed:
                line = name if name == "log_bin" else f"{name} = {needed}"
                lines.append(f"{line} (now {present})")
    return lines


def check_access(connect: Connect, start: LogPosition) -> None:
    """Read the first event of the log.

    Raises:
        TargetError: the role may not.
    """
    stream = None
    try:
        stream = LogStream(connect, start)
        next(iter(stream))
    except LogError as error:
        hint = "GRANT REPLICATION SLAVE ON *.* TO the role that observes"
        raise TargetError(f"mariadb: the log cannot be read: {error}; {hint}") from error
    finally:
        if stream is not None:
            stream.close()


def snapshot(
    connect: Connect, catalogue: Catalogue, *, most: int = 0, only: Sequence[Name] | None = None
) -> tuple[LogPosition, Rows]:
    """Return the rows of tables, and the position in the log of the same moment.

    A table that cannot be read, or has more than ``most`` rows if that is not 0, gets a reason why
    it is not observed.

    Args:
        only: the tables; by default all.

    Raises:
        TargetError: definitions changed again and again.
    """
    for _ in range(_ATTEMPTS):
        with closing(connect()) as connection, closing(connection.cursor()) as cursor:
            at = _begin_snapshot(cursor)
            if only is None:
                # Behind the snapshot, so that a table that was created meanwhile is not forgotten.
                catalogue.load()
            rows: Rows = {}
            for name, table in catalogue.tables.items():
                if table.why or (only is not None and name not in only):
                    continue
                try:
                    _read_rows(cursor, table, rows.setdefault(name, {}), most)
                except Exception as error:
                    number = error.args[0] if error.args else 0
                    if number in _NO_PRIVILEGE:
                        table.why = "no privilege SELECT"
                    elif number == _LOCKED:
                        table.why = "locked by another session"
                    elif number not in _CHANGED:
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


class SnapshotPositions:
    """Tells the log's position of snapshots that are taken now, over a connection of its own.

    SOUND BECAUSE: a snapshot contains exactly the transactions in the log before its position, so
    what anybody has read of committed rows until now is there.
    """

    def __init__(self, connect: Connect) -> None:
        """Open no connection yet."""
        self._connect = connect
        self._connection: Any = None

    def position(self) -> LogPosition | None:
        """Return the position of a new snapshot; ``None`` if the server cannot be reached."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            with closing(self._connection.cursor()) as cursor:
                at = _begin_snapshot(cursor)
            self._connection.rollback()
        except Exception:  # the server may have ended the connection, and the next one may succeed
            self.close()
            return None
        return at

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()


_LONG_ROW: Final = "a row that is longer than max_allowed_packet"
_NO_PRIVILEGE: Final = (1142, 1143, 1044)
_LOCKED: Final = 1205  # a session holds a lock on the table
_CHANGED: Final = (1412, 1054, 1146)  # a definition changed; a column, a table is missing


def _begin_snapshot(cursor: Any) -> LogPosition:
    cursor.execute(f"SET SESSION lock_wait_timeout = {_LOCK_WAIT_S}")
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
    status = {name.lower(): value for name, value in cursor.fetchall()}
    if not status.get("binlog_snapshot_file"):
        raise TargetError("mariadb: the snapshot has no position in the log (log_bin)")
    return position(status["binlog_snapshot_file"], int(status["binlog_snapshot_position"]))


def _read_rows(cursor: Any, table: LoggedTable, rows: dict[Any, Row], most: int) -> None:
    limit = f" LIMIT {most + 1}" if most else ""
    name = f"{_quoted(table.schema)}.{_quoted(table.name)}"
    cursor.execute(f"SELECT CAST({table.image_sql('t')} AS BINARY) FROM {name} t{limit}")
    for (image,) in cursor.fetchall():
        if image is None:
            table.why = _LONG_ROW
            return
        row = table.row_of_texts(image.decode().split(","))
        rows[table.key_of(row)] = row
    if any(TOO_LONG in row.values() for row in rows.values()):
        table.why = _LONG_ROW
    if most and len(rows) > most:
        table.why = "more rows than --most-rows"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


SERVER_OPTIONS: Final = {
    "log-bin": "isolang", "server-id": "1", "binlog-format": "ROW", "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL", "binlog-annotate-row-events": "ON",
}  # fmt: skip
"""The options of a server that isocheck starts for an observation."""


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

    def __init__(
        self,
        connect: Connect,
        catalogue: Catalogue,
        start: LogPosition,
        rows: Rows,
        *,
        most: int = 0,
    ) -> None:
        """Store the definitions, the rows and the position of a snapshot.

        Args:
            most: the largest number of rows of a table that is observed; 0 for no limit.
        """
        self._connect, self._catalogue, self._most = connect, catalogue, most
        self._transactions = Transactions(catalogue, rows, collations(connect), self._look_ahead)
        self.replay = self._transactions.replay
        self._queue: Queue[Group] = Queue(_QUEUED)
        self._gate = threading.Lock()
        self._position = start
        self._until: LogPosition | None = None
        self._ended = threading.Event()
        self._abandoned = False
        self.failure = ""
        self._stream = LogStream(connect, start)
        self._events = iter(self._stream)
        self._complete = start  # the position behind the last whole transaction
        self._assembler = Assembler()
        self._ahead: deque[tuple[EventGroup, LogPosition]] = deque()
        self._thread = threading.Thread(target=self._run, daemon=True, name="isolang-log")
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._abandoned:
                event = None if self._ahead else self._next_event()
                if event is None and not self._ahead:
                    return
                with self._gate:
                    if self._until is not None and self._position >= self._until:
                        return
                    group = None
                    if event is not None:
                        self._feed(event)
                    here = self._stream.position
                    if self._ahead:
                        transaction, here = self._ahead.popleft()
                        group = self._transactions.apply(transaction, here)
                if group is not None:
                    self._put(group)
                with self._gate:
                    self._position = here
                    if self._until is not None and here >= self._until:
                        return
        except Exception as error:
            self.failure = str(error) or type(error).__name__
        finally:
            self._ended.set()

    def _next_event(self) -> Event | None:
        """Return the next event, after a new connection if the server has ended the old one."""
        try:
            return next(self._events, None)
        except LogError as error:
            until = time.monotonic() + _RECONNECT_S
            while not self._abandoned:
                with suppress(Exception):
                    self._stream.close()
                    self._stream = LogStream(self._connect, self._complete)
                    self._events = iter(self._stream)
                    self._assembler.restart()
                    return next(self._events, None)
                if time.monotonic() > until:
                    raise error
                time.sleep(_POLL_S)
            return None

    def _feed(self, event: Event) -> None:
        """Store the transaction that ends with an event."""
        transaction = self._assembler.feed(event)
        for text in self._assembler.unknown:
            self.replay.problems.add(EVENTS, None, text)
        self._assembler.unknown.clear()
        if self._assembler.between:
            self._complete = self._stream.position
        if transaction is not None:
            self._ahead.append((transaction, self._stream.position))

    def _look_ahead(self, name: Name) -> tuple[dict[Key, Row] | None, list[EventGroup]]:
        """Return a table's rows now, and the transactions up to there, which are still to come."""
        end, rows = snapshot(self._connect, self._catalogue, most=self._most, only=[name])
        while self._stream.position < end and (event := self._next_event()) is not None:
            self._feed(event)
        return rows.get(name), [transaction for transaction, here in self._ahead if here <= end]

    def _put(self, group: Group) -> None:
        while not self._abandoned:
            with suppress(Full):
                self._queue.put(group, timeout=_POLL_S)
                return

    @property
    def reached(self) -> LogPosition:
        """Return a position up to which :meth:`take` returns all transactions afterwards."""
        return self._position

    def take(self, timeout: float = 0.0) -> list[Group]:
        """Return the next transactions that were read, at most a thousand, in the log's order.

        Args:
            timeout: the seconds to wait for the first one.
        """
        groups: list[Group] = []
        with suppress(Empty):
            groups.append(self._queue.get(timeout=timeout) if timeout else self._queue.get_nowait())
            while len(groups) < _QUEUED:
                groups.append(self._queue.get_nowait())
        return groups

    def finish(self, end: LogPosition) -> Iterator[Group]:
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

    @property
    def foreign_keys(self) -> list[Foreign]:
        """The foreign keys of all tables, as they were last loaded."""
        return self._catalogue.foreign

    def audited(self) -> Iterator[Group]:
        """Yield the remaining transactions up to now, then compare the rows with the tables.

        The differences are :attr:`problems` afterwards.
        """
        with self._gate:  # the thread pauses, so it does not pass the position of the snapshot
            self._catalogue.load()
            observed = [name for name, table in self.replay.tables.items() if not table.why]
            end, rows = snapshot(self._connect, self._catalogue, only=observed)
            self._until = end
        yield from self.finish(end)
        for problem in self.replay.differences(rows):
            self.replay.problems.store(problem)

    @property
    def problems(self) -> Sequence[LogProblem]:
        """Return examples of each kind of problem: if there are any, no verdict is VALID."""
        return self.replay.problems.examples

    @property
    def doubtful(self) -> Collection[str]:
        """Return the names of all tables with a problem; an empty one if all may have it."""
        return self.replay.problems.tables

    def close(self) -> None:
        """End the thread."""
        self._abandoned = True
        self._stream.close()
        self._thread.join(5)
