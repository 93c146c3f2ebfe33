"""Collects the operations of one transaction while a block of code records them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Final

from isolang.errors import HistoryError
from isolang.history.predicates import predicate_text
from isolang.history.statements import SentStatement
from isolang.history.values import Literal, column_text
from isolang.run.operation import RecordedOperation, range_predicate
from isolang.run.record.lines import UNKNOWN_START

if TYPE_CHECKING:
    from isolang.history.statements import Lock

_WRITES: Final = ("w", "insert", "delete")


class RecordedOperations:
    """The operations of one transaction, added one by one by its block of code.

    Attributes:
        callers: the ``file:line`` of each operation's caller; empty if unknown.
        statements: the statement of each operation, as text (docs/formats.md); empty if unknown.
        caller: a function that returns the ``file:line`` of the current operation's caller;
            ``None`` for no callers.
    """

    def __init__(self) -> None:
        self.operations: list[RecordedOperation] = []
        self.callers: list[str] = []
        self.statements: list[str] = []
        self.caller: Callable[[], str] | None = None
        self._statement: SentStatement | None = None
        self._sent = UNKNOWN_START
        self._times: list[int] = []  # when each operation was sent and had ended
        self._versions: dict[int, Any] = {}  # stated versions by the index of their operation

    def read(self, key: Any, value: Any, version: Any = None) -> None:
        """Record a read of a key and its result: a value, a list, or ``None`` (initial)."""
        if version is not None:
            self._versions[len(self.operations)] = version
        self._done(("r", key, value))

    def read_none_of(self, key: Any, values: Sequence[Any]) -> None:
        """Record a read of a key that returned none of ``values``, as a failed swap does."""
        self._done(("r-not-in", key, list(values)))

    def write(self, key: Any, value: Any, version: Any = None) -> None:
        """Record a write of a key, either before or after it is sent."""
        if version is not None:
            self._versions[len(self.operations)] = version
        self._done(("w", key, value))

    def append(self, key: Any, value: Any) -> None:
        """Record an append to the list of a key, either before or after it is sent."""
        self._done(("append", key, value))

    def delete(self, key: Any) -> None:
        """Record a delete of a row, before or after it is sent; later reads return ``None``."""
        self._done(("delete", key, None))

    def insert(self, key: Any, row: Any) -> None:
        """Record an insert of a row, either before or after it is sent."""
        self._done(("insert", key, _row(row)))

    def scan(self, predicate: object, rows: Mapping[Any, Any]) -> None:
        """Record a predicate read: ``rows`` are all rows that matched the predicate.

        Raises:
            HistoryError: the predicate is malformed.
        """
        text = Literal(predicate_text(predicate, "scan"))
        self._done(("rp", text, {key: _row(row) for key, row in rows.items()}))

    def select(self, low: int, high: int, rows: Mapping[Any, Any], of: Sequence[str] = ()) -> None:
        """Record a read of all rows with values in a range, or only those with keys in ``of``."""
        self._done(("rp", range_predicate(low, high, of), dict(rows)))

    def matched(self, predicate: Literal, rows: Mapping[Any, Any]) -> None:
        """Record a predicate read whose rows already have the form used in histories."""
        self._done(("rp", predicate, dict(rows)))

    def sending(self) -> None:
        """Store the current time as the sending time of the next operation."""
        self._sent = monotonic_ns()

    def statement(self, lock: Lock = "") -> None:
        """Declare that the operations recorded next belong to one new statement.

        An ``UPDATE … SET x = x + 1`` is one statement with a read and a write. Predictions and
        templates (docs/foresee.md, docs/robustness.md) use this; verdicts do not.
        """
        if lock not in ("", "update", "share"):
            raise HistoryError(f"statement: unknown lock (got {lock!r}, expected update or share)")
        number = 1 if self._statement is None else self._statement.number + 1
        self._statement = SentStatement(number, lock)

    def installed(self, versions: Mapping[Any, Any]) -> None:
        """Record the database's names for the versions created by the transaction."""
        last = {key: i for i, (name, key, _) in enumerate(self.operations) if name in _WRITES}
        for key, version in versions.items():
            if key in last:
                self._versions[last[key]] = version

    def _done(self, operation: RecordedOperation) -> None:
        if self.caller is not None:
            self.callers.append(self.caller())
        if self._statement is not None:
            self.statements += [""] * (len(self.operations) - len(self.statements))
            self.statements.append(str(self._statement))
        self.operations.append(operation)
        self._times += (self._sent, monotonic_ns())


def _row(row: Any) -> Any:
    """Return a row, with its columns named as in predicates."""
    if isinstance(row, Mapping):
        return {Literal(column_text(str(name))): value for name, value in row.items()}
    return row
