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

from isolang.history import columns as c
from isolang.history.clock_error import with_clock_error
from isolang.history.history import History
from isolang.history.transaction import Op, Transaction
from isolang.history.values import UNKNOWN, decode, encode
from isolang.watch.stream import transactions
from isolang.watch.stream.rows import Rows, place_of
from isolang.watch.window import history_of

if TYPE_CHECKING:
    from isolang.watch.stream import Log, Place

_MOST_VALUES: Final = 20_000  # that the accused have read
_MOST_WRITERS: Final = 2_000
_LOOKS: Final = 6  # at the log

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
    """Fetch who wrote what some transactions have read, or may have read.

    Args:
        rows: of the window.
        accused: which of them.
        log: is looked through.
        about: how it is read.

    Returns:
        ``None`` where that are too many.
    """
    import numpy as np

    mine = rows.take(np.array(accused, np.int32))
    given = _transactions(mine, about)
    wanted: dict[tuple[_Atom, _Atom | None], tuple[object, object]] = {}
    for one in given:
        for i, op in enumerate(one.ops):
            if i not in one.failed:
                wanted.update(_read(op))
    have = {(int(file), int(offset)) for _, file, offset, *_ in mine.at.tolist()}
    told = [(tuple(at), one, True) for at, one in zip(mine.at.tolist(), given, strict=True)]
    asked: dict[tuple[_Atom, _Atom | None], bool] = {}  # whether somebody writes it
    for _ in range(_LOOKS):
        new = [pair for pair in wanted if pair not in asked]
        if len(wanted) > _MOST_VALUES:
            return None
        found = log.places_of(new)
        asked.update((pair, bool(places)) for pair, places in zip(new, found, strict=True))
        fetched = {
            (place.file, place.offset): place
            for places in found
            for place in places
            if (place.file, place.offset) not in have
        }
        if len(fetched) + len(have) > _MOST_WRITERS + len(mine):
            return None
        have |= set(fetched)
        at = [(-1, p.file, p.offset, p.done_file, p.done) for p in fetched.values()]
        others = log.rows_at(np.array(at, np.int64).reshape(-1, 5))
        told += [
            (tuple(at), one, False)
            for at, one in zip(others.at.tolist(), _transactions(others, about), strict=True)
        ]
        told.sort(key=lambda one: one[0][1:3])
        alone = [one if accused_ else _without(one, wanted) for _, one, accused_ in told]
        # Where some version was not seen it may have been any other one: all writers are needed.
        missed: dict[tuple[_Atom, _Atom | None], tuple[object, object]] = {
            (key, None): (decode(*key), None) for key in _missed(alone)
        }
        if missed.keys() <= asked.keys():
            break
        wanted.update(missed)
    else:
        return None
    return Accusation(
        given=alone,
        places=[place_of(at) for at, *_ in told],
        assumed=tuple(pair for pair in wanted.values() if pair[1] is not None),
        unwritten=bool(missed)
        or any(not asked[pair] and values[1] is not None for pair, values in wanted.items()),
    )


def _missed(given: Sequence[Transaction]) -> set[_Atom]:
    """The keys of which some transaction says which versions it did not see."""
    import numpy as np

    columns = History.from_transactions(given).columns
    if columns.implicit:
        columns = columns.written_out()
    ops = np.flatnonzero(columns.op_kind == c.READ_NONE_OF)
    return {columns.key(k) for k in set(columns.op_key[ops].tolist())}


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
    """The values of a key that a read has seen, or one of which it has; as atoms, too."""
    if op[0] == "scan":
        rows: Any = () if op[2] is UNKNOWN else op[2].items()
        return [_pair(key, row) for key, row in rows]
    kind, key, value, *_ = *op, None
    if kind not in {"r", "r-in"} or value is UNKNOWN:
        return []
    return [_pair(key, one) for one in (value if isinstance(value, list) else [value])]


def _pair(key: object, value: object) -> tuple[tuple[_Atom, _Atom], tuple[object, object]]:
    atom = DELETED if value is None else encode(value, "a value")
    return (encode(key, "a key"), atom), (key, value)


def _without(one: Transaction, known: dict[tuple[_Atom, _Atom | None], Any]) -> Transaction:
    """A transaction without the reads whose writers are not known."""
    ops: list[Op] = []
    for op in one.ops:
        pairs = _read(op)
        whole = bool(pairs) and all(atoms in known for atoms, _ in pairs)
        if op[0] == "scan":
            ops.append(("scan", op[1] or ":true", UNKNOWN))
        elif op[0] in {"w", "append", "insert", "delete"} or whole:
            ops.append(op)
        else:
            ops.append(("r", op[1], UNKNOWN))
    return replace(one, ops=ops)
