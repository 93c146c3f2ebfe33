"""Describes intrinsic anomalies: reads that are wrong under every choice."""

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
    NIL_ATOM,
    NO_VERSION,
    READ,
    READ_LIST,
    READ_NONE_OF,
    READ_ONE_OF,
    SET_READS,
    SOURCE_MISSING,
    UNKNOWN_VALUE,
)
from isolang.history.values import preview

if TYPE_CHECKING:
    from isolang.history.history import History


class AnomalyKind(IntEnum):
    """The kinds of intrinsic anomalies, numbered as in ``problem.hpp`` and certificates."""

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
        """The anomaly's name in the literature, or this project's own name if there is none."""
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

# The values that the reader of sets gives the key of an element, and how often it was read.
_ELEMENTS = {":in": "", ":in-twice": " twice"}

_LONGEST = 60  # messages shorten lists with more characters than this


class Anomaly(Struct, frozen=True, kw_only=True):
    """An intrinsic anomaly.

    Attributes:
        txn: the number of the reading transaction. If stated versions contradict each other, it may
            be a writing transaction instead.
        op: the number of the wrong read. If stated versions contradict each other, it may be a
            write instead.
        other_txn: the transaction that the read contradicts; the reader itself if the read
            contradicts one of its own writes.
        other_op: the operation that the read contradicts. It is ``None`` for a split append if the
            list shows one transaction's appends in two blocks, with another transaction's appends
            between them; ``other_txn`` is then the transaction with the two blocks.
    """

    kind: AnomalyKind
    txn: int
    op: int
    other_txn: int | None = None
    other_op: int | None = None

    def evidence(self, history: History) -> str:
        """Return a sentence stating what was read, where, and why the read is wrong."""
        reader, place = history.name_of(self.txn), history.where_op(self.op)
        if self.kind is AnomalyKind.CONTRADICTING_VERSIONS:
            return f"{_version_clause(history, self.op)} ({place}), {_contradicting(self, history)}"
        reason = _REASONS[self.kind](self, history)
        if int(history.columns.op_kind[self.op]) == READ_NONE_OF and history.of_predicate(self.op):
            key = history.key(int(history.columns.op_key[self.op]))
            return f"{reader} did not find {key} ({place}), {reason}"
        often = _ELEMENTS.get(_value(history, self.op))
        if often is not None and history.format in ("set", "workload"):
            key = history.key(int(history.columns.op_key[self.op]))
            reason = (
                f"which nobody added{often}" if self.kind is AnomalyKind.THIN_AIR_READ else reason
            )
            return f"{reader} read the element {key}{often} ({place}), {reason}"
        return f"{reader} read {_key_and_value(history, self.op)} ({place}), {reason}"

    def operations(self, history: History) -> tuple[int, ...]:
        """Return the operations mentioned in the evidence, beginning with the read."""
        if self.other_op is not None:
            return self.op, self.other_op
        if self.kind is AnomalyKind.SPLIT_APPEND:
            return self.op, *_split_block(self, history)
        return (self.op,)


def anomaly_of_row(row: Sequence[int]) -> Anomaly:
    """Convert five numbers from the native core to an anomaly; -1 means ``None``."""
    kind, txn, op, *others = row
    other_txn, other_op = (None if i < 0 else i for i in others)
    return Anomaly(kind=AnomalyKind(kind), txn=txn, op=op, other_txn=other_txn, other_op=other_op)


def observed_append_order(history: History, op: int) -> list[int]:
    """Return the first append of each block shown by a list read, in list order.

    A block is a run of adjacent elements appended by one transaction. If the transaction behind a
    block other than the last also made an append that is missing from the list, the result ends
    with that append, because it was made after all appends in the list. The result is empty for
    reads other than list reads.
    """
    columns = history.columns
    number = int(columns.op_value[op])
    if int(columns.op_kind[op]) != READ_LIST or number == UNKNOWN_VALUE:
        return []
    append_of: dict[int, int] = {}
    for append in columns.appends(int(columns.op_key[op])):
        if not columns.op_ok[append]:
            continue
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


