"""Collects the observed operations of an application's transactions, and the versions written.

Operations that cannot be observed are left out of the history and counted. They are never guessed:
a history that lacks operations never accuses a correct database.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from isolang.history.row_text import Row, SeenRow, read_text, written_text
from isolang.history.statements import Lock, SentStatement
from isolang.observe.closed import Step, Trace, TracedRead, TracedWrite
from isolang.observe.drivers.callers import caller
from isolang.run.drivers.postgres import classify
from isolang.run.outcome import Driver, Failure, Phase

if TYPE_CHECKING:
    from isolang.run.operation import RecordedOperation
    from isolang.run.record.recorder import Recorder

HALF_OF_NUMBERS: Final = 2**31  # PostgreSQL compares transaction numbers modulo 2**32
FIRST_NUMBER: Final = 3  # smaller numbers represent versions older than all transactions


class WrittenVersions:
    """The row versions written by watched transactions.

    Args:
        all_known: whether the history will also get the writes of unwatched clients, from the
            database's log.

    Attributes:
        before: the number of the oldest transaction that was running when the watch began; ``None``
            until it is known.
    """

    def __init__(self, *, all_known: bool = False) -> None:
        self._all_known = all_known
        self.before: int | None = None
        self._written: set[tuple[str, int]] = set()

    def note_write(self, key: str, version: int) -> None:
        """Record that a watched transaction has written a row's version."""
        self._written.add((key, version))

    def forget(self, written: Iterable[tuple[str, int]]) -> None:
        """Remove written versions, because their transaction's operations were removed."""
        self._written.difference_update(written)

    def value(
        self, key: str, version: int, *, after: int | None = None
    ) -> tuple[int | None] | tuple[()]:
        """Return a tuple with the value representing a version in the history.

        The tuple contains ``None`` for a version written before the watch began. It is empty if the
        history has no writer for the version.

        Args:
            key: the key of the row.
            version: the number of the transaction that wrote the version, as in ``xmin``.
            after: the number of the reading transaction, if it may have written versions that the
                watch did not recognise. A version with a later number may be its own, because a
                write after a savepoint gets a later number.
        """
        if (key, version) in self._written:
            return (version,)
        assert self.before is not None  # it is set before the first transaction begins
        if version < FIRST_NUMBER or 0 < (self.before - version) % 2**32 < HALF_OF_NUMBERS:
            return (None,)
        if after is not None and 0 < (version - after) % 2**32 < HALF_OF_NUMBERS:
            return ()
        return (version,) if self._all_known else ()


