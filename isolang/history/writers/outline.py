"""Selects the part of a history that a format can express."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.arrays import np
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.readers.reading import quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.history.history import History


class FormatFeatures(Struct, frozen=True, kw_only=True):
    """The features of a format. Each flag tells whether the format can express a feature.

    Attributes:
        unknown: reads with unknown results in uncommitted transactions.
        hint: advice, for messages, on a format that can express more.
    """

    name: str
    lists: bool = False
    rows: bool = False
    initial: bool = False
    indeterminate: bool = False
    aborted: bool = True
    real_time: bool = False
    groups: bool = False
    versions: bool = False
    labels: bool = False
    statements: bool = False
    failed: bool = False
    unknown: bool = False
    empty: bool = False
    hint: str = "EDN can express it"


class Outline(Struct, frozen=True, kw_only=True):
    """The part of a history to write.

    Attributes:
        txns: the numbers of the transactions to write, in the history's order and without T0.
        start: for each transaction, the index of its first operation in ``ops``; one final entry
            marks the end of ``ops``.
        notes: a phrase for each kind of omitted part.
    """

    history: History
    target: str
    txns: NDArray[np.int32]
    start: NDArray[np.int64]
    ops: NDArray[np.int64]
    notes: tuple[str, ...]

    def sessions(self) -> list[NDArray[np.int64]]:
        """Return, for each session, its transactions in session order, as indices into ``txns``."""
        session = self.history.columns.txn_session[self.txns]
        _, first, number = np.unique(session, return_index=True, return_inverse=True)
        order = np.argsort(first[number], kind="stable")
        return (
            np.split(order, np.flatnonzero(np.diff(first[number][order])) + 1) if len(order) else []
        )


def outline(history: History, target: FormatFeatures, drop: frozenset[str]) -> Outline:
    """Select the part of a history to write in a format.

    Raises:
        HistoryError: the format cannot express a part of the history that ``drop`` does not name.
    """
    columns = history.columns
    status = columns.txn_status
    txn_of = np.repeat(np.arange(columns.transactions()), np.diff(columns.op_start))
    ordinary = status != c.INITIAL
    keep = ordinary[txn_of]
    notes: list[str] = []
    if not ordinary.all() and not target.initial:
        notes.append("the declared initial transaction: what it wrote is the initial state")

    def refuse(
        what: str, op: int | None = None, txn: int | None = None, may: str = ""
    ) -> HistoryError:
        place = history.where_op(op) if op is not None else ""
        place = history.where(txn) if txn is not None else place
        ways = [target.hint] if target.hint else []
        ways += [f"drop {may}"] if may else []
        where = place or history.name
        return HistoryError(f"{where}: {what} in {target.name}; {', or '.join(ways)}")

    if (columns.has_time or columns.has_operation_times) and not target.real_time:
        if "real-time" not in drop:
            raise refuse("real time cannot be expressed", may="real-time")
        notes.append("real time")
    if columns.has_groups and not target.groups:
        if "groups" not in drop:
            raise refuse("groups of transactions cannot be expressed", may="groups")
        notes.append("groups")
    if columns.has_versions and not target.versions:
        raise refuse("versions cannot be expressed", may="versions")
    if (len(columns.txn_labels) or len(columns.txn_levels)) and not target.labels:
        if "labels" not in drop:
            raise refuse("labels and levels of transactions cannot be expressed", may="labels")
        notes.append("labels and levels")
    if history.has_statements() and not target.statements:
        notes.append("the statements of operations")
    if not target.statements and history.units():
        notes.append("the units of transactions")
    for code, allowed, what in (
        (c.INDETERMINATE, target.indeterminate, "a transaction whose outcome is unknown"),
        (c.ABORTED, target.aborted, "an aborted transaction"),
    ):
        found = np.flatnonzero(status == code)
        if len(found) and not allowed:
            raise refuse(f"{what} cannot be expressed", txn=int(found[0]))
    found = np.flatnonzero(
        (columns.op_value == columns.deleted) & (columns.op_kind == c.WRITE) & keep
    )
    if len(found) and not target.rows:
        raise refuse("a delete cannot be expressed", op=int(found[0]))
    scans = columns.statement_txn[ordinary[columns.statement_txn]]
    if len(scans) and not target.rows:
        raise refuse("a predicate read cannot be expressed", txn=int(scans[0]))
    if ((columns.statement_predicate < 0) | (columns.statement_known == c.PARTLY_KNOWN)).any():
        raise refuse("a part of a predicate read cannot be expressed", txn=int(scans[0]))
    for kinds, what in (
        ((c.APPEND, c.READ_LIST), "a list cannot be expressed"),
        (c.SET_READS, "a set-read cannot be expressed"),
    ):
        found = np.flatnonzero(np.isin(columns.op_kind, kinds) & keep)
        if len(found) and not target.lists:
            raise refuse(what, op=int(found[0]))
    for allowed, bad, what, may in (
        (target.failed, columns.op_ok == 0, "an operation that failed", "failed-operations"),
        (
            False,  # no format can express this part
            (columns.op_value == c.UNKNOWN_VALUE) & (status[txn_of] == c.COMMITTED),
            "a read with an unknown result",
            "unknown-reads",
        ),
    ):
        found = np.flatnonzero(bad & keep)
        if not len(found) or allowed:
            continue
        if may not in drop:
            raise refuse(f"{what} cannot be expressed", op=int(found[0]), may=may)
        keep[found] = False
        notes.append(f"{quantity(len(found), 'operation')}: {may.replace('-', ' ')}")
    if not target.unknown:
        # The only reads left at this point are those in aborted transactions.
        found = np.flatnonzero((columns.op_value == c.UNKNOWN_VALUE) & keep)
        keep[found] = False
        if len(found):
            what = quantity(len(found), "read")
            notes.append(f"{what} by aborted transactions, whose results are unknown")
    sizes = np.bincount(txn_of[keep], minlength=columns.transactions())
    if not target.empty:
        empty = np.flatnonzero(ordinary & (sizes == 0))
        if len(empty) and "empty-transactions" not in drop:
            what = "a transaction without operations cannot be expressed"
            raise refuse(what, txn=int(empty[0]), may="empty-transactions")
        if len(empty):
            notes.append(f"{quantity(len(empty), 'transaction')} without operations")
        ordinary &= sizes > 0
    txns = np.flatnonzero(ordinary).astype(np.int32)
    return Outline(
        history=history,
        target=target.name,
        txns=txns,
        start=np.concatenate([[0], np.cumsum(sizes[txns])]).astype(np.int64),
        ops=np.flatnonzero(keep),
        notes=tuple(f"left out: {note}" for note in notes),
    )
