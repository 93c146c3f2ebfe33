"""Lists the external reads of some transactions, with their candidates as elements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from isolang.encodings.relational.interpretation import ReadEvent
from isolang.history.columns import (
    APPEND,
    READ_LIST,
    SET_READS,
    SOURCE_BY_VALUE,
    UNKNOWN_VALUE,
    WRITE,
)
from isolang.problem import Problem

if TYPE_CHECKING:
    from isolang.history.history import History


class ExternalRead(ReadEvent, frozen=True, kw_only=True):
    """An external read that has at least one candidate.

    Attributes:
        sources: the elements of the candidates, which may include T0.
        elsewhere: whether some candidates are outside the interpretation. This is possible only if
            the interpretation covers a part of a history.
    """

    sources: tuple[int, ...]
    elsewhere: bool


def external_reads(
    problem: Problem,
    txns: Sequence[int],
    element_of: Mapping[int, int],
    ops: Sequence[Sequence[int]],
) -> list[ExternalRead]:
    """Return all external reads that have candidates, including repeated reads of the same value.

    The problem itself has a single row for repeated reads of the same value in a transaction.
    """
    native = problem.native
    operations = _OperationsByKey(problem.history)
    start = native.candidate_start.tolist()
    candidate = native.candidate.tolist()
    writer_txn = native.writer_txn.tolist()
    rows: dict[int, list[int]] = defaultdict(list)
    for row, txn in enumerate(native.read_txn.tolist()):
        if txn in element_of:
            rows[txn].append(row)
    read_op = native.read_op.tolist()
    reads = []
    for element, txn in enumerate(txns[1:], 1):
        known = {
            operations.what_was_read(read_op[row]): candidate[start[row] : start[row + 1]]
            for row in rows[txn]
        }
        for op in operations.external(ops[element - 1]):
            found = known.get(operations.what_was_read(op))
            if not found:
                continue
            writers = [writer_txn[i] for i in found]
            inside = tuple(element_of[w] for w in writers if w in element_of)
            read = ExternalRead(
                op=op,
                reader=element,
                key=operations.key[op],
                sources=inside,
                of_predicate=problem.history.of_predicate(op),
                elsewhere=len(inside) < len(writers),
            )
            reads.append(read)
    return reads


class _OperationsByKey:
    def __init__(self, history: History) -> None:
        self._columns = columns = history.columns
        self.key = columns.op_key.tolist()
        self._kind = columns.op_kind.tolist()
        self._value = columns.op_value.tolist()
        self._source = columns.op_source.tolist()

    def external(self, ops: Iterable[int]) -> list[int]:
        """Return the external reads among a transaction's operations."""
        own: set[int] = set()
        found = []
        for op in ops:
            key = self.key[op]
            if self._kind[op] in (WRITE, APPEND):
                own.add(key)
            elif self._value[op] != UNKNOWN_VALUE and key not in own:
                found.append(op)
        return found

    def what_was_read(self, op: int) -> tuple[int, int, int]:
        """Return a lookup key that is equal for external reads with equal candidates.

        The reads must belong to the same transaction.
        """
        key = self.key[op]
        if self._source[op] != SOURCE_BY_VALUE:
            return key, 1, self._source[op]
        value = self._value[op]
        if self._kind[op] in SET_READS:
            return key, 2, op
        if self._kind[op] == READ_LIST:
            first, end = self._columns.list_start[value : value + 2].tolist()
            # The source is the writer of the last element. An empty list is a read of nil.
            value = int(self._columns.list_values[end - 1]) if end > first else 0
        return key, 0, value
