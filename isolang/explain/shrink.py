"""Makes parts of a history smaller by delta debugging on transactions or operations."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Set

from isolang.explain.part import HistoryPart


def shrink(
    part: HistoryPart,
    accept: Callable[[HistoryPart], bool],
    *,
    by_transaction: bool,
    enough: Callable[[], bool],
    share: float = 1 / 2,
    keep: Set[int] = frozenset(),
    narrow: Callable[[HistoryPart], HistoryPart] = lambda part: part,
) -> HistoryPart:
    """Remove transactions or single operations as long as the remaining part is accepted.

    The algorithm is delta debugging (Zeller & Hildebrandt, *Simplifying and isolating
    failure-inducing input*). If the search is not stopped early, no single transaction (or
    operation) can be removed from the result.
    """
    without = _without_transactions if by_transaction else _without_operations
    size = _size(part, by_transaction)
    chunk = max(1, int(size * share))
    start = 0
    refused = 0  # the number of consecutive elements that could not be removed individually
    while refused < size:
        if start >= size:
            chunk, start = max(1, chunk // 2), 0
        if enough():
            break
        end = min(start + chunk, size)
        kept = by_transaction and not keep.isdisjoint(part.txns[start:end])
        smaller = part if kept else without(part, start, end)
        if not kept and len(smaller.txns) > 1 and accept(smaller):
            part, refused = narrow(smaller), 0
            size = _size(part, by_transaction)
            if start < _size(smaller, by_transaction):
                of = (part.txns, smaller.txns) if by_transaction else (part.ops, smaller.ops)
                start = bisect_left(of[0], of[1][start])
        else:
            start += chunk
            refused += chunk == 1
    return part


def _size(part: HistoryPart, by_transaction: bool) -> int:
    return part.history.t0 if by_transaction else len(part.ops)


def _without_transactions(part: HistoryPart, first: int, last: int) -> HistoryPart:
    start = part.history.columns.op_start.tolist()
    kept = [*range(start[first]), *range(start[last], start[-1])]
    return part.narrowed(kept, [t for t in part.without_operations() if not first <= t < last])


def _without_operations(part: HistoryPart, first: int, last: int) -> HistoryPart:
    """Remove a range of operations, and each transaction that loses all of its operations.

    A predicate read is removed as a whole, because a part of it would have a different meaning.
    """
    columns = part.history.columns
    for start, end in zip(
        columns.statement_start.tolist(), columns.statement_end.tolist(), strict=True
    ):
        if start < last and first < end:
            first, last = min(first, start), max(last, end)
    kept = [*range(first), *range(last, len(part.ops))]
    return part.narrowed(kept, part.without_operations())
