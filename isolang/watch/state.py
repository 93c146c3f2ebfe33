"""What a cut leaves of what went before it: the last value of each key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history.transaction import Op, Transaction
from isolang.history.values import encode
from isolang.watch.stream import Place

#: What stands for nil in windows and parts. There the initial value of a key is what the last cut
#: left, so that a stale read of nil must not pass as a read of the initial state.
NOTHING: Final = "isolang: no value"


class Last(Struct, frozen=True, kw_only=True):
    """The version of a key that was the last one when its writer was cut away.

    Attributes:
        value: as the window has it.
        place: of its writer.
        number: its writer, by its number in the stream.
    """

    value: Any
    place: Place
    number: int


Key: TypeAlias = tuple[int, Any]
"""A key as an atom, of :func:`isolang.history.values.encode`: ``1`` and ``True`` are two."""

Change: TypeAlias = Mapping[Key, Last]
"""What one cut changes."""

Before: TypeAlias = Mapping[Key, Last | None]
"""What undoes a change."""


@dataclass(slots=True)
class State:
    """The last value of each key that was written before the open window.

    It remembers what each change replaced, so that the last cuts can be taken back.
    """

    values: dict[Key, Last] = field(default_factory=dict)

    def initial(self, transactions: Iterable[Transaction]) -> dict[Any, Any]:
        """The initial value of each key that some transactions use.

        Raises:
            HistoryError: two of the keys are equal to Python, which a mapping cannot tell apart.
        """
        keys = {encode(op[1], "a key"): op[1] for t in transactions for op in t.ops}
        found = {
            key: last.value if (last := self.values.get(atom)) else NOTHING
            for atom, key in keys.items()
        }
        if len(found) < len(keys):
            raise HistoryError(
                "the keys of the stream: two are equal to Python (such as 1 and true, or 1 and "
                "1.0), expected keys of one type; hint: isocheck check tells them apart"
            )
        return found

    def apply(self, change: Change) -> Before:
        """Take over what a cut leaves; returns what undoes it."""
        before = {key: self.values.get(key) for key in change}
        self.values.update(change)
        return before

    def undo(self, before: Before) -> None:
        """Take a cut back, the latest first."""
        for key, last in before.items():
            if last is None:
                del self.values[key]
            else:
                self.values[key] = last


def as_watched(given: Transaction, number: int, where: str) -> Transaction:
    """A transaction as windows have it: nil is a value, and a deletion writes it.

    Raises:
        HistoryError: it has operations that cannot be watched yet, or the stand-in as a value.
    """
    if given.times is not None or given.group is not None:
        raise HistoryError(
            f"{where}: times of operations, or groups, cannot be watched "
            "(expected the times of whole transactions); hint: isocheck check reads them"
        )
    ops = [_as_watched(op, where) for op in given.ops]
    return Transaction(
        ops=ops,
        session=given.session,
        status=given.status,
        begin=given.begin,
        end=given.end,
        label=number,
        failed=given.failed,
    )


def _as_watched(op: Op, where: str) -> Op:
    if op[0] == "delete":
        return ("w", op[1], NOTHING)
    if op[0] not in ("r", "w") or isinstance(op[2], list) or len(op) > 3:
        raise HistoryError(
            f"{where}: {op[0]} of {op[1]!r} cannot be watched (expected reads and writes of whole "
            "values); hint: isocheck check judges lists and predicate reads"
        )
    if op[2] == NOTHING:
        raise HistoryError(f"{where}: {NOTHING!r} stands for nil here (expected another value)")
    return (op[0], op[1], NOTHING) if op[2] is None else op


def last_write(given: Transaction, key: Key) -> Any:
    """The value that a transaction left of a key which it writes."""
    return next(
        op[2]
        for i, op in reversed(list(enumerate(given.ops)))
        if op[0] == "w" and i not in given.failed and encode(op[1], "a key") == key
    )
