"""Copies reads of a history into other transactions of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from isolang._native import Columns
from isolang.arrays import np
from isolang.history import columns as c

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The columns of a state, in the order of native/bindings/history.cpp.
_NAMES: Final = (
    "txn_session", "txn_status", "txn_begin", "txn_end", "txn_number", "txn_position", "txn_file",
    "op_start", "op_kind", "op_ok", "op_key", "op_value", "op_source", "op_position", "list_start",
    "list_values", "key_atom", "initial_value", "initial_alone", "op_begin", "op_end",
    "commit_begin", "commit_end", "slack", "statement_start", "statement_end", "statement_txn",
    "statement_predicate", "statement_known", "statement_position", "statement_sent",
    "statement_answered", "txn_own_end", "txn_group", "op_version",
)  # fmt: skip
_OF_OPERATIONS: Final = ("op_kind", "op_ok", "op_key", "op_value", "op_source", "op_position")


class InsertedRead(Struct):
    """A read, and the transaction that it is copied into."""

    txn: int
    op: int
    position: int


class InsertedScan(Struct):
    """A predicate read, and the transaction that it is copied into.

    Attributes:
        ops: the operations to copy.
        columns: the columns that the operations are numbered in.
        known: whether the copy says all that the predicate read says, as in ``statement_known``.
    """

    txn: int
    scan: int
    ops: Sequence[int]
    columns: Columns
    known: int
    position: int = 0


def with_inserted(columns: Columns, reads: Sequence[InsertedRead | InsertedScan]) -> Columns:
    """Return columns in which transactions begin with copies of reads.

    Args:
        reads: in the order of their transactions.
    """
    state: Any = list(columns.__getstate__())  # type: ignore[call-overload]
    new = _New(columns)
    for read in reads:
        if isinstance(read, InsertedScan):
            new.add_scan(read)
        else:
            new.add(columns, read.op, read.txn, read.position)
    arrays = list(state[2])
    for name, array in new.columns().items():
        place = _NAMES.index(name)
        assert len(arrays[place]) == getattr(columns, name).nbytes, name
        arrays[place] = array.tobytes()
    state[2] = arrays
    made: Any = Columns.__new__(Columns)
    made.__setstate__(tuple(state))
    result: Columns = made
    return result


class _New:
    """The operations and predicate reads to insert, and the columns with them."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._txns: list[int] = []
        self._operations: list[list[int]] = []
        self._versions: list[int] = []
        self._scans: list[list[int]] = []
        self._lists: list[list[int]] = []

    def add(self, columns: Columns, op: int, txn: int, position: int) -> None:
        """Add the copy of an operation."""
        kind, value = int(columns.op_kind[op]), int(columns.op_value[op])
        if columns is not self._columns and kind in c.LISTS and value != c.UNKNOWN_VALUE:
            start = columns.list_start
            values = columns.list_values[int(start[value]) : int(start[value + 1])].tolist()
            value = len(self._columns.list_start) - 1 + len(self._lists)
            self._lists.append(values)
        self._txns.append(txn)
        source = self._source(columns, op)
        self._operations.append([kind, 1, int(columns.op_key[op]), value, source, position])
        self._versions.append(int(columns.op_version[op]) if columns.has_versions else c.NO_VERSION)

    def _source(self, columns: Columns, op: int) -> int:
        """Return the source of a read, numbered in the columns that are changed."""
        source = int(columns.op_source[op])
        if columns is self._columns or source < 0:
            return source
        # The other columns have more operations, all of them in predicate reads.
        plain, scans = self._columns, np.flatnonzero(columns.statement_end <= source)
        more = (columns.statement_end - columns.statement_start)[scans]
        less = (plain.statement_end - plain.statement_start)[scans]
        return source - int((more - less).sum())

    def add_scan(self, scan: InsertedScan) -> None:
        """Add the copy of a predicate read."""
        first = len(self._operations)
        for op in scan.ops:
            self.add(scan.columns, op, scan.txn, scan.position)
        predicate = int(self._columns.statement_predicate[scan.scan])
        count = len(self._operations) - first
        self._scans.append([scan.txn, first, count, predicate, scan.known, scan.position])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns that change, by name."""
        old = self._columns
        n = old.transactions()
        before = np.zeros(n + 1, np.int64)  # by transaction: the operations inserted before its own
        np.add.at(before, np.array(self._txns, np.int64) + 1, 1)
        before = np.cumsum(before)
        shift = before[1:]  # by transaction: those inserted before and into it
        at = np.array([int(old.op_start[txn]) for txn in self._txns], np.int64)
        added = np.array(self._operations, np.int64).reshape(-1, len(_OF_OPERATIONS))
        made: dict[str, NDArray[Any]] = {"op_start": old.op_start + before}
        by_op = np.repeat(shift, np.diff(old.op_start))
        for number, name in enumerate(_OF_OPERATIONS):
            column = getattr(old, name)
            made[name] = np.insert(column, at, added[:, number].astype(column.dtype))
        named = made["op_source"] >= 0
        made["op_source"][named] += by_op[made["op_source"][named]]
        if old.has_versions:
            made["op_version"] = np.insert(old.op_version, at, np.array(self._versions, np.int32))
        if old.has_operation_times:
            made["op_begin"] = np.insert(old.op_begin, at, c.UNKNOWN_BEGIN)
            made["op_end"] = np.insert(old.op_end, at, c.UNKNOWN_END)
        if self._scans:
            made |= self._statements(shift, at)
        elif len(old.statement_start):
            moved = shift[old.statement_txn]
            made["statement_start"] = old.statement_start + moved
            made["statement_end"] = old.statement_end + moved
        if self._lists:
            sizes = np.array([len(values) for values in self._lists], np.int64)
            ends = int(old.list_start[-1]) + np.cumsum(sizes)
            made["list_start"] = np.concatenate([old.list_start, ends])
            values = np.array([v for values in self._lists for v in values], np.int32)
            made["list_values"] = np.concatenate([old.list_values, values])
        return made

    def _statements(self, shift: NDArray[Any], at: NDArray[Any]) -> dict[str, NDArray[Any]]:
        old = self._columns
        scans = np.array(self._scans, np.int64)
        txns, first, count = scans[:, 0], scans[:, 1], scans[:, 2]
        # The n-th inserted operation is n places after the old operation that it precedes.
        start = np.array([int(old.op_start[txn]) for txn in txns.tolist()], np.int64) + first
        place = np.searchsorted(old.statement_txn, txns)
        moved = shift[old.statement_txn] if len(old.statement_txn) else np.zeros(0, np.int64)
        new: dict[str, tuple[NDArray[Any], Any]] = {
            "statement_start": (old.statement_start + moved, start),
            "statement_end": (old.statement_end + moved, start + count),
            "statement_txn": (old.statement_txn, txns),
            "statement_predicate": (old.statement_predicate, scans[:, 3]),
            "statement_known": (old.statement_known, scans[:, 4]),
            "statement_position": (old.statement_position, scans[:, 5]),
        }
        if old.has_operation_times:
            new["statement_sent"] = old.statement_sent, np.full(len(scans), c.UNKNOWN_BEGIN)
            new["statement_answered"] = old.statement_answered, np.full(len(scans), c.UNKNOWN_END)
        return {
            name: np.insert(column, place, np.asarray(values).astype(column.dtype))
            for name, (column, values) in new.items()
        }
