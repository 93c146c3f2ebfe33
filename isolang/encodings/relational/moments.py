"""Computes the moments of a transaction shown by its history, as defined in docs/times.md.

Interpretations use this implementation. The engine's problem and the certificate checkers have
their own.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from isolang.arrays import np
from isolang.history.columns import COMMITTED, UNKNOWN_BEGIN, UNKNOWN_END

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang._native import Columns

_NOTHING = (UNKNOWN_BEGIN, UNKNOWN_END)


class Moments(NamedTuple):
    """The moments of one transaction.

    Unless the transaction is committed, the times of its answers are unknown.

    Attributes:
        sent: for each operation, the earliest time at which it can have been sent.
        answered: for each operation, the latest time at which it can have been answered.
        first_answered: the latest time at which the first operation can have been answered.
        commit_sent: the earliest time at which COMMIT can have been sent.
        commit_answered: the latest time at which COMMIT can have been answered.
    """

    sent: dict[int, int]
    answered: dict[int, int]
    first_answered: int
    commit_sent: int
    commit_answered: int


class RecordedTimes:
    """The times recorded by a history, which determine the moments of each transaction."""

    def __init__(self, columns: Columns) -> None:
        """Read the times from the columns of a history."""
        self._timed = columns.has_operation_times
        self._bounded = (columns.has_time or self._timed) and not columns.two_clocks
        self._whole = _pairs(columns.txn_begin, columns.txn_end)
        self._commit = _pairs(columns.commit_begin, columns.commit_end)
        self._operations = _pairs(columns.op_begin, columns.op_end)
        self._start = columns.op_start.tolist()
        self._status = columns.txn_status.tolist()
        # For each transaction, its predicate reads that returned no rows. All other statements have
        # the times of their operations.
        self._silent: dict[int, list[tuple[float, tuple[int, int]]]] = defaultdict(list)
        spans = _pairs(columns.statement_start, columns.statement_end)
        answers = _pairs(columns.statement_sent, columns.statement_answered)
        for (start, end), own, owner in zip(
            spans, answers, columns.statement_txn.tolist(), strict=False
        ):
            if start == end:
                self._silent[owner].append((float(start), own))

    def of(self, txn: int) -> Moments:
        """Return a transaction's moments, each bounded by the moments before and after it."""
        begin, end = self._whole[txn] if self._bounded else _NOTHING
        commit = self._commit[txn] if self._timed else _NOTHING
        ops = range(self._start[txn], self._start[txn + 1])
        # A predicate read without rows has the number of the operation that follows it.
        known = [(op + 0.5, self._operations[op] if self._timed else _NOTHING) for op in ops]
        known = sorted([*known, *self._silent.get(txn, ())], key=lambda one: one[0])
        since = list(accumulate((sent for _, (sent, _) in known), max, initial=begin))
        until = list(
            accumulate(
                (answers for _, (_, answers) in reversed(known)), min, initial=min(end, commit[1])
            )
        )[::-1]
        if self._status[txn] != COMMITTED:
            until = [UNKNOWN_END] * len(until)
        at = {place: i for i, (place, _) in enumerate(known)}
        return Moments(
            {op: since[at[op + 0.5] + 1] for op in ops},
            {op: until[at[op + 0.5]] for op in ops},
            until[0],
            max(since[-1], commit[0]),
            until[-1],
        )


def _pairs(sent: NDArray[np.int64], answered: NDArray[np.int64]) -> list[tuple[int, int]]:
    return list(zip(sent.tolist(), answered.tolist(), strict=True))