class ObservedTransaction:
    """A transaction of the application, with its observed operations."""

    def __init__(self, session: Hashable, recorder: Recorder, *, versions: bool = False) -> None:
        self._versions = versions
        self.operations: list[RecordedOperation] = []
        self.number: int | None = None  # the number of the transaction, once it is known
        self.unclear = False  # whether the watch may have missed some of its writes
        self.committing = False
        self.alone = False  # whether it is a single statement in autocommit mode
        self.failed = False
        self._own: dict[str, Any] = {}  # the last written value of each row
        self._remarks: list[
            tuple[str, SeenRow | None]
        ] = []  # for each operation, its caller and its row
        self._statements: list[str] = []  # the statement of each operation
        self._current = SentStatement(0)
        self._where = ""
        self.steps: list[Step] = []  # the operations, in more detail
        self._savepoints: list[tuple[str, int, int]] = []
        driver = Driver(commit=_do_nothing, rollback=_do_nothing, classify=self._classify)
        self._t = recorder.transaction(session, driver=driver).__enter__()
        self._begun = self._t.index

    def sent(self, lock: Lock = "") -> None:
        """Note that the application has sent a statement, and how it locks rows."""
        self._current = SentStatement(self._current.number + 1, lock)
        self._where = ""

    @property
    def statement(self) -> str:
        """The text of the current statement in the history; empty if none has been sent."""
        return str(self._current) if self._current.number else ""

    @property
    def where(self) -> str:
        """The ``file:line`` in the application that sent the current statement."""
        self._where = self._where or caller()
        return self._where

    def read(
        self, key: str, value: Any, seen: SeenRow | None = None, *, table: str = "", number: int = 0
    ) -> bool:
        """Add a read of a row, and return whether it was added.

        A read is not added if the transaction has written another version with the same key.

        SOUND BECAUSE: a transaction sees its own write of a key, so the different version belongs
        to another row. In a snapshot of the whole transaction, a row that other transactions have
        deleted stays visible next to the row that this transaction inserted with the same key.

        Args:
            key: the key of the row.
            value: the value read.
            seen: the known columns of the row; ``None`` if none are known.
            table: the row's table in the history, if conditions on it may be recorded; otherwise
                empty.
            number: the number of the version.
        """
        if self._own.get(key, value) != value:
            return False
        self.operations.append(("r", key, value))
        self._remarks.append((self.where, seen))
        self._statements.append(self.statement)
        if table:
            shown, where = "" if seen is None else read_text(seen), self._remarks[-1][0]
            self.steps.append(
                TracedRead(
                    table=table,
                    key=key,
                    number=number,
                    value=value,
                    caller=where,
                    shown=shown,
                    statement=self.statement,
                )
            )
        return True

    def write(
        self,
        key: str,
        value: Any,
        seen: SeenRow | None = None,
        *,
        step: TracedWrite | None = None,
    ) -> None:
        """Add a write of a row, merging it with the row's last write if that has the same value.

        Args:
            key: the key of the row.
            value: the written value.
            seen: the known columns of the row; ``None`` if none are known.
            step: the write in more detail, if conditions on the table may be recorded. Its caller
                and text are filled in.
        """
        if step is not None:
            known = [
                one
                for one, (_, other, _) in zip(self._remarks, self.operations, strict=True)
                if other == key
            ]
            earlier = known[-1][1] if known else None
            whole = _with_earlier_columns(seen, earlier.row if earlier else {})
            shown = "" if whole is None else written_text(whole)
            self.steps.append(
                replace(step, caller=self.where, shown=shown, statement=self.statement)
            )
        self._own[key] = value
        places = [n for n, (_, one, _) in enumerate(self.operations) if one == key]
        writes = [n for n in places if self.operations[n][0] == "w"]
        if writes and self.operations[writes[-1]][2] == value:
            where, earlier = self._remarks[writes[-1]]
            self._remarks[writes[-1]] = (
                where,
                _with_earlier_columns(seen, earlier.before if earlier else {}),
            )
            return
        _, earlier = self._remarks[places[-1]] if places else ("", None)
        self.operations.append(("w", key, value))
        self._remarks.append(
            (self.where, _with_earlier_columns(seen, earlier.row if earlier else {}))
        )
        self._statements.append(self.statement)

    def set_write_caller(self, key: str, where: str) -> None:
        """Set the ``file:line`` in the application that caused the last write of a row."""
        for n, (name, one, _) in reversed(list(enumerate(self.operations))):
            if (name, one) == ("w", key):
                self._remarks[n] = where, self._remarks[n][1]
                break
        for n, step in reversed(list(enumerate(self.steps))):
            if isinstance(step, TracedWrite) and step.key == key:
                self.steps[n] = replace(step, caller=where)
                break

    def _rows(self) -> Iterator[str]:
        """Yield each operation's row as text; yield an empty string if the row is unknown."""
        changed = {
            key: seen.changed()
            for (name, key, _), (_, seen) in zip(self.operations, self._remarks, strict=True)
            if name == "w" and seen is not None
        }
        for (name, key, _), (_, seen) in zip(self.operations, self._remarks, strict=True):
            if seen is None:
                yield ""
            else:
                yield written_text(seen) if name == "w" else read_text(seen, changed.get(key, ()))

    def savepoint(self, name: str) -> None:
        """Record a savepoint, and the number of operations before it."""
        self._savepoints.append((name, len(self.operations), len(self.steps)))

    def release(self, name: str) -> None:
        """Remove a savepoint and all later savepoints, whose names may be used again."""
        del self._savepoints[self._index(name) :]

    def roll_back_to(self, name: str) -> None:
        """Remove all operations after a savepoint, and keep the savepoint itself."""
        index = self._index(name)
        _, operations, steps = self._savepoints[index] if self._savepoints else ("", 0, 0)
        del self.operations[operations:]
        del self.steps[steps:]
        del self._remarks[len(self.operations) :]
        del self._statements[len(self.operations) :]
        self._own = {key: value for name, key, value in self.operations if name == "w"}
        del self._savepoints[index + 1 :]

    def _index(self, name: str) -> int:
        """Return the index of the last savepoint with this name; return 0 if there is none."""
        found = [n for n, (one, _, _) in enumerate(self._savepoints) if one == name]
        return found[-1] if found else 0

    def clear(self) -> list[tuple[str, Any]]:
        """Remove all operations. Return the key and value of each removed write."""
        written = [(key, value) for name, key, value in self.operations if name == "w"]
        self.operations.clear()
        self.steps.clear()
        self._remarks.clear()
        self._statements.clear()
        self._own.clear()
        return written

    def announce(self) -> None:
        """Write the operations to the history before COMMIT is sent."""
        self.committing = True
        self._record()
        self._t.announce()

    def end(self, error: BaseException | None) -> Trace:
        """Write the outcome to the history, and the operations if they have not been written yet.

        Args:
            error: the exception that ended the transaction; ``None`` if it succeeded.
        """
        if not self.committing:
            self._record()
        self._t.__exit__(None if error is None else type(error), error, None)
        return Trace(self._begun, self._t.index, self._t.outcome or "maybe", tuple(self.steps))

    def _record(self) -> None:
        if self._versions and self.number is not None:
            self._t.transaction_name = str(self.number)
        for name, key, value in self.operations:
            stated = str(value) if self._versions and isinstance(value, int) else None
            (self._t.read if name == "r" else self._t.write)(key, value, stated)
        self._t.callers = [where for where, _ in self._remarks]
        self._t.rows = list(self._rows())
        self._t.statements = self._statements

    def _classify(self, error: BaseException, phase: Phase) -> Failure:
        return classify(error, "commit" if self.committing or self.alone else "statement")


def _with_earlier_columns(seen: SeenRow | None, before: Row) -> SeenRow | None:
    """Add the columns that the transaction saw before a write to the written row."""
    return None if seen is None else replace(seen, before={**seen.before, **before})


def _do_nothing(connection: object) -> None:
    """Do nothing, because the application itself commits and rolls back."""
