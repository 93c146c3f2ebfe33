"""Records the transactions of clients in a history that ``isocheck`` can read.

Soundness depends on the recorder: a history that claims more than its clients know may convict a
correct database. Therefore:

* an invocation, with the values that the transaction will write, is in the file before the first
  statement is sent. If these values depend on a read, the invocation is in the file before COMMIT
  is sent; that suffices, because a client that dies earlier has committed nothing. The invocation
  is ordered at the point where the transaction began;
* a completion is written after the response has arrived, as one line, in one system call. Therefore
  killing the process loses nothing that has already been written;
* *aborted* means that the server cannot have applied the transaction. After any other error once
  COMMIT has been sent, the outcome is *maybe* (``:info``), and the session continues as a new
  ``:process``;
* a value that no history can contain (a lone surrogate, NaN) is left out, and the outcome of its
  transaction becomes *maybe*; other transactions are not affected;
* the order of ``:index`` agrees with real time, because a single counter yields all indices: the
  index of an invocation before the first statement is sent, and that of a completion after the
  response to COMMIT. ``:time`` is in nanoseconds, and comes from a single monotonic clock.
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
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from typing import Literal as OneOf

from isolang._native import recorded_line
from isolang.errors import HistoryError, IsolangError, message_in_one_line
from isolang.run.operation import RecordedOperation
from isolang.run.outcome import (
    BadAnswer,
    Connection,
    Driver,
    Outcome,
    driver_of,
    is_async,
    refuse_connection,
)
from isolang.run.record import lines
from isolang.run.record.lines import UNKNOWN_START
from isolang.run.record.operations import RecordedOperations
from isolang.run.record.steps import run_steps, run_steps_async

if TYPE_CHECKING:
    from typing import Self

    from isolang.history.history import History

_T = TypeVar("_T")
_Steps: TypeAlias = Generator[Callable[[Any], object], Any, _T]

_CLOSED_FILE: Final = -1  # represents a closed file
_BLOCK: Final = 1 << 22  # how many bytes at the end of a file are searched for a torn line
_JOINED_LINES: Final = re.compile(rb"[^\n]\{:index \d+, :type :")
_COMPLETION_TYPE: Final = {"committed": "ok", "aborted": "fail", "maybe": "info"}


class Recorder:
    """Writes transactions into a history file.

    Attributes:
        path: the file that contains the history.
        ended: a function called when a transaction has ended, with its session, outcome and
            operations; ``None`` to call no function.
        label: a function that returns the label of a transaction that begins without one, or an
            empty string; ``None`` for no label.
        client: a function that returns the number of the client that begins a transaction, or 0;
            transactions of different clients get different sessions. ``None`` for no clients.

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

    Any number of threads may record simultaneously, but each session has only one transaction at a
    time.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        about: str = "",
        versions: OneOf["ordered"] | None = None,
    ) -> None:
        """Create the file for the history.

        Args:
            path: the file to write, in EDN; an existing file is never overwritten.
            about: lines to write as comments before the history.
            versions: ``"ordered"`` if operations state versions as integers that grow, for each
                key, in the order in which the versions were installed (docs/versions.md).

        Raises:
            HistoryError: the file already exists, or cannot be written.
        """
        self.path: Final = Path(path)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._file = os.open(self.path, flags, 0o644)
        except FileExistsError:
            msg = f"{path}: the file already exists; name a new file"
            raise HistoryError(msg) from None
        except OSError as error:
            raise HistoryError(f"{path}: cannot write the file ({error.strerror})") from None
        self._indices: Iterator[int] = count()
        self._processes: Iterator[int] = count()
        self._process: dict[Hashable, int] = {}
        self._busy: dict[Hashable, RecordedTransaction] = {}
        self._began = monotonic_ns()
        self._failure: OSError | None = None
        self.ended: Callable[[Hashable, Outcome, Sequence[RecordedOperation]], None] | None = None
        self.label: Callable[[], str] | None = None
        self.client: Callable[[], int] | None = None
        if about:
            self._write("".join(f"; {line}\n" for line in about.splitlines()).encode())
        if versions is not None:
            self._write(lines.ORDERED_LINE)

    def transaction(
        self,
        session: Hashable,
        connection: Connection | None = None,
        *,
        plan: Sequence[RecordedOperation] = (),
        driver: Driver | None = None,
        label: str | Sequence[str] = (),
        level: str | None = None,
        unit: str = "",
    ) -> RecordedTransaction:
        """Record one transaction, which is the block of a ``with`` or ``async with`` statement.

        At the end of the block the transaction is committed. An exception rolls it back, and is
        raised again after the outcome has been recorded.

        Args:
            session: the name or number of the client. After an unknown outcome, the same name is
                recorded as a new session.
            connection: the connection to commit, whose open transaction contains only the block's
                operations: a connection of ``psycopg``, ``pymysql``, ``sqlite3`` or ``duckdb``, or
                any object with ``commit`` and ``rollback``. For ``async with`` these may be
                coroutines, as in ``psycopg`` and SQLAlchemy. Without a connection the block must
                commit itself, and an exception leaves the outcome unknown.
            plan: the operations, if they are known in advance; if so, they are written to the file
                before the first operation is sent. The values of reads are ignored.
            driver: the functions that commit, roll back and classify errors; by default, those for
                the connection's type.
            label: one or more labels for the transaction in the history, for specifications that
                treat labelled transactions differently.
            level: the transaction's level, as named in ``.iso`` files, such as ``ser``.
            unit: the name of the request that the transaction belongs to, for ``--unit request``;
                by default the call of ``isolation.call``, if there is one.

        Raises:
            IsolangError: the connection cannot be committed; or, when the block begins, the
                connection needs ``async with``, or the session's last transaction has not ended.
        """
        driver = driver or driver_of(connection)
        if not label and self.label is not None and (current := self.label()):
            label = current
        labels = (label,) if isinstance(label, str) else tuple(label)
        return RecordedTransaction(
            self, session, connection, tuple(plan), driver, labels=labels, level=level, unit=unit
        )

    def initially(self, values: Mapping[Any, Any]) -> None:
        """Record the initial values of keys.

        They are recorded as writes by a first transaction. Otherwise, a read of an initial value
        would seem to return a value that no transaction wrote.

        Args:
            values: the initial value of each key.

        Raises:
            IsolangError: a transaction has already begun.
        """
        if self._process:
            msg = f"{self.path}: initial values must be recorded before the first transaction"
            raise IsolangError(msg)
        with self.transaction("initially") as transaction:
            for key, value in values.items():
                transaction.write(key, value)

    def note(self, what: str, value: str = "") -> None:
        """Record an event not caused by a client, such as a fault, for the process ``:nemesis``.

        Args:
            what: the kind of event, as one word such as ``kill``.
            value: details of the event.
        """
        self._write(lines.nemesis_line(next(self._indices), self.now(), what, value))

    def divide(self, number: int, of: int) -> None:
        """Prepare this process to record as one of several forked processes that share the file.

        SOUND BECAUSE: the position of each event comes from a clock shared by all processes. A
        process reads the clock for a completion after the response has arrived, and for an
        invocation before anything is sent.

        Args:
            number: the number of this process, beginning with 0.
            of: the number of processes.
        """
        self._indices = _Clock(self._began, number, of)
        self._processes = count(number, of)

    def now(self) -> int:
        """Return the number of nanoseconds since the recording began."""
        return monotonic_ns() - self._began

    def history(self) -> History:
        """Return the history recorded so far.

        Raises:
            HistoryError: the history is empty.
        """
        from isolang.history import read_history

        return read_history(self.path)

    def close(self) -> None:
        """Close the file; transactions that have not ended keep an unknown outcome."""
        file, self._file = self._file, _CLOSED_FILE
        if file != _CLOSED_FILE:
            os.close(file)
            if self._failure is not None:
                cut_torn_line(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- for transactions ---

    # No locks are used, because threads would queue for them. SOUND BECAUSE: only one transaction
    # uses a session, namely the transaction that has entered itself into a table in one atomic
    # step. Taking an index is an atomic step, too.

    def _begin(self, transaction: RecordedTransaction, session: Hashable) -> tuple[int, int, int]:
        """Return the index, process and time for a transaction that begins now."""
        if self._busy.setdefault(session, transaction) is not transaction:
            msg = f"session {session!r}: a transaction begins before the previous one has ended"
            raise IsolangError(f"{msg}; give each thread or connection its own session")
        process = self._process.get(session)
        if process is None:
            process = self._process[session] = next(self._processes)
        return next(self._indices), process, monotonic_ns()

    def _end_transaction(self, session: Hashable, outcome: Outcome) -> None:
        """Allow the session to begin its next transaction."""
        if outcome == "maybe":
            del self._process[session]  # the transaction may still commit, so a new session begins
        del self._busy[session]

    def _write(self, line: bytes) -> None:
        # SOUND BECAUSE: the order of events is the order of :index, and only one writer writes the
        # lines of a process.
        try:
            if self._failure is not None:  # never write after a torn line
                raise self._failure
            written = os.write(self._file, line)
            while written < len(line):  # on a full disk, the second attempt raises an error
                written += os.write(self._file, line[written:])
        except OSError as error:
            self._failure = self._failure or error  # the first error is the one to report
            ended = self._file == _CLOSED_FILE
            what = (
                "the recording has ended" if ended else f"cannot write the file ({error.strerror})"
            )
            raise HistoryError(f"{self.path}: {what}, so nothing can be added") from None


def cut_torn_line(path: Path) -> None:
    """Truncate a file at its first torn line; the lines after the torn line are lost.

    SOUND BECAUSE: each line is written before its effect is visible to other clients. Therefore any
    prefix of the file's lines is itself a history.
    """
    with suppress(OSError), path.open("rb+") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _BLOCK)
        file.seek(start)
        tail = file.read()
        end = tail.rfind(b"\n") + 1
        joined = _JOINED_LINES.search(tail, 0, end)
        if joined is not None:
            end = tail.rfind(b"\n", 0, joined.end()) + 1
        if end or not start:
            file.truncate(start + end)


