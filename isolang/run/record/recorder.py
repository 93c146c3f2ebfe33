"""Writes down what clients do to a database, as a history that ``isocheck`` reads.

Soundness lives here: a history that says more than the client knows turns a correct database into
an accused one. So

* an invocation is in the file before the first statement is sent, with the values to be written;
  where they are not known before (a balance that was read first), before COMMIT is sent: a client
  that dies earlier has committed nothing. Its place in the order is that of its begin;
* a completion is in the file after the answer, one line, one system call: what is killed loses
  nothing that happened before;
* *aborted* means that the server cannot have applied it; every other error from COMMIT on is
  *maybe* (``:info``), and the session goes on as a new ``:process``;
* a value that no history can hold (a lone surrogate, NaN) makes its transaction *maybe*, without
  what cannot be said of it: the other transactions go on;
* the order of ``:index`` is real time: it is drawn from one counter, before the first statement is
  sent and after the answer to COMMIT has come. ``:time`` is nanoseconds of one monotonic clock.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import monotonic_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from isolang._native import recorded_line
from isolang.errors import HistoryError, IsolangError
from isolang.run.operation import Recorded, between
from isolang.run.outcome import (
    BadAnswer,
    Connection,
    Driver,
    Outcome,
    commits_later,
    driver_of,
    refuse,
)
from isolang.run.record import lines
from isolang.run.record.lines import UNKNOWN_START
from isolang.run.record.steps import awaited, driven

if TYPE_CHECKING:
    from typing import Self

    from isolang.history.history import History

_T = TypeVar("_T")
_Steps: TypeAlias = Generator[Callable[[Any], object], Any, _T]

_CLOSED: Final = -1  # no file
_BLOCK: Final = 1 << 22  # bytes at the end of a file that are looked at for half a line
_JOINED: Final = re.compile(rb"[^\n]\{:index \d+, :type :")
_MAKES: Final = ("w", "delete")
_COMPLETION: Final = {"committed": "ok", "aborted": "fail", "maybe": "info"}


class Recorder:
    """A history on its way to a file.

    Attributes:
        path: of the file.
        ended: is told of each transaction that has ended: session, outcome, operations.

    >>> import sqlite3, tempfile
    >>> path = tempfile.mktemp(suffix=".edn")
    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("create table account (name primary key, balance)")
    >>> with Recorder(path) as recorder:
    ...     with recorder.transaction("alice", connection) as t:
    ...         t.write("a", 10)
    ...         _ = connection.execute("insert into account values ('a', 10)")
    ...     with recorder.transaction("bob", connection) as t:
    ...         (balance,) = connection.execute("select balance from account").fetchone()
    ...         t.read("a", balance)
    >>> recorder.history().counts()["committed"]
    2

    Any number of threads may record at a time, each session one transaction after the other.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        about: str = "",
        versions: Literal["ordered"] | None = None,
    ) -> None:
        """Begin a file.

        Args:
            path: where to write, in EDN; what is there is never overwritten.
            about: lines to put before the history, as comments.
            versions: ``"ordered"`` if the versions that operations state are integers, and those of
                a key ascend in the order in which they were installed (docs/versions.md).

        Raises:
            HistoryError: the file is there already, or cannot be written.
        """
        self.path: Final = Path(path)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._file = os.open(self.path, flags, 0o644)
        except FileExistsError:
            msg = f"{path}: the file is there already; record into a new one"
            raise HistoryError(msg) from None
        except OSError as error:
            raise HistoryError(f"{path}: cannot be written ({error.strerror})") from None
        self._indices: Iterator[int] = count()
        self._processes: Iterator[int] = count()
        self._process: dict[Hashable, int] = {}
        self._busy: dict[Hashable, RecordedTransaction] = {}
        self._began = monotonic_ns()
        self._failure: OSError | None = None
        self.ended: Callable[[Hashable, Outcome, Sequence[Recorded]], None] | None = None
        if about:
            self._write("".join(f"; {line}\n" for line in about.splitlines()).encode())
        if versions is not None:
            self._write(lines.ORDERED)

    def transaction(
        self,
        session: Hashable,
        connection: Connection | None = None,
        *,
        plan: Sequence[Recorded] = (),
        driver: Driver | None = None,
        label: str | Sequence[str] = (),
        level: str | None = None,
    ) -> RecordedTransaction:
        """Record one transaction: the block of a ``with``, or of an ``async with``.

        At the end of the block the transaction is committed, after an exception rolled back, and
        how that went is recorded; the exception goes on.

        Args:
            session: who does it; any name, a number. After an outcome that nobody knows the same
                name is a new session in the history.
            connection: to commit with, in a transaction of its own (a connection of ``psycopg``,
                ``pymysql``, ``sqlite3``, ``duckdb``, or anything with ``commit`` and ``rollback``);
                for ``async with`` these may be coroutines, as those of ``psycopg`` and SQLAlchemy.
                Without, the block commits for itself, and an exception out of it leaves the outcome
                unknown.
            plan: the operations, where they are known before: then they are in the file before the
                first one is sent. Values of reads do not count.
            driver: how to commit and roll back, and what errors mean; by default found by the
                connection's type.
            label: what to call it in the history, a name or several, for specifications that say
                more, or less, of the transactions with a label.
            level: the level that it runs at, by its name in ``.iso`` files, such as ``ser``.

        Raises:
            IsolangError: the connection cannot be committed; or, as the block begins, only with
                ``async with``, or the session's last transaction has not ended.
        """
        driver = driver or driver_of(connection)
        labels = (label,) if isinstance(label, str) else tuple(label)
        return RecordedTransaction(
            self, session, connection, tuple(plan), driver, labels=labels, level=level
        )

    def initially(self, values: Mapping[Any, Any]) -> None:
        """Say what keys held before the first transaction, where that is not nothing.

        Recorded as a first transaction, which writes them: else a read of what was there is one of
        a value that nobody wrote.

        Args:
            values: by key.

        Raises:
            IsolangError: a transaction has begun already.
        """
        if self._process:
            msg = f"{self.path}: what keys held at first is said before the first transaction"
            raise IsolangError(msg)
        with self.transaction("initially") as transaction:
            for key, value in values.items():
                transaction.write(key, value)

    def note(self, what: str, value: str = "") -> None:
        """Record an event that is no client's, such as a fault: a line of the process ``:nemesis``.

        Args:
            what: a word, such as ``kill``.
            value: more about it.
        """
        self._write(lines.note(next(self._indices), self.now(), what, value))

    def divide(self, number: int, of: int) -> None:
        """Record as one of several processes that have been forked and write to one file.

        SOUND BECAUSE: the places in the order come from the clock that all of them read, for a
        completion after the answer was there, for an invocation before anything was sent.

        Args:
            number: of this process, from 0.
            of: how many there are.
        """
        self._indices = _Clock(self._began, number, of)
        self._processes = count(number, of)

    def now(self) -> int:
        """Nanoseconds since the recording began."""
        return monotonic_ns() - self._began

    def history(self) -> History:
        """Read what was recorded so far.

        Raises:
            HistoryError: nothing was.
        """
        from isolang.history import load_history

        return load_history(self.path)

    def close(self) -> None:
        """End the file; transactions that have not ended stay of unknown outcome."""
        file, self._file = self._file, _CLOSED
        if file != _CLOSED:
            os.close(file)
            if self._failure is not None:
                cut_torn_line(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what transactions call ---

    # No lock, which threads would queue for. SOUND BECAUSE: a session is used by the one
    # transaction that has put itself into a table, which is one step; so is to draw an index.

    def _begin(self, transaction: RecordedTransaction, session: Hashable) -> tuple[int, int, int]:
        """Give the index, process and time of a transaction that begins now."""
        if self._busy.setdefault(session, transaction) is not transaction:
            msg = f"session {session!r}: a transaction begins before its last one has ended"
            raise IsolangError(f"{msg}; give each thread or connection a session of its own")
        process = self._process.get(session)
        if process is None:
            process = self._process[session] = next(self._processes)
        return next(self._indices), process, monotonic_ns()

    def _free(self, session: Hashable, outcome: Outcome) -> None:
        """Let the next transaction of a session begin."""
        if outcome == "maybe":
            del self._process[session]  # nobody knows when it took effect: a new session
        del self._busy[session]

    def _write(self, line: bytes) -> None:
        # SOUND BECAUSE: the order of events is that of :index, and the lines of one process have
        # one writer.
        try:
            if self._failure is not None:  # nobody writes behind half a line
                raise self._failure
            written = os.write(self._file, line)
            while written < len(line):  # a full disk raises at the second try
                written += os.write(self._file, line[written:])
        except OSError as error:
            self._failure = self._failure or error  # the first one says why
            ended = self._file == _CLOSED
            what = "the recording has ended" if ended else f"cannot be written ({error.strerror})"
            raise HistoryError(f"{self.path}: {what}; nothing can be added") from None


def cut_torn_line(path: Path) -> None:
    """Cut a file at the half of a line that did not fit, with what other threads wrote behind it.

    SOUND BECAUSE: lines are written before anything that others can see is done, so what was in
    the file first is a history by itself.
    """
    with suppress(OSError), path.open("rb+") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _BLOCK)
        file.seek(start)
        tail = file.read()
        end = tail.rfind(b"\n") + 1
        joined = _JOINED.search(tail, 0, end)
        if joined is not None:
            end = tail.rfind(b"\n", 0, joined.end()) + 1
        if end or not start:
            file.truncate(start + end)