def _split_block(anomaly: Anomaly, history: History) -> tuple[int, int, int]:
    """Return three appends: one from each block of ``other_txn``, and one between the blocks.

    The append between the blocks is by a different transaction.
    """
    order = observed_append_order(history, anomaly.op)
    first, last, *_ = (
        i for i, append in enumerate(order) if history.transaction_of(append) == anomaly.other_txn
    )
    return order[first], order[first + 1], order[last]


def _key_and_value(history: History, op: int) -> str:
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


def _contradicted_op(anomaly: Anomaly) -> int:
    """Return the operation that the read contradicts.

    Some split appends have no such operation, and the caller must not pass those.
    """
    assert anomaly.other_op is not None, f"a {anomaly.kind.title} without a second operation"
    return anomaly.other_op


def _other_name(anomaly: Anomaly, history: History) -> str:
    op = _contradicted_op(anomaly)
    return f"{history.describe_op(op)} at {history.where_op(op)}"


def _writer_name(anomaly: Anomaly, history: History) -> str:
    return history.name_of(history.transaction_of(_contradicted_op(anomaly)))


def _write_verb(anomaly: Anomaly, history: History) -> str:
    return "appended" if _is_append(anomaly, history) else "wrote"


def _written_object(anomaly: Anomaly, history: History) -> str:
    """Return the words that precede the contradicted operation: ``whose element 3`` or ``which``.

    An append is introduced by its element.
    """
    if _is_append(anomaly, history):
        return f"whose element {history.op_value(_contradicted_op(anomaly))}"
    return "which"


def _is_append(anomaly: Anomaly, history: History) -> bool:
    return int(history.columns.op_kind[_contradicted_op(anomaly)]) == APPEND


def _thin_air(anomaly: Anomaly, history: History) -> str:
    if anomaly.other_op is not None:
        other = _other_name(anomaly, history)
        return f"but names as its source {other}, which does not write that key"
    if int(history.columns.op_source[anomaly.op]) == SOURCE_MISSING:
        return "from a write that the input names but does not contain"
    if _is_list(history, anomaly.op):
        if history.op_value(anomaly.op).startswith("[#without-what-was-there"):
            return "which lacks the initial elements of the list"
        return f"whose element {_unwritten(anomaly, history)} no transaction appended"
    if int(history.columns.op_kind[anomaly.op]) == READ_ONE_OF:
        return "none of which any transaction wrote"
    if int(history.columns.op_kind[anomaly.op]) == READ_NONE_OF:
        return "but there was no other version to read"
    if _is_nil_of_a_row(history, anomaly.op):
        columns, key = history.columns, int(history.columns.op_key[anomaly.op])
        row = f"{history.key(key)} = {history.value(int(columns.initial_value[key]))}"
        return f"but {row} was there from the start, and no transaction deleted it"
    return "which no transaction wrote"


def _is_nil_of_a_row(history: History, op: int) -> bool:
    """Return whether a read returned nil, although the initial version of its key is a row."""
    columns = history.columns
    initial = int(columns.initial_value[columns.op_key[op]])
    return int(columns.op_value[op]) == NIL_ATOM != initial


def _unwritten(anomaly: Anomaly, history: History) -> str:
    columns = history.columns
    key = columns.op_key[anomaly.op]
    appended = set(columns.op_value[(columns.op_kind == APPEND) & (columns.op_key == key)].tolist())
    number = int(columns.op_value[anomaly.op])
    elements = columns.list_values[columns.list_start[number] : columns.list_start[number + 1]]
    return next(history.value(v) for v in elements.tolist() if v not in appended)


def _aborted(anomaly: Anomaly, history: History) -> str:
    other = _contradicted_op(anomaly)
    place = history.where_op(other)
    verb = _write_verb(anomaly, history)
    if history.columns.op_ok[other]:
        who = f"only the aborted {_writer_name(anomaly, history)} {verb}"
    else:
        who = f"only an operation of {_writer_name(anomaly, history)} that failed {verb}"
    return f"{_written_object(anomaly, history)} {who} ({place})"


def _intermediate(anomaly: Anomaly, history: History) -> str:
    writer, other = (
        _writer_name(anomaly, history),
        _other_name(anomaly, history),
    )
    if _is_append(anomaly, history):
        return f"which ends inside the appends of {writer}: after {other}"
    return f"which {writer} overwrote before it ended ({other})"


