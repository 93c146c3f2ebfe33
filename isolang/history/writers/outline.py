"""Which transactions and operations of a history go into another format, and whether they can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.readers.reading import counted

if TYPE_CHECKING:
    from isolang.history.history import History


class Target(Struct, frozen=True, kw_only=True):
    """What a format can express.

    Attributes:
        name: its name in messages.
        lists: appends and list reads.
        maybe: transactions with an unknown outcome.
        aborted: transactions that aborted.
        real_time: the order of begins and ends.
        failed: operations that failed inside their transaction.
        unknown: reads with unknown results, by transactions that are not committed.
        empty: transactions without operations.
        hint: a format that can express more, for messages.
    """

    name: str
    lists: bool = False
    maybe: bool = False
    aborted: bool = True
    real_time: bool = False
    failed: bool = False
    unknown: bool = False
    empty: bool = False
    hint: str = "EDN can express it"


class Outline(Struct, kw_only=True):
    """The part of a history that is written.

    Attributes:
        history: the whole.
        target: the format's name in messages.
        transactions: the numbers of the transactions, T0 left out, in the history's order.
        kept: for each transaction of the history, its operations that are written.
        kind, key, value, source, ok: the columns of operations, as lists.
        status: the status of each transaction.
        notes: what was left out.
    """

    history: History
    target: str
    transactions: list[int]
    kept: list[list[int]]
    kind: list[int]
    key: list[int]
    value: list[int]
    source: list[int]
    ok: list[bool]
    status: list[int]
    notes: list[str] = field(default_factory=list)

    def ops(self, txn: int) -> list[int]:
        """Give the operations of a transaction that are written."""
        return self.kept[txn]

    def by_session(self) -> list[list[int]]:
        """Give the transactions of each session, in session order."""
        sessions: dict[int, list[int]] = {}
        session_of = self.history.columns.txn_session.tolist()
        for txn in self.transactions:
            sessions.setdefault(session_of[txn], []).append(txn)
        return list(sessions.values())

    def count(self) -> int:
        """Give the number of operations that are written."""
        return sum(len(self.ops(t)) for t in self.transactions)


def outline(history: History, target: Target, drop: frozenset[str]) -> Outline:
    """Decide what is written.

    Raises:
        HistoryError: if something cannot be expressed and may not be dropped.
    """
    import numpy as np

    columns = history.columns
    status = columns.txn_status
    txn_of = np.repeat(np.arange(columns.transactions()), np.diff(columns.op_start))
    ordinary = status != c.INITIAL
    keep = ordinary[txn_of] if len(txn_of) else np.zeros(0, dtype=bool)
    notes: list[str] = []
    if not ordinary.all():
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

    if columns.has_time and not target.real_time:
        if "real-time" not in drop:
            raise refuse("real time cannot be expressed", may="real-time")
        notes.append("real time")
    for code, allowed, what in (
        (c.MAYBE, target.maybe, "a transaction whose outcome is unknown"),
        (c.ABORTED, target.aborted, "an aborted transaction"),
    ):
        found = np.flatnonzero(status == code)
        if len(found) and not allowed:
            raise refuse(f"{what} cannot be expressed", txn=int(found[0]))
    lists = (columns.op_kind == c.APPEND) | (columns.op_kind == c.READ_LIST)
    found = np.flatnonzero(lists & keep)
    if len(found) and not target.lists:
        raise refuse("a list cannot be expressed", op=int(found[0]))
    for allowed, bad, what, may in (
        (target.failed, columns.op_ok == 0, "an operation that failed", "failed-operations"),
        (
            False,  # no format has it
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
        notes.append(f"{counted(len(found), 'operation')}: {may.replace('-', ' ')}")
    if not target.unknown:
        found = np.flatnonzero((columns.op_value == c.UNKNOWN_VALUE) & keep)  # of aborted ones
        keep[found] = False
        if len(found):
            what = counted(len(found), "read")
            notes.append(f"{what} by aborted transactions, whose results are not known")
    transactions = np.flatnonzero(ordinary)
    if not target.empty:
        sizes = np.bincount(txn_of[keep], minlength=columns.transactions())
        empty = transactions[sizes[transactions] == 0]
        if len(empty) and "empty-transactions" not in drop:
            what = "a transaction without operations cannot be expressed"
            raise refuse(what, txn=int(empty[0]), may="empty-transactions")
        if len(empty):
            notes.append(f"{counted(len(empty), 'transaction')} without operations")
            transactions = transactions[sizes[transactions] > 0]
    kept: list[list[int]] = [[] for _ in range(columns.transactions())]
    for op, txn in zip(np.flatnonzero(keep).tolist(), txn_of[keep].tolist(), strict=True):
        kept[txn].append(op)
    return Outline(
        history=history,
        target=target.name,
        transactions=transactions.tolist(),
        kept=kept,
        kind=columns.op_kind.tolist(),
        key=columns.op_key.tolist(),
        value=columns.op_value.tolist(),
        source=columns.op_source.tolist(),
        ok=(columns.op_ok != 0).tolist(),
        status=columns.txn_status.tolist(),
        notes=[f"left out: {note}" for note in notes],
    )