class _Clock:
    """Nanoseconds as places in the order: no two threads, and no two processes, get the same."""

    def __init__(self, began: int, number: int, of: int) -> None:
        self._began, self._number, self._of = began, number, of
        self._lock = threading.Lock()
        self._last = 0

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        with self._lock:
            self._last = max(monotonic_ns() - self._began, self._last + 1)
            return self._last * self._of + self._number


class RecordedTransaction:
    """One transaction while it is recorded; of :meth:`Recorder.transaction`.

    Attributes:
        outcome: how it ended; ``None`` before.
        problem: what of it cannot be recorded; ``None`` if all can.
        operations: what it did so far.
        transaction_name: what the database calls it, where its versions are stated; else ``None``.
        callers: for each operation the ``file:line`` that it comes from; empty if not known.
        rows: for each operation the columns that it read or changed, as text; likewise.
        caller: gives the ``file:line`` of the operation that is noted, where that is to be noted.
    """

    def __init__(
        self,
        recorder: Recorder,
        session: Hashable,
        connection: Connection | None,
        plan: tuple[Recorded, ...],
        driver: Driver,
        *,
        labels: tuple[str, ...] = (),
        level: str | None = None,
    ) -> None:
        self._recorder = recorder
        self._session = session
        self._connection = connection
        self._plan = plan
        self._driver = driver
        self._labels = labels
        self._level = level
        self._began = recorder._began
        self._announced = False
        self._sent = UNKNOWN_START
        self._times: list[int] = []  # of each operation two
        self._commit: tuple[int, int] | tuple[()] = ()
        self._versions: dict[int, Any] = {}  # that operations state, by their place
        self.transaction_name: Any = None
        self.outcome: Outcome | None = None
        self.problem: BadAnswer | None = None
        self.operations: list[Recorded] = []
        self.callers: list[str] = []
        self.rows: list[str] = []
        self.caller: Callable[[], str] | None = None

    def __enter__(self) -> Self:
        if commits_later(self._connection):
            refuse(self._connection, "with an asynchronous commit", "use async with")
        return self._enter()

    async def __aenter__(self) -> Self:
        return self._enter()

    def _enter(self) -> Self:
        began = self._recorder._begin(self, self._session)
        self._index, self._process, self._when = began
        if self._plan:
            try:
                self.announce()
            except Exception as problem:  # nothing was sent
                self._end("aborted", problem)
                raise
        return self

    def read(self, key: Any, value: Any, version: Any = None) -> None:
        """Say what a read of a key returned: a value, a list, or ``None`` for the initial state.

        Args:
            key: of the register, row or list.
            value: what was read.
            version: what the database calls the version that was read, if it tells: an integer, a
                string (docs/versions.md).
        """
        if version is not None:
            self._versions[len(self.operations)] = version
        self._done(("r", key, value))

    def read_none_of(self, key: Any, values: Sequence[Any]) -> None:
        """Say that a read of a key returned none of these values: a comparison that failed."""
        self._done(("r-not-in", key, list(values)))

    def write(self, key: Any, value: Any, version: Any = None) -> None:
        """Say what is written to a key: before or after it is sent.

        Args:
            key: of the register or row.
            value: what is written.
            version: what the database calls the version that this makes, if it tells.
        """
        if version is not None:
            self._versions[len(self.operations)] = version
        self._done(("w", key, value))

    def append(self, key: Any, value: Any) -> None:
        """Say what is appended to the list of a key: before or after it is sent."""
        self._done(("append", key, value))

    def delete(self, key: Any) -> None:
        """Say that a row is deleted: before or after it is sent. Reads see it as ``None``."""
        self._done(("delete", key, None))

    def select(self, low: int, high: int, rows: Mapping[Any, Any]) -> None:
        """Say which rows there were whose value lies in a range: by their key, their value."""
        self._done(("rp", between(low, high), dict(rows)))

    def sending(self) -> None:
        """Note the time just before a statement is sent; the operation named next has times."""
        self._sent = monotonic_ns()

    def installed(self, versions: Mapping[Any, Any]) -> None:
        """Say what the database calls the versions that the transaction has made, once it tells.

        Args:
            versions: by key, of the last write of each.
        """
        last = {key: i for i, (name, key, _) in enumerate(self.operations) if name in _MAKES}
        for key, version in versions.items():
            if key in last:
                self._versions[last[key]] = version

    def _ask_connection(self) -> None:
        """Note what the connection knows of versions after it has committed."""
        made = getattr(self._connection, "installed", None)
        if made:
            self.installed(made)
        self.transaction_name = getattr(self._connection, "transaction_name", None)

    def _done(self, operation: Recorded) -> None:
        if self.caller is not None:
            self.callers.append(self.caller())
        self.operations.append(operation)
        self._times += (self._sent, monotonic_ns())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        driven(self._ending(error), lambda step: step(self._connection))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await awaited(self._ending(error), lambda step: step(self._connection))

    def _ending(self, error: BaseException | None) -> _Steps[None]:
        """End the transaction; each step is a call that is given the connection."""
        if not self._announced:
            try:
                self.announce()
            except Exception as problem:  # it cannot be written: so COMMIT is not sent
                outcome = yield from self._failed(problem)
                self._end(outcome, problem)
                raise
        if error is not None:
            outcome = yield from self._failed(error)
            self._end(outcome, error)
            return
        try:
            if self._connection is not None:
                sent = monotonic_ns()
                yield self._driver.commit
                self._commit = (sent, monotonic_ns())
                self._ask_connection()
        except BaseException as problem:
            self._end(self._not_committed(problem), problem)
            raise
        self._end("committed")
        if self.problem is not None:
            raise self.problem

    def _failed(self, error: BaseException) -> _Steps[Outcome]:
        """The outcome after an exception in the block, before COMMIT was sent."""
        if self._connection is None:  # the block commits for itself
            return self._driver.classify(error, "commit")
        try:
            yield self._driver.rollback
        except Exception:
            return "maybe"
        except BaseException as stopped:  # a task that is cancelled while it rolls back
            self._end("maybe", stopped)
            raise
        return self._driver.classify(error, "statement")

    def _not_committed(self, error: BaseException) -> Outcome:
        """The outcome after COMMIT raised."""
        outcome: Outcome = self._driver.classify(error, "commit")
        if outcome == "maybe" and self._driver.resolve is not None:
            outcome = self._driver.resolve(self._connection)
        return outcome

    def announce(self) -> None:
        """Write down what is to be written, where it was not planned; COMMIT may be sent next.

        Raises:
            BadAnswer: it cannot be written; the line without it is in the file.
        """
        planned = self._plan or self.operations
        self._announced = True
        line = self._line("invoke", planned)
        self._recorder._write(lines.with_names(line, self._labels, self._level))
        if self.problem is not None:
            raise self.problem

    def _end(self, outcome: Outcome, error: BaseException | None = None) -> None:
        recorder, done = self._recorder, self.operations
        try:
            if outcome == "maybe" and len(self._plan) > len(done):
                # What was to come, too; what its reads return is not known.
                rest = self._plan[len(done) :]
                done = [*done, *((n, key, None if n == "r" else value) for n, key, value in rest)]
            self._when, self._index = monotonic_ns(), next(recorder._indices)
            line = self._line(_COMPLETION[outcome], done)
            if self.problem is not None and outcome == "committed":
                outcome = "maybe"
            if self.problem is None:
                line = lines.with_remarks(line, self.callers, self.rows, len(done))
            if (self._versions or self.transaction_name is not None) and self.problem is None:
                stated = [self._versions.get(place) for place in range(len(done))]
                line = lines.with_versions(line, stated, self.transaction_name)
            if error or self.problem:
                line = lines.with_error(line, error or self.problem or BadAnswer())
            recorder._write(line)
        finally:
            self.outcome = outcome
            if recorder.ended is not None:
                recorder.ended(self._session, outcome, done)
            recorder._free(self._session, outcome)

    def _line(self, kind: str, operations: Sequence[Recorded]) -> bytes:
        """The line of an event, without what cannot be recorded: that is the transaction's problem.

        SOUND BECAUSE: a transaction with a problem is not recorded as committed, and reads of one
        that is not say nothing without a value. Who reads what it wrote has the same problem.
        """
        planned = kind == "invoke"
        times = [] if planned or self._sent == UNKNOWN_START else self._times
        head, commit = (self._process, self._when, self._began), () if planned else self._commit

        def spelt(kind: str, some: Sequence[Recorded], times: list[int]) -> bytes:
            return recorded_line(
                self._index, kind, *head, some, planned, times, commit, lines.spell
            )

        try:
            return spelt(kind, operations, times)
        except Exception:
            sound = []
            for operation in operations:
                name, key, value = (*operation, None)[:3] if operation else ("?", None, None)
                for one in (operation, ("r", key, None)):
                    try:
                        spelt("info", [one], [])
                    except Exception as error:
                        shown = f"{ascii(name)[:20]} of {ascii(key)[:80]}"
                        what = " ".join(str(error).split())
                        self.problem = BadAnswer(
                            f"{shown}: {ascii(value)[:80]} cannot be recorded ({what})"
                        )
                        if name != "r":
                            break
                    else:
                        sound.append(one)
                        break
            return spelt("info" if kind == "ok" else kind, sound, [])
