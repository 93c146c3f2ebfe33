"""Intrinsic anomalies: what a read shows to be wrong by itself, in the words of the input."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.history.columns import (
    ABORTED,
    APPEND,
    INITIAL,
    NO_VERSION,
    READ,
    READ_LIST,
    READ_NONE_OF,
    READ_ONE_OF,
    SET_READS,
    SOURCE_MISSING,
    UNKNOWN_VALUE,
)
from isolang.history.values import shown

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
    TWO_VALUES = 9
    CONTRADICTING_VERSIONS = 10

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
    AnomalyKind.TWO_VALUES: "two values of one version",
    AnomalyKind.CONTRADICTING_VERSIONS: "stated versions that contradict the answers",
}

_LONGEST = 60  # characters of a list in a message


class Anomaly(Struct, frozen=True, kw_only=True):
    """One intrinsic anomaly.

    Attributes:
        kind: what it is.
        txn: the reader; of contradicting versions, it may be a writer.
        op: its read, or write.
        other_txn: the transaction that the read contradicts (the reader itself where it contradicts
            an own write).
        other_op: the operation that it contradicts. A split append has none where it is the order
            of the transactions that the list contradicts; ``other_txn`` is then the one that stands
            in it twice.
    """

    kind: AnomalyKind
    txn: int
    op: int
    other_txn: int | None = None
    other_op: int | None = None

    def evidence(self, history: History) -> str:
        """Say in one sentence what was read, where, and what it contradicts."""
        reader, place = history.name_of(self.txn), history.where_op(self.op)
        if self.kind is AnomalyKind.CONTRADICTING_VERSIONS:
            return f"{_stated(history, self.op)} ({place}), {_contradicting(self, history)}"
        reason = _REASONS[self.kind](self, history)
        return f"{reader} read {_seen(history, self.op)} ({place}), {reason}"

    def operations(self, history: History) -> tuple[int, ...]:
        """Give the operations that the evidence speaks of, the read first."""
        if self.other_op is not None:
            return self.op, self.other_op
        if self.kind is AnomalyKind.SPLIT_APPEND:
            return self.op, *_torn(self, history)
        return (self.op,)


def anomaly_of_row(row: Sequence[int]) -> Anomaly:
    """Make an anomaly of the five numbers that the native core gives: -1 stands for nothing."""
    kind, txn, op, *others = row
    other_txn, other_op = (None if i < 0 else i for i in others)
    return Anomaly(kind=AnomalyKind(kind), txn=txn, op=op, other_txn=other_txn, other_op=other_op)


def shown_order(history: History, op: int) -> list[int]:
    """Give appends of the transactions whose elements a list read shows, in order: one for a block.

    A transaction with an append that the list lacks comes again at the end, with that one, unless
    it is the last: what is missing was appended after all that is shown. Empty for other reads.
    """
    columns = history.columns
    number = int(columns.op_value[op])
    if int(columns.op_kind[op]) != READ_LIST or number == UNKNOWN_VALUE:
        return []
    append_of: dict[int, int] = {}
    appends = (columns.op_kind == APPEND) & (columns.op_key == columns.op_key[op])
    for append in (appends & (columns.op_ok != 0)).nonzero()[0].tolist():
        if int(columns.txn_status[history.transaction_of(append)]) not in (ABORTED, INITIAL):
            append_of.setdefault(int(columns.op_value[append]), append)
    start, end = columns.list_start[number : number + 2].tolist()
    elements: list[int] = columns.list_values[start:end].tolist()
    shown = [append_of[v] for v in elements if v in append_of]
    blocks = [next(block) for _, block in groupby(shown, history.transaction_of)]
    missing: dict[int, int] = {}
    for append in sorted(append_of[value] for value in append_of.keys() - set(elements)):
        missing.setdefault(history.transaction_of(append), append)
    for append in blocks[:-1]:
        txn = history.transaction_of(append)
        if txn in missing and txn != history.transaction_of(blocks[-1]):
            return [*blocks, missing[txn]]
    return blocks


def _torn(anomaly: Anomaly, history: History) -> tuple[int, int, int]:
    """An append of the transaction that stands twice, one of another, and its own after that."""
    order = shown_order(history, anomaly.op)
    first, last, *_ = (
        i for i, append in enumerate(order) if history.transaction_of(append) == anomaly.other_txn
    )
    return order[first], order[first + 1], order[last]


def _seen(history: History, op: int) -> str:
    is_set = int(history.columns.op_kind[op]) in SET_READS
    between = ", " if is_set else " = "
    return f"{history.key(int(history.columns.op_key[op]))}{between}{_value(history, op)}"


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


def _contradicted(anomaly: Anomaly) -> int:
    """The other operation, of a kind that has one."""
    assert anomaly.other_op is not None, f"a {anomaly.kind.title} without a second operation"
    return anomaly.other_op


def _other(anomaly: Anomaly, history: History) -> str:
    op = _contradicted(anomaly)
    return f"{history.describe_op(op)} at {history.where_op(op)}"


def _writer(anomaly: Anomaly, history: History) -> str:
    return history.name_of(history.transaction_of(_contradicted(anomaly)))


def _verb(anomaly: Anomaly, history: History) -> str:
    return "appended" if _is_append(anomaly, history) else "wrote"


def _object(anomaly: Anomaly, history: History) -> str:
    """What the other operation wrote, as a part of the sentence: of a list, the element."""
    if _is_append(anomaly, history):
        return f"whose element {history.op_value(_contradicted(anomaly))}"
    return "which"


def _is_append(anomaly: Anomaly, history: History) -> bool:
    return int(history.columns.op_kind[_contradicted(anomaly)]) == APPEND


def _thin_air(anomaly: Anomaly, history: History) -> str:
    if anomaly.other_op is not None:
        return f"and names as its source {_other(anomaly, history)}, which is no write of that key"
    if int(history.columns.op_source[anomaly.op]) == SOURCE_MISSING:
        return "from a write that the input names but does not hold"
    if _is_list(history, anomaly.op):
        if history.op_value(anomaly.op).startswith("[#without-what-was-there"):
            return "which lacks what the list began with"
        return f"whose element {_unwritten(anomaly, history)} nobody appended"
    if int(history.columns.op_kind[anomaly.op]) == READ_ONE_OF:
        return "none of which anybody wrote"
    if int(history.columns.op_kind[anomaly.op]) == READ_NONE_OF:
        return "but no other version of it can have been there"
    return "which nobody wrote"


def _unwritten(anomaly: Anomaly, history: History) -> str:
    columns = history.columns
    key = columns.op_key[anomaly.op]
    appended = set(columns.op_value[(columns.op_kind == APPEND) & (columns.op_key == key)].tolist())
    number = int(columns.op_value[anomaly.op])
    elements = columns.list_values[columns.list_start[number] : columns.list_start[number + 1]]
    return next(history.value(v) for v in elements.tolist() if v not in appended)


def _aborted(anomaly: Anomaly, history: History) -> str:
    other = _contradicted(anomaly)
    place = history.where_op(other)
    verb = _verb(anomaly, history)
    if history.columns.op_ok[other]:
        who = f"only the aborted {_writer(anomaly, history)} {verb}"
    else:
        who = f"only an operation of {_writer(anomaly, history)} that failed {verb}"
    return f"{_object(anomaly, history)} {who} ({place})"


def _intermediate(anomaly: Anomaly, history: History) -> str:
    writer, other = _writer(anomaly, history), _other(anomaly, history)
    if _is_append(anomaly, history):
        return f"which ends inside the appends of {writer}: after {other}"
    return f"which {writer} overwrote before it ended ({other})"


def _future(anomaly: Anomaly, history: History) -> str:
    verb = _verb(anomaly, history)
    reader, place = history.name_of(anomaly.txn), history.where_op(_contradicted(anomaly))
    return f"{_object(anomaly, history)} {reader} itself {verb} only later ({place})"


def _not_own(anomaly: Anomaly, history: History) -> str:
    own, versions = _contradicted(anomaly), history.columns.op_version
    if history.columns.has_versions and NO_VERSION not in versions[[anomaly.op, own]].tolist():
        seen, made = (shown(history.version(op)) for op in (anomaly.op, own))
        return f"as version {seen}, though its own {_other(anomaly, history)} made version {made}"
    return f"though its own {_other(anomaly, history)} came before"


def _not_last_own(anomaly: Anomaly, history: History) -> str:
    return f"its own {_other(anomaly, history)}, though it had written the key again since"


def _incompatible(anomaly: Anomaly, history: History) -> str:
    other = _contradicted(anomaly)
    return (
        f"but {_writer(anomaly, history)} read {_value(history, other)} "
        f"({history.where_op(other)}): "
        "neither is a prefix of the other"
    )


def _duplicate(anomaly: Anomaly, history: History) -> str:
    return (
        f"which shows the {_other(anomaly, history)} of {_writer(anomaly, history)} "
        "more often than it was made"
    )


def _split(anomaly: Anomaly, history: History) -> str:
    if anomaly.other_op is None:
        first, between, last = (
            f"{history.describe_op(op)} of {history.name_of(history.transaction_of(op))}"
            for op in _torn(anomaly, history)
        )
        return f"which puts the {between} after the {first} and before the {last}"
    return (
        f"where the appends of {_writer(anomaly, history)} do not stand together, all of them, "
        f"in the order in which it made them ({_other(anomaly, history)})"
    )


def _two_values(anomaly: Anomaly, history: History) -> str:
    if anomaly.other_op is None:
        key = int(history.columns.op_key[anomaly.op])
        initial = history.columns.initial_value[key]
        if history.columns.initial_alone[key : key + 1].any():
            held = f"{history.key(key)} held {history.value(int(initial))}"
            return f"which nobody wrote, but {held} before"
        return f"though it names the initial version, which is {history.value(int(initial))}"
    who, value = _writer(anomaly, history), _value(history, anomaly.other_op)
    verb = "read" if int(history.columns.op_kind[anomaly.other_op]) == READ else "wrote"
    place = history.where_op(anomaly.other_op)
    return f"though it names the version that {who} {verb} as {value} ({place})"


def _stated(history: History, op: int) -> str:
    """Who read or wrote what, and which version that was."""
    reads = int(history.columns.op_kind[op]) == READ
    who = history.name_of(history.transaction_of(op))
    deletes = history.is_delete(op)
    verb = "read" if reads else "deleted" if deletes else "wrote"
    what = history.key(int(history.columns.op_key[op])) if deletes else _seen(history, op)
    return f"{who} {verb} {what} as version {shown(history.version(op))}"


def _contradicting(anomaly: Anomaly, history: History) -> str:
    """Why the versions cannot be as they are stated."""
    if anomaly.other_op is None:
        return "a version that nobody wrote"
    op, other, columns = anomaly.op, anomaly.other_op, history.columns
    beside = f"{_stated(history, other)} ({history.where_op(other)})"
    reads = [int(columns.op_kind[o]) == READ for o in (op, other)]
    if int(columns.op_version[op]) == int(columns.op_version[other]):
        if any(reads):
            return f"but {beside}: one version has one value"
        return f"and {beside}: a version is written once"
    if all(reads):
        return f"and {beside}: nobody wrote either, and there was one version at first"
    if any(reads):
        return f"but {beside}, which comes before it, and nobody wrote what was read"
    first, last = sorted((op, other))
    return (
        f"but {history.describe_op(first)} came before {history.describe_op(last)} in it, and its "
        f"version comes later: {beside}"
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
    AnomalyKind.TWO_VALUES: _two_values,
}