def _future(anomaly: Anomaly, history: History) -> str:
    verb = _write_verb(anomaly, history)
    reader, place = history.name_of(anomaly.txn), history.where_op(_contradicted_op(anomaly))
    return f"{_written_object(anomaly, history)} {reader} itself {verb} only later ({place})"


def _not_own(anomaly: Anomaly, history: History) -> str:
    own, versions = _contradicted_op(anomaly), history.columns.op_version
    if history.columns.has_versions and NO_VERSION not in versions[[anomaly.op, own]].tolist():
        seen, made = (preview(history.version(op)) for op in (anomaly.op, own))
        return (
            f"as version {seen}, though its own {_other_name(anomaly, history)} made version {made}"
        )
    return f"though its own {_other_name(anomaly, history)} came before"


def _not_last_own(anomaly: Anomaly, history: History) -> str:
    return f"its own {_other_name(anomaly, history)}, though it had written the key again since"


def _incompatible(anomaly: Anomaly, history: History) -> str:
    other = _contradicted_op(anomaly)
    return (
        f"but {_writer_name(anomaly, history)} read {_value(history, other)} "
        f"({history.where_op(other)}): "
        "neither is a prefix of the other"
    )


def _duplicate(anomaly: Anomaly, history: History) -> str:
    return (
        f"which shows the {_other_name(anomaly, history)} of "
        f"{_writer_name(anomaly, history)} more often than it happened"
    )


def _split(anomaly: Anomaly, history: History) -> str:
    if anomaly.other_op is None:
        first, between, last = (
            f"{history.describe_op(op)} of {history.name_of(history.transaction_of(op))}"
            for op in _split_block(anomaly, history)
        )
        return f"which puts the {between} after the {first} and before the {last}"
    return (
        f"where the appends of {_writer_name(anomaly, history)} do not appear "
        "together, complete and in the order in which they were made "
        f"({_other_name(anomaly, history)})"
    )


def _two_values(anomaly: Anomaly, history: History) -> str:
    if anomaly.other_op is None:
        key = int(history.columns.op_key[anomaly.op])
        initial = history.columns.initial_value[key]
        if history.columns.initial_alone[key : key + 1].any():
            initially = f"{history.key(key)} initially held {history.value(int(initial))}"
            return f"which no transaction wrote, although {initially}"
        return f"though it names the initial version, which is {history.value(int(initial))}"
    who, value = _writer_name(anomaly, history), _value(history, anomaly.other_op)
    verb = "read" if int(history.columns.op_kind[anomaly.other_op]) == READ else "wrote"
    place = history.where_op(anomaly.other_op)
    return f"though it names the version that {who} {verb} as {value} ({place})"


def _version_clause(history: History, op: int) -> str:
    """Return a clause such as ``T3 read x = 1 as version 7`` for an operation."""
    reads = int(history.columns.op_kind[op]) == READ
    who = history.name_of(history.transaction_of(op))
    deletes = history.is_delete(op)
    verb = "read" if reads else "deleted" if deletes else "wrote"
    what = history.key(int(history.columns.op_key[op])) if deletes else _key_and_value(history, op)
    return f"{who} {verb} {what} as version {preview(history.version(op))}"


def _contradicting(anomaly: Anomaly, history: History) -> str:
    """Return a clause explaining how the stated versions contradict each other or the values."""
    if anomaly.other_op is None:
        return "a version that no transaction wrote"
    op, other, columns = anomaly.op, anomaly.other_op, history.columns
    conflicting = f"{_version_clause(history, other)} ({history.where_op(other)})"
    reads = [int(columns.op_kind[o]) == READ for o in (op, other)]
    if int(columns.op_version[op]) == int(columns.op_version[other]):
        if any(reads):
            return f"but {conflicting}, although one version has only one value"
        return f"and {conflicting}, although a version is written only once"
    if all(reads):
        return f"and {conflicting}: no transaction wrote either, and there was one initial version"
    if any(reads):
        return (
            f"but {conflicting}, which comes before it, and no transaction "
            "wrote the version that was read"
        )
    first, last = sorted((op, other))
    return (
        f"but {history.describe_op(first)} came before {history.describe_op(last)} in it, and its "
        f"version comes later: {conflicting}"
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
