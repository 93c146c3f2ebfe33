"""A violation told by transactions of the log alone: those accused, and who wrote what they read.

What the cuts have left is not used. A transaction that wrote what an accused one read comes along
with the reads of its own whose writers are known, too; its other reads are left out, which only
weakens the accusation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.history.clock_error import with_clock_error
from isolang.history.history import History
from isolang.history.transaction import Op, Transaction
from isolang.history.values import UNKNOWN, encode
from isolang.watch.stream import transactions
from isolang.watch.stream.rows import Rows, place_of
from isolang.watch.window import history_of

if TYPE_CHECKING:
    from isolang.watch.stream import Log, Place

_MOST_VALUES: Final = 20_000  # that the accused have read
_MOST_WRITERS: Final = 2_000

_Atom = tuple[int, Any]

#: What a deletion writes, as the columns have it.
DELETED: Final = (5, "#deleted")


class Accusation(Struct, frozen=True, kw_only=True, eq=False):
    """Transactions of the log that may convict.

    Attributes:
        given: in the order of the log.
        places: of each.
        assumed: keys and values of which it is assumed that no other transaction writes them.
        unwritten: whether one of the values is written by nobody.
    """

    given: list[Transaction]
    places: list[Place]
    assumed: tuple[tuple[object, object], ...]
    unwritten: bool


def accusation(
    rows: Rows, accused: Sequence[int], log: Log, about: History | None
) -> Accusation | None:
    """Fetch who wrote what some transactions have read.

    Args:
        rows: of the window.
        accused: which of them.
        log: is looked through once.
        about: how it is read.

    Returns:
        ``None`` where that are too many.
    """
    import numpy as np

    mine = rows.take(np.array(accused, np.int32))
    given = _transactions(mine, about)
    wanted: dict[tuple[_Atom, _Atom], tuple[object, object]] = {}
    for one in given:
        for i, op in enumerate(one.ops):
            if i not in one.failed:
                wanted.update(_read(op))
    if len(wanted) > _MOST_VALUES:
        return None
    found = log.places_of(list(wanted))
    have = {(int(file), int(offset)) for _, file, offset, *_ in mine.at.tolist()}
    fetched = {
        (place.file, place.offset): place
        for places in found
        for place in places
        if (place.file, place.offset) not in have
    }
    if len(fetched) > _MOST_WRITERS:
        return None
    at = [(-1, p.file, p.offset, p.done_file, p.done) for p in fetched.values()]
    others = log.rows_at(np.array(at, np.int64).reshape(-1, 5))
    everything = [
        *((tuple(at), one, True) for at, one in zip(mine.at.tolist(), given, strict=True)),
        *(
            (tuple(at), one, False)
            for at, one in zip(others.at.tolist(), _transactions(others, about), strict=True)
        ),
    ]
    everything.sort(key=lambda one: one[0][1:3])
    return Accusation(
        given=[one if accused_ else _without(one, wanted) for _, one, accused_ in everything],
        places=[place_of(at) for at, *_ in everything],
        assumed=tuple(pair for pair in wanted.values() if pair[1] is not None),
        unwritten=any(
            not places and pair[1] is not None
            for places, pair in zip(found, wanted.values(), strict=True)
        ),
    )


def told_alone(found: Accusation, name: str, *, clock_error: int) -> History:
    """The accusation as a history: nothing went before, so that nil is nil."""
    history = History.from_transactions(found.given, name=name)
    return with_clock_error(history, clock_error) if clock_error else history


def _transactions(rows: Rows, about: History | None) -> list[Transaction]:
    return [
        replace(one, times=None, commit=None, group=None)
        for one in transactions(history_of(rows.columns, rows.names, about))
    ]


def _read(op: Op) -> list[tuple[tuple[_Atom, _Atom], tuple[object, object]]]:
    """The values of a key that a read has seen, or that would have changed it; as atoms, too."""
    kind, key, value, *_ = *op, None
    if kind not in {"r", "r-in", "r-not-in"} or value is UNKNOWN:
        return []
    atom = encode(key, "a key")
    values = value if isinstance(value, list) else [value]
    return [
        ((atom, DELETED if one is None else encode(one, "a value")), (key, one)) for one in values
    ]


def _without(one: Transaction, known: dict[tuple[_Atom, _Atom], Any]) -> Transaction:
    """A transaction without the reads whose writers are not known."""
    ops = []
    for op in one.ops:
        pairs = _read(op)
        whole = bool(pairs) and all(atoms in known for atoms, _ in pairs)
        ops.append(op if op[0] in {"w", "append", "delete"} or whole else ("r", op[1], UNKNOWN))
    return replace(one, ops=ops)
