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
* the order of ``:index`` is real time: it is drawn from one counter, before the first statement is
  sent and after the answer to COMMIT has come. ``:time`` is nanoseconds of one monotonic clock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from io import FileIO
from itertools import count
from pathlib import Path
from time import monotonic_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from isolang.errors import HistoryError, IsolangError
from isolang.history.values import Keyword, encode, show
from isolang.run.outcome import Connection, Driver, Outcome, driver_of

if TYPE_CHECKING:
    from typing import Self

    from isolang.history.history import History

Recorded: TypeAlias = tuple[str, Any, Any]
"""``("r", key, value)``, ``("w", key, value)`` or ``("append", key, value)``."""

_COMPLETION: Final = {"committed": "ok", "aborted": "fail", "maybe": "info"}


class Recorder:
    """A history on its way to a file.

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

    def __init__(self, path: str | os.PathLike[str], *, about: str = "") -> None:
        """Begin a file.

        Args:
            path: where to write, in EDN; what is there is never overwritten.
            about: lines to put before the history, as comments.

        Raises:
            HistoryError: the file is there already, or cannot be written.
        """
        self.path: Final = Path(path)
        try:
            self._file: Final = FileIO(self.path, "x", opener=_appending)
        except FileExistsError:
            msg = f"{path}: the file is there already; record into a new one"
            raise HistoryError(msg) from None
        except OSError as error:
            raise HistoryError(f"{path}: cannot be written ({error.strerror})") from None
        self._lock = threading.Lock()
        self._indices: Iterator[int] = count()
        self._processes: Iterator[int] = count()
        self._process: dict[Hashable, int] = {}
        self._busy: set[Hashable] = set()
        self._began = monotonic_ns()
        if about:
            self._write("".join(f"; {line}\n" for line in about.splitlines()))

    def transaction(
        self,
        session: Hashable,
        connection: Connection | None = None,
        *,
        plan: Sequence[Recorded] = (),
        driver: Driver | None = None,
    ) -> RecordedTransaction:
        """Record one transaction: the block of a ``with``.

        At the end of the block the transaction is committed, after an exception rolled back, and
        how that went is recorded; the exception goes on.

        Args:
            session: who does it; any name, a number. After an outcome that nobody knows the same
                name is a new session in the history.
            connection: to commit with, in a transaction of its own (a connection of ``psycopg``,
                ``pymysql``, ``sqlite3``, ``duckdb``, or anything with ``commit`` and ``rollback``).
                Without, the block commits for itself, and an exception out of it leaves the outcome
                unknown.
            plan: the operations, where they are known before: then they are in the file before the
                first one is sent. Values of reads do not count.
            driver: how to commit and roll back, and what errors mean; by default found by the
                connection's type.

        Raises:
            IsolangError: the session's last transaction has not ended.
        """
        driver = driver or driver_of(connection)
        return RecordedTransaction(self, session, connection, tuple(plan), driver)

    def note(self, what: str, value: str = "") -> None:
        """Record an event that is no client's, such as a fault: a line of the process ``:nemesis``.

        Args:
            what: a word, such as ``kill``.
            value: more about it.
        """
        said = show(*encode(value, "a note"))
        self._write(
            f"{{:index {next(self._indices)}, :type :info, :process :nemesis, "
            f":time {self.now()}, :f :{what}, :value {said}}}\n"
        )

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
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what transactions call ---

    def _begin(self, session: Hashable) -> tuple[int, int, int]:
        """Give the index, process and time of a transaction that begins now."""
        with self._lock:
            if session in self._busy:
                msg = f"session {session!r}: a transaction begins before its last one has ended"
                raise IsolangError(f"{msg}; give each thread or connection a session of its own")
            if session not in self._process:
                self._process[session] = next(self._processes)
            self._busy.add(session)
            return next(self._indices), self._process[session], self.now()

    def _complete(
        self, session: Hashable, process: int, outcome: Outcome, value: str, more: str
    ) -> None:
        self._write(
            f"{{:index {next(self._indices)}, :type :{_COMPLETION[outcome]}, :process {process}, "
            f":time {self.now()}, :f :txn, :value [{value}]{more}}}\n"
        )
        with self._lock:
            self._busy.discard(session)
            if outcome == "maybe":
                del self._process[session]  # nobody knows when it took effect: a new session

    def _write(self, text: str) -> None:
        # Without the lock, which threads would queue for while the system writes. SOUND BECAUSE:
        # the order of events is that of :index, and the lines of one process have one writer.
        if self._file.closed:
            raise HistoryError(f"{self.path}: the recording has ended; nothing can be added")
        data = text.encode()
        written = self._file.write(data) or 0
        while written < len(data):  # a full disk raises at the second try
            written += self._file.write(data[written:]) or 0


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
        operations: what it did so far.
    """

    def __init__(
        self,
        recorder: Recorder,
        session: Hashable,
        connection: Connection | None,
        plan: tuple[Recorded, ...],
        driver: Driver,
    ) -> None:
        self._recorder = recorder
        self._session = session
        self._connection = connection
        self._plan = plan
        self._driver = driver
        self._announced = False
        self._sent: int | None = None
        self._times: list[tuple[int | None, int]] = []
        self._commit_time: tuple[int, int] | None = None
        self.outcome: Outcome | None = None
        self.operations: list[Recorded] = []

    def __enter__(self) -> Self:
        self._index, self._process, self._when = self._recorder._begin(self._session)
        if self._plan:
            self.announce()
        return self

    def read(self, key: Any, value: Any) -> None:
        """Say what a read of a key returned: a value, a list, or ``None`` for the initial state."""
        self._done(("r", key, value))

    def read_none_of(self, key: Any, values: Sequence[Any]) -> None:
        """Say that a read of a key returned none of these values: a comparison that failed."""
        self._done(("r-not-in", key, list(values)))

    def write(self, key: Any, value: Any) -> None:
        """Say what is written to a key: before or after it is sent."""
        self._done(("w", key, value))

    def append(self, key: Any, value: Any) -> None:
        """Say what is appended to the list of a key: before or after it is sent."""
        self._done(("append", key, value))

    def sending(self) -> None:
        """Note the time just before a statement is sent; the operation named next has times."""
        self._sent = monotonic_ns()

    def _done(self, operation: Recorded) -> None:
        self.operations.append(operation)
        self._times.append((self._sent, monotonic_ns()))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._announced:
            self.announce()
        if error is not None:
            self._end(self._failed(error))
            return
        try:
            if self._connection is not None:
                sent = self._recorder.now()
                self._driver.commit(self._connection)
                self._commit_time = (sent, self._recorder.now())
        except BaseException as problem:
            self._end(self._not_committed(problem))
            raise
        self._end("committed")

    def _failed(self, error: BaseException) -> Outcome:
        """The outcome after an exception in the block, before COMMIT was sent."""
        if self._connection is None:  # the block commits for itself
            return self._driver.classify(error, "commit")
        try:
            self._driver.rollback(self._connection)
        except Exception:
            return "maybe"
        return self._driver.classify(error, "statement")

    def _not_committed(self, error: BaseException) -> Outcome:
        """The outcome after COMMIT raised."""
        outcome: Outcome = self._driver.classify(error, "commit")
        if outcome == "maybe" and self._driver.resolve is not None:
            outcome = self._driver.resolve(self._connection)
        return outcome

    def announce(self) -> None:
        """Write down what is to be written, where it was not planned; COMMIT may be sent next."""
        value = _planned(self._plan or self.operations)
        self._recorder._write(
            f"{{:index {self._index}, :type :invoke, :process {self._process}, "
            f":time {self._when}, :f :txn, :value [{value}]}}\n"
        )
        self._announced = True

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        done = self.operations
        value = " ".join([_operation(name, key, value) for name, key, value in done])
        if outcome == "maybe" and len(self._plan) > len(done):
            value += " " + _planned(self._plan[len(done) :])
        self._recorder._complete(self._session, self._process, outcome, value, self._clock())

    def _clock(self) -> str:
        """The times of the operations and of COMMIT, as further fields of the completion."""
        text, began = "", self._recorder._began
        if self._sent is not None:
            pairs = [
                "nil" if sent is None else f"[{sent - began} {done - began}]"
                for sent, done in self._times
            ]
            text = f", :times [{' '.join(pairs)}]"
        if self._commit_time is not None:
            text += f", :commit [{self._commit_time[0]} {self._commit_time[1]}]"
        return text


def _planned(operations: Sequence[Recorded]) -> str:
    """Operations as they stand in an invocation: what reads return is not known."""
    return " ".join(
        [_operation(name, key, None if name == "r" else value) for name, key, value in operations]
    )


def _appending(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND, 0o644)


def _operation(name: str, key: Any, value: Any) -> str:
    shown = _text(key) if type(key) is str else _atom(key)
    return f"[:{name} {shown} {value if type(value) is int else _atom(value)}]"


def _atom(value: Any) -> str:
    if value is None:
        return "nil"
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is list or kind is tuple:
        return "[" + " ".join([_atom(one) for one in value]) + "]"
    if kind is Keyword:
        return f":{value.name}"
    return show(*encode(value, "recorder"))


@lru_cache(maxsize=1 << 16)
def _text(value: str) -> str:
    """A text as an atom; most are keys, which come again and again."""
    if value.isascii() and value.isprintable() and not set(value) & {'"', "\\"}:
        return f'"{value}"'
    return show(*encode(value, "recorder"))
