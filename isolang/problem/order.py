"""Finds list reads that fit no version order; they violate even specifications without ``rf``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from isolang.problem.anomalies import Anomaly, AnomalyKind, observed_append_order
from isolang.problem.problem import Problem


def find_order_contradiction(problem: Problem) -> Anomaly | None:
    """Return the first anomaly that makes ``vo``, the order shown by list reads, contradictory.

    No ``ww`` can then contain ``vo``. Therefore the anomaly violates every specification that uses
    ``ww``, even one without conditions on reads (PL-1). Other list anomalies do not violate all
    such specifications, because ``ww`` does not depend on the order of elements appended by one
    transaction. If a single list read shows the contradiction, the result is a split append, even
    if the read has other anomalies.
    """
    history = problem.history
    keys = history.columns.op_key
    # for each key, its longest list read and the order of its writers
    longest: dict[int, tuple[int, list[int]]] = {}
    for op in _list_reads(problem.anomalies()):
        order = [history.transaction_of(append) for append in observed_append_order(history, op)]
        txn = history.transaction_of(op)
        repeated = next((u for i, u in enumerate(order) if u in order[:i]), None)
        if repeated is not None:
            return Anomaly(kind=AnomalyKind.SPLIT_APPEND, txn=txn, op=op, other_txn=repeated)
        other_op, other = longest.setdefault(int(keys[op]), (op, order))
        shorter = min(len(order), len(other))
        if order[:shorter] != other[:shorter]:
            return Anomaly(
                kind=AnomalyKind.INCOMPATIBLE_ORDER,
                txn=txn,
                op=op,
                other_txn=history.transaction_of(other_op),
                other_op=other_op,
            )
        if len(order) > len(other):
            longest[int(keys[op])] = op, order
    return None


def _list_reads(anomalies: Iterable[Anomaly]) -> Iterator[int]:
    """Yield, without duplicates, the list reads that may contradict themselves or each other.

    For every read that is not yielded, the list is a prefix of the longest list of its key. If any
    read of a key is yielded, the read of the longest list is yielded too.
    """
    seen: set[int] = set()
    for anomaly in anomalies:
        reads = [anomaly.op]
        if anomaly.kind is AnomalyKind.INCOMPATIBLE_ORDER and anomaly.other_op is not None:
            reads.insert(0, anomaly.other_op)
        yield from (op for op in reads if op not in seen)
        seen.update(reads)
