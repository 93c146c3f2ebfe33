"""Delta debugging on the transactions, or on the operations, of a part of a history."""

from __future__ import annotations

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
) -> HistoryPart:
    """Remove transactions, or single operations, as long as the remaining part is accepted.

    Delta debugging (Zeller & Hildebrandt, *Simplifying and isolating failure-inducing input*). The
    result is a part from which no single element can be removed, unless the search was stopped
    earlier.

    Args:
        part: the part to begin with, which must be accepted.
        accept: the function that accepts or rejects smaller and smaller parts. The last accepted
            part is returned.
        by_transaction: whether to remove transactions instead of operations.
        enough: the function that decides before each attempt whether to stop.
        share: the share of the elements that the first attempts remove at once.
        keep: transactions of the whole history that every part must keep.
    """
    without = _without_transactions if by_transaction else _without_operations
    size = _size(part, by_transaction)
    chunk = max(1, int(size * share))
    start = 0
    refused = 0  # elements in a row that could not be removed alone
    while refused < size:
        if start >= size:
            chunk, start = max(1, chunk // 2), 0
        if enough():
            break
        end = min(start + chunk, size)
        kept = by_transaction and not keep.isdisjoint(part.txns[start:end])
        smaller = part if kept else without(part, start, end)
        if not kept and len(smaller.txns) > 1 and accept(smaller):
            part, refused = smaller, 0
            size = _size(part, by_transaction)
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
    """Remove operations, and each transaction that loses all operations that it had."""
    kept = [*range(first), *range(last, len(part.ops))]
    return part.narrowed(kept, part.without_operations())
