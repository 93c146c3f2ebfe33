"""Observes the transactions of an application and the versions that they write.

What cannot be observed is left out of the history and counted, never guessed, because a history
with fewer operations accuses no database wrongly.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from isolang.history.statements import Lock, SentStatement
from isolang.observe.closed import Found, Step, Trace, Wrote
from isolang.run.drivers.postgres import classify
from isolang.run.outcome import Driver, Failure, Phase
from isolang.testing.callers import caller
from isolang.testing.changes import Row, SeenRow, read_text, written_text

if TYPE_CHECKING:
    from isolang.run.operation import Recorded
    from isolang.run.record.recorder import Recorder

HALF: Final = 2**31  # numbers of transactions are compared modulo 2**32
FIRST: Final = 3  # smaller numbers stand for "before everything"


def key_of(table: str, values: Sequence[object]) -> str:
    """Return the name of a row in the history, which is unique: its table and primary key."""
    shown = [str(value) for value in values]
    if len(shown) > 1:
        shown = [one.replace("%", "%25").replace("/", "%2F") for one in shown]
    return f"{table}/{'/'.join(shown)}"


class WrittenVersions:
    """The versions of rows that watched transactions have written."""

    def __init__(self, *, all_known: bool = False) -> None:
        self._all_known = all_known  # whether the log has the writers that are not watched
        self.before: int | None = None  # the oldest transaction that ran when the watch began
        self._written: set[tuple[str, int]] = set()

    def wrote(self, key: str, version: int) -> None:
        """Note that a watched transaction wrote a version."""
        self._written.add((key, version))

    def forget(self, written: Iterable[tuple[str, int]]) -> None:
        """Remove written versions, because their transaction has no known operations any more."""
        self._written.difference_update(written)

    def value(
        self, key: str, version: int, *, after: int | None = None
    ) -> tuple[int | None] | tuple[()]:
        """Return the value of a version in a tuple, which is empty if the writer is not known.

        Args:
            key: the key of the row.
            version: the number of the version.
            after: the number of the reading transaction, if it may have written unrecognised
                versions. A version with a later number may be its own, because a write behind a
                savepoint has a later number.
        """
        if (key, version) in self._written:
            return (version,)
        assert self.before is not None  # it is set before the first transaction begins
        if version < FIRST or 0 < (self.before - version) % 2**32 < HALF:
            return (None,)
        if after is not None and 0 < (version - after) % 2**32 < HALF:
            return ()
        return (version,) if self._all_known else ()


class ObservedTransaction:
    """A transaction of the application, with the operations that were observed."""

    def __init__(self, session: Hashable, recorder: Recorder, *, versions: bool = False) -> None:
        self._versions = versions
        self.operations: list[Recorded] = []
        self.number: int | None = None  # the number of the transaction, once it is known
        self.unclear = False  # whether it may have unrecognised writes
        self.committing = False
        self.alone = False  # whether the server commits its only statement at once
        self.failed = False
        self._own: dict[str, Any] = {}  # the last written value of each row
        self._remarks: list[tuple[str, SeenRow | None]] = []  # caller and row of each operation
        self._statements: list[str] = []  # of each operation
        self._current = SentStatement(0)
        self.steps: list[Step] = []  # what it did, in more detail
        self._savepoints: list[tuple[str, int, int]] = []
        driver = Driver(commit=_nothing, rollback=_nothing, classify=self._classify)
        self._t = recorder.transaction(session, driver=driver).__enter__()
        self._begun = self._t.index

    def sent(self, lock: Lock = "") -> None:
        """Note that the application has sent a statement, with its lock."""
        self._current = SentStatement(self._current.number + 1, lock)

    @property
    def statement(self) -> str:
        """The text of the current statement in the history; empty if none was sent."""
        return str(self._current) if self._current.number else ""

    def read(
        self, key: str, value: Any, seen: SeenRow | None = None, *, table: str = "", number: int = 0
    ) -> bool:
        """Note a read, with the columns that are known of the row.

        SOUND BECAUSE: a transaction sees its own write of a key, so a different version belongs to
        another row: in a snapshot that is kept, a row that other transactions have deleted since
        remains next to the row that was inserted again.

        Args:
            key: the key of the row.
            value: the value that was read.
            seen: the columns of the row.
            table: the table of the row in the history, if its conditions may be recorded.
            number: the number of the version.

        Returns:
            Whether the read was noted: a version next to the transaction's own version is not.
        """
        if self._own.get(key, value) != value:
            return False
        self.operations.append(("r", key, value))
        self._remarks.append((caller(), seen))
        self._statements.append(self.statement)
        if table:
            shown, where = "" if seen is None else read_text(seen), self._remarks[-1][0]
            self.steps.append(
                Found(
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
        step: Wrote | None = None,
        where: str = "",
    ) -> None:
        """Note a write with the known columns of the row; merge consecutive writes of one value.

        Args:
            key: the key of the row.
            value: the written value.
            seen: the columns of the row.
            step: the write in more detail, without its caller, if conditions may be recorded.
            where: the ``file:line`` of the application, if it is not that of the current call.
        """
        if step is not None:
            known = [
                one
                for one, (_, other, _) in zip(self._remarks, self.operations, strict=True)
                if other == key
            ]
            earlier = known[-1][1] if known else None
            whole = _since(seen, earlier.row if earlier else {})
            shown = "" if whole is None else written_text(whole)
            self.steps.append(replace(step, caller=caller(), shown=shown, statement=self.statement))
        self._own[key] = value
        places = [n for n, (_, one, _) in enumerate(self.operations) if one == key]
        writes = [n for n in places if self.operations[n][0] == "w"]
        if writes and self.operations[writes[-1]][2] == value:
            where, earlier = self._remarks[writes[-1]]
            self._remarks[writes[-1]] = where, _since(seen, earlier.before if earlier else {})
            return
        _, earlier = self._remarks[places[-1]] if places else ("", None)
        self.operations.append(("w", key, value))
        self._remarks.append((where or caller(), _since(seen, earlier.row if earlier else {})))
        self._statements.append(self.statement)

    def _rows(self) -> Iterator[str]:
        """Yield the row of each operation as text; empty if the row is not known."""
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
        """Note a savepoint, and the operations before it."""
        self._savepoints.append((name, len(self.operations), len(self.steps)))

    def release(self, name: str) -> None:
        """Remove a savepoint and those within it, so that their names may be used again."""
        del self._savepoints[self._index(name) :]

    def roll_back_to(self, name: str) -> None:
        """Remove the operations after a savepoint, but keep the savepoint."""
        index = self._index(name)
        _, operations, steps = self._savepoints[index] if self._savepoints else ("", 0, 0)
        del self.operations[operations:]
        del self.steps[steps:]
        del self._remarks[len(self.operations) :]
        del self._statements[len(self.operations) :]
        self._own = {key: value for name, key, value in self.operations if name == "w"}
        del self._savepoints[index + 1 :]

    def _index(self, name: str) -> int:
        """Return the index of the last savepoint with a name, or 0 if there is none."""
        found = [n for n, (one, _, _) in enumerate(self._savepoints) if one == name]
        return found[-1] if found else 0

    def clear(self) -> list[tuple[str, Any]]:
        """Remove all operations, and return the written keys and values."""
        written = [(key, value) for name, key, value in self.operations if name == "w"]
        self.operations.clear()
        self.steps.clear()
        self._remarks.clear()
        self._statements.clear()
        self._own.clear()
        return written

    def announce(self) -> None:
        """Record the operations in the history; COMMIT is sent next."""
        self.committing = True
        self._record()
        self._t.announce()

    def end(self, error: BaseException | None) -> Trace:
        """Record the outcome in the history, and the operations if they are not recorded yet."""
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


def _since(seen: SeenRow | None, before: Row) -> SeenRow | None:
    """Return a written row with the columns that the transaction had seen before the write."""
    return None if seen is None else replace(seen, before={**seen.before, **before})


def _nothing(connection: object) -> None:
    """Do nothing, because the application commits and rolls back itself."""