class _Clock:
    """A counter whose numbers follow the clock, and are unique across threads and processes."""

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


class RecordedTransaction(RecordedOperations):
    """A transaction that is being recorded; :meth:`Recorder.transaction` creates it.

    Attributes:
        outcome: the outcome; ``None`` before the end.
        problem: the reason why an operation cannot be recorded; ``None`` if all operations can.
        transaction_name: the database's name for the transaction; ``None`` if versions are not
            recorded.
    """

    def __init__(
        self,
        recorder: Recorder,
        session: Hashable,
        connection: Connection | None,
        plan: tuple[RecordedOperation, ...],
        driver: Driver,
        *,
        labels: tuple[str, ...] = (),
        level: str | None = None,
        unit: str = "",
    ) -> None:
        super().__init__()
        self._recorder = recorder
        # Different clients have different sessions, even if they share a pooled connection.
        client = recorder.client() if recorder.client is not None else 0
        self._session = ("client", client, session) if client else session
        self._connection = connection
        self._plan = plan
        self._driver = driver
        self._labels = labels
        self._level = level
        self._unit = unit or (f"call {client}" if client else "")
        self._began = recorder._began
        self._announced = False
        self._commit: tuple[int, int] | tuple[()] = ()
        self.transaction_name: Any = None
        self.outcome: Outcome | None = None
        self.problem: BadAnswer | None = None

    @property
    def index(self) -> int:
        """Return the index of the transaction's last event in the history."""
        return self._index

    def __enter__(self) -> Self:
        if is_async(self._connection):
            refuse_connection(self._connection, "this commit is asynchronous", "use async with")
        return self._enter()

    async def __aenter__(self) -> Self:
        return self._enter()

    def _enter(self) -> Self:
        began = self._recorder._begin(self, self._session)
        self._index, self._process, self._when = began
        if self._plan:
            try:
                self.announce()
            except Exception as problem:  # no statement has been sent
                self._end("aborted", problem)
                raise
        return self

    def _record_reported_versions(self) -> None:
        """Record the version names reported by the connection after COMMIT."""
        made = getattr(self._connection, "installed", None)
        if made:
            self.installed(made)
        self.transaction_name = getattr(self._connection, "transaction_name", None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run_steps(self._ending(error), lambda step: step(self._connection))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await run_steps_async(self._ending(error), lambda step: step(self._connection))

    def _ending(self, error: BaseException | None) -> _Steps[None]:
        """End the transaction; yield each function for the caller to call with the connection."""
        if not self._announced:
            try:
                self.announce()
            except Exception as problem:  # COMMIT is not sent if the invocation cannot be written
                outcome = yield from self._roll_back(problem)
                self._end(outcome, problem)
                raise
        if error is not None:
            outcome = yield from self._roll_back(error)
            self._end(outcome, error)
            return
        try:
            if self._connection is not None:
                sent = monotonic_ns()
                yield self._driver.commit
                self._commit = (sent, monotonic_ns())
                self._record_reported_versions()
        except BaseException as problem:
            self._end(self._outcome_of_failed_commit(problem), problem)
            raise
        self._end("committed")
        if self.problem is not None:
            raise self.problem

    def _roll_back(self, error: BaseException) -> _Steps[Outcome]:
        """Roll back after an exception in the block, before COMMIT is sent; return the outcome."""
        if self._connection is None:  # the block itself sends COMMIT
            return self._driver.classify(error, "commit")
        try:
            yield self._driver.rollback
        except Exception:
            return "maybe"
        except BaseException as stopped:  # the task was cancelled during the rollback
            self._end("maybe", stopped)
            raise
        return self._driver.classify(error, "statement")

    def _outcome_of_failed_commit(self, error: BaseException) -> Outcome:
        """Return the outcome of a transaction whose COMMIT raised an error."""
        outcome: Outcome = self._driver.classify(error, "commit")
        if outcome == "maybe" and self._driver.resolve is not None:
            outcome = self._driver.resolve(self._connection)
        return outcome

    def announce(self) -> None:
        """Write the invocation, which must precede COMMIT, unless a plan has been written.

        Raises:
            BadAnswer: an operation cannot be recorded, and was left out of the file.
        """
        planned = self._plan or self.operations
        self._announced = True
        line = self._line("invoke", planned)
        line = lines.with_names(line, self._labels, self._level)
        self._recorder._write(lines.with_unit(line, self._unit))
        if self.problem is not None:
            raise self.problem

    def _end(self, outcome: Outcome, error: BaseException | None = None) -> None:
        recorder, done = self._recorder, self.operations
        try:
            if outcome == "maybe" and len(self._plan) > len(done):
                # Record the planned operations that were not performed, too; the values of their
                # reads are unknown.
                rest = self._plan[len(done) :]
                done = [*done, *((n, key, None if n == "r" else value) for n, key, value in rest)]
            self._when, self._index = monotonic_ns(), next(recorder._indices)
            line = self._line(_COMPLETION_TYPE[outcome], done)
            if self.problem is not None and outcome == "committed":
                outcome = "maybe"
            if self.problem is None:
                line = lines.with_remarks(line, self.callers, len(done), self.statements)
            if (self._versions or self.transaction_name is not None) and self.problem is None:
                stated = [self._versions.get(place) for place in range(len(done))]
                line = lines.with_versions(line, stated, self.transaction_name)
            if error or self.problem:
                line = lines.with_error(line, error or self.problem or BadAnswer())
            recorder._write(lines.with_unit(line, self._unit))
        finally:
            self.outcome = outcome
            if recorder.ended is not None:
                recorder.ended(self._session, outcome, done)
            recorder._end_transaction(self._session, outcome)

    def _line(self, kind: str, operations: Sequence[RecordedOperation]) -> bytes:
        """Return the line of an event, without the operations that cannot be recorded.

        If there are such operations, ``problem`` gives the reason. SOUND BECAUSE: a transaction
        with a problem is not recorded as committed, and a read recorded without a value asserts
        nothing. If a transaction reads back its own unrecordable value, its write is unrecordable
        too.
        """
        planned = kind == "invoke"
        times = [] if planned or self._sent == UNKNOWN_START else self._times
        head, commit = (self._process, self._when, self._began), () if planned else self._commit

        def spelled(kind: str, some: Sequence[RecordedOperation], times: list[int]) -> bytes:
            return recorded_line(
                self._index, kind, *head, some, planned, times, commit, lines.to_edn
            )

        try:
            return spelled(kind, operations, times)
        except Exception:
            sound = []
            for operation in operations:
                name, key, value = (*operation, None)[:3] if operation else ("?", None, None)
                for one in (operation, ("r", key, None)):
                    try:
                        spelled("info", [one], [])
                    except Exception as error:
                        shown = f"{ascii(name)[:20]} of {ascii(key)[:80]}"
                        what = message_in_one_line(error)
                        self.problem = BadAnswer(
                            f"{shown}: {ascii(value)[:80]} cannot be recorded ({what})"
                        )
                        if name != "r":
                            break
                    else:
                        sound.append(one)
                        break
            return spelled("info" if kind == "ok" else kind, sound, [])
