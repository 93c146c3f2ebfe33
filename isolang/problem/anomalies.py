"""Intrinsic anomalies: what a read shows to be wrong by itself, in the words of the input."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.history.columns import APPEND, READ_LIST, SOURCE_MISSING, UNKNOWN_VALUE

if TYPE_CHECKING:
    from isolang.history.history import History


class AnomalyKind(IntEnum):
    """The kinds, numbered as in ``native/core/problem.hpp`` and in certificates."""

    THIN_AIR_READ = 0
    ABORTED_READ = 1
    INTERMEDIATE_READ = 2
    FUTURE_READ = 3
    NOT_OWN_WRITE = 4
    NOT_LAST_OWN_WRITE = 5
    INCOMPATIBLE_ORDER = 6
    DUPLICATE_ELEMENT = 7
    SPLIT_APPEND = 8

    @property
    def title(self) -> str:
        """What the literature, or else this project, calls it."""
        return TITLES[self]


TITLES: Final = {
    AnomalyKind.THIN_AIR_READ: "thin-air read",
    AnomalyKind.ABORTED_READ: "aborted read (G1a)",
    AnomalyKind.INTERMEDIATE_READ: "intermediate read (G1b)",
    AnomalyKind.FUTURE_READ: "future read",
    AnomalyKind.NOT_OWN_WRITE: "not my own write",
    AnomalyKind.NOT_LAST_OWN_WRITE: "not my last write",
    AnomalyKind.INCOMPATIBLE_ORDER: "incompatible order",
    AnomalyKind.DUPLICATE_ELEMENT: "duplicate element",
    AnomalyKind.SPLIT_APPEND: "split append (G0)",
}

_LONGEST = 60  # characters of a list in a message


class Anomaly(Struct, frozen=True, kw_only=True):
    """One intrinsic anomaly.

    Attributes:
        kind: what it is.
        txn: the reader.
        op: its read.
        other_txn: the transaction that the read contradicts (the reader itself where it contradicts
            an own write), or -1.
        other_op: the operation that it contradicts, or -1.
    """

    kind: AnomalyKind
    txn: int
    op: int
    other_txn: int
    other_op: int

    def evidence(self, history: History) -> str:
        """Say in one sentence what was read, where, and what it contradicts."""
        reader, place = history.label(self.txn), history.where_op(self.op)
        reason = _REASONS[self.kind](self, history)
        return f"{reader} read {_seen(history, self.op)} ({place}), {reason}"


def anomaly_of_row(row: Sequence[int]) -> Anomaly:
    """Make an anomaly of the five numbers that the native core gives."""
    kind, txn, op, other_txn, other_op = row
    return Anomaly(kind=AnomalyKind(kind), txn=txn, op=op, other_txn=other_txn, other_op=other_op)


def _seen(history: History, op: int) -> str:
    return f"{history.key(int(history.columns.op_key[op]))} = {_value(history, op)}"


def _value(history: History, op: int) -> str:
    text = history.op_value(op)
    if len(text) <= _LONGEST or not _is_list(history, op):
        return text
    half = _LONGEST // 2 - 2
    elements = text.count(" ") + 1
    start, end = text[:half].rsplit(" ", 1)[0], text[-half:].split(" ", 1)[-1]
    return f"{start} … {end} ({elements} elements)"


def _is_list(history: History, op: int) -> bool:
    columns = history.columns
    return int(columns.op_kind[op]) == READ_LIST and int(columns.op_value[op]) != UNKNOWN_VALUE


def _other(anomaly: Anomaly, history: History) -> str:
    return f"{history.describe_op(anomaly.other_op)} at {history.where_op(anomaly.other_op)}"


def _writer(anomaly: Anomaly, history: History) -> str:
    return history.label(anomaly.other_txn)


def _verb(anomaly: Anomaly, history: History) -> str:
    return "appended" if int(history.columns.op_kind[anomaly.other_op]) == APPEND else "wrote"


def _object(anomaly: Anomaly, history: History) -> str:
    """What the other operation wrote, as a part of the sentence: of a list, the element."""
    if int(history.columns.op_kind[anomaly.other_op]) == APPEND:
        return f"whose element {history.op_value(anomaly.other_op)}"
    return "which"


def _thin_air(anomaly: Anomaly, history: History) -> str:
    if anomaly.other_op >= 0:
        return f"and names as its source {_other(anomaly, history)}, which is no write of that key"
    if int(history.columns.op_source[anomaly.op]) == SOURCE_MISSING:
        return "from a write that the input names but does not hold"
    if _is_list(history, anomaly.op):
        return f"whose element {_unwritten(anomaly, history)} nobody appended"
    return "which nobody wrote"


def _unwritten(anomaly: Anomaly, history: History) -> str:
    columns = history.columns
    key = columns.op_key[anomaly.op]
    appended = set(columns.op_value[(columns.op_kind == APPEND) & (columns.op_key == key)].tolist())
    number = int(columns.op_value[anomaly.op])
    elements = columns.list_values[columns.list_start[number] : columns.list_start[number + 1]]
    return next(history.value(v) for v in elements.tolist() if v not in appended)


def _aborted(anomaly: Anomaly, history: History) -> str:
    place = history.where_op(anomaly.other_op)
    verb = _verb(anomaly, history)
    if history.columns.op_ok[anomaly.other_op]:
        who = f"only the aborted {_writer(anomaly, history)} {verb}"
    else:
        who = f"only an operation of {_writer(anomaly, history)} that failed {verb}"
    return f"{_object(anomaly, history)} {who} ({place})"


def _intermediate(anomaly: Anomaly, history: History) -> str:
    writer, other = _writer(anomaly, history), _other(anomaly, history)
    if int(history.columns.op_kind[anomaly.other_op]) == APPEND:
        return f"which ends inside the appends of {writer}: after {other}"
    return f"which {writer} overwrote before it ended ({other})"


def _future(anomaly: Anomaly, history: History) -> str:
    verb = _verb(anomaly, history)
    reader, place = history.label(anomaly.txn), history.where_op(anomaly.other_op)
    return f"{_object(anomaly, history)} {reader} itself {verb} only later ({place})"


def _not_own(anomaly: Anomaly, history: History) -> str:
    return f"though its own {_other(anomaly, history)} came before"


def _not_last_own(anomaly: Anomaly, history: History) -> str:
    return f"its own {_other(anomaly, history)}, though it had written the key again since"


def _incompatible(anomaly: Anomaly, history: History) -> str:
    other = _value(history, anomaly.other_op)
    return (
        f"but {_writer(anomaly, history)} read {other} ({history.where_op(anomaly.other_op)}): "
        "neither is a prefix of the other"
    )


def _duplicate(anomaly: Anomaly, history: History) -> str:
    return (
        f"which shows the {_other(anomaly, history)} of {_writer(anomaly, history)} "
        "more often than it was made"
    )


def _split(anomaly: Anomaly, history: History) -> str:
    return (
        f"where the appends of {_writer(anomaly, history)} do not stand together, all of them, "
        f"in the order in which it made them ({_other(anomaly, history)})"
    )


_REASONS: Final = {
    AnomalyKind.THIN_AIR_READ: _thin_air,
    AnomalyKind.ABORTED_READ: _aborted,
    AnomalyKind.INTERMEDIATE_READ: _intermediate,
    AnomalyKind.FUTURE_READ: _future,
    AnomalyKind.NOT_OWN_WRITE: _not_own,
    AnomalyKind.NOT_LAST_OWN_WRITE: _not_last_own,
    AnomalyKind.INCOMPATIBLE_ORDER: _incompatible,
    AnomalyKind.DUPLICATE_ELEMENT: _duplicate,
    AnomalyKind.SPLIT_APPEND: _split,
}
