"""Collects the accused transactions and all transactions they read from.

An accusation does not use the values left by the parts. A writer keeps the value of a read only if
the accusation also contains the writer of that value; otherwise the value is removed. Removing a
value only weakens the accusation, because any transaction may have written an unknown value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.history import columns as c
from isolang.history.history import History
from isolang.history.transaction import Op, Transaction
from isolang.history.values import UNKNOWN, decode, encode
from isolang.watch.judging import history_of
from isolang.watch.stream import transactions
from isolang.watch.stream.rows import Rows, place_of

if TYPE_CHECKING:
    from isolang.watch.stream import Log, LogPlace

_MOST_VALUES: Final = 20_000  # the largest number of values read by the accused
_MOST_WRITERS: Final = 2_000
_SEARCHES: Final = 6  # the largest number of searches of the log

_Atom: TypeAlias = tuple[int, Any]

#: A key and a value. ``None`` instead of the value represents every value of the key.
_Version: TypeAlias = tuple[_Atom, _Atom | None]

#: The atom that represents a deletion in the columns.
DELETED: Final = (5, "#deleted")


class Accusation(Struct, frozen=True, kw_only=True, eq=False):
    """Transactions from the log that may prove a violation by themselves.

    Attributes:
        assumed: pairs of a key and a value; the accusation assumes that no other transaction
            writes this value to this key.
    """

    transactions: list[Transaction]
    places: list[LogPlace]
    assumed: tuple[tuple[object, object], ...]
    unwritten: bool


def accusation(
    rows: Rows, accused: Sequence[int], log: Log, source: History | None
) -> Accusation | None:
    """Return the accused transactions together with all transactions they may have read from."""
    import numpy as np

    own = rows.take(np.array(accused, np.int32))
    records = _transactions(own, source)
    reads: dict[_Version, tuple[object, object]] = {}
    for one in records:
        for i, op in enumerate(one.ops):
            if i not in one.failed:
                reads.update(_versions_maybe_read(op))
    places = {(int(file), int(offset)) for _, file, offset, *_ in own.at.tolist()}
    members = [(tuple(at), one, True) for at, one in zip(own.at.tolist(), records, strict=True)]
    is_written: dict[_Version, bool] = {}  # whether the log has a writer for it
    for _ in range(_SEARCHES):
        new = [version for version in reads if version not in is_written]
        if len(reads) > _MOST_VALUES:
            return None
        found = log.places_of(new)
        is_written.update((version, bool(at)) for version, at in zip(new, found, strict=True))
        fetched = {
            (place.file, place.offset): place
            for writers in found
            for place in writers
            if (place.file, place.offset) not in places
        }
        if len(fetched) + len(places) > _MOST_WRITERS + len(own):
            return None
        places |= set(fetched)
        at = [(-1, p.file, p.offset, p.done_file, p.done) for p in fetched.values()]
        others = log.rows_at(np.array(at, np.int64).reshape(-1, 5))
        members += [
            (tuple(at), one, False)
            for at, one in zip(others.at.tolist(), _transactions(others, source), strict=True)
        ]
        members.sort(key=lambda member: member[0][1:3])
        closed = [
            one if is_accused else _without_unknown_values(one, reads)
            for _, one, is_accused in members
        ]
        # A read that records only the versions it missed may have seen any other version of the
        # key, so the accusation needs all writers of the key.
        missed: dict[_Version, tuple[object, object]] = {
            (key, None): (decode(*key), None) for key in _keys_of_missed_versions(closed)
        }
        if missed.keys() <= is_written.keys():
            break
        reads.update(missed)
    else:
        return None
    return Accusation(
        transactions=closed,
        places=[place_of(at) for at, *_ in members],
        assumed=tuple(pair for pair in reads.values() if pair[1] is not None),
        unwritten=bool(missed)
        or any(not is_written[version] and pair[1] is not None for version, pair in reads.items()),
    )


def _keys_of_missed_versions(records: Sequence[Transaction]) -> set[_Atom]:
    """Return the keys of versions that some transaction records as missed."""
    import numpy as np

    columns = History.from_transactions(records).columns
    if columns.implicit:
        columns = columns.written_out()
    ops = np.flatnonzero(columns.op_kind == c.READ_NONE_OF)
    return {columns.key(k) for k in set(columns.op_key[ops].tolist())}


def _transactions(rows: Rows, source: History | None) -> list[Transaction]:
    """Return rows as records, without the fields that no watchable level uses.

    These fields are the operation times, the commit time, and the group.
    """
    return [
        replace(one, times=None, commit=None, group=None)
        for one in transactions(history_of(rows.columns, rows.names, source))
    ]


def _versions_maybe_read(op: Op) -> list[tuple[tuple[_Atom, _Atom], tuple[object, object]]]:
    """Return the versions that a read may have seen, each as a pair of atoms and of values.

    The result is empty for a write, and for a read of an unknown value.
    """
    if op[0] == "scan":
        rows: Any = () if op[2] is UNKNOWN else op[2].items()
        return [_version_of(key, row) for key, row in rows]
    kind, key, value, *_ = *op, None
    if kind not in {"r", "r-in"} or value is UNKNOWN:
        return []
    return [_version_of(key, one) for one in (value if isinstance(value, list) else [value])]


def _version_of(key: object, value: object) -> tuple[tuple[_Atom, _Atom], tuple[object, object]]:
    atom = DELETED if value is None else encode(value, "a value")
    return (encode(key, "a key"), atom), (key, value)


def _without_unknown_values(one: Transaction, known: dict[_Version, Any]) -> Transaction:
    """Return a transaction whose reads have no value if the value's writer is unknown."""
    ops: list[Op] = []
    for op in one.ops:
        versions = _versions_maybe_read(op)
        whole = bool(versions) and all(atoms in known for atoms, _ in versions)
        if op[0] == "scan":
            ops.append(("scan", op[1] or ":true", UNKNOWN))
        elif op[0] in {"w", "append", "insert", "delete"} or whole:
            ops.append(op)
        else:
            ops.append(("r", op[1], UNKNOWN))
    return replace(one, ops=ops)
