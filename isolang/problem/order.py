"""Version orders that no order contains: list anomalies that are violations even without ``rf``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from isolang.problem.anomalies import Anomaly, AnomalyKind, shown_order
from isolang.problem.problem import Problem


def find_order_contradiction(problem: Problem) -> Anomaly | None:
    """Give the first anomaly by which ``vo`` is no order, so that no ``ww`` contains it.

    It violates every spec that uses ``ww``, also one that judges no reads (PL-1). Weaker than the
    anomalies themselves: in which order one transaction's own elements stand is no matter of
    ``ww``. Where a single list read shows the contradiction, it is a split append, whatever else is
    wrong with that read.
    """
    history = problem.history
    keys = history.columns.op_key
    most: dict[int, tuple[int, list[int]]] = {}  # key -> the read that shows most, and its order
    for op in _list_reads(problem.anomalies()):
        order = [history.transaction_of(append) for append in shown_order(history, op)]
        txn = history.transaction_of(op)
        torn = next((u for i, u in enumerate(order) if u in order[:i]), None)
        if torn is not None:
            return Anomaly(kind=AnomalyKind.SPLIT_APPEND, txn=txn, op=op, other_txn=torn)
        other_op, other = most.setdefault(int(keys[op]), (op, order))
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
            most[int(keys[op])] = op, order
    return None


def _list_reads(anomalies: Iterable[Anomaly]) -> Iterator[int]:
    """Give every read that may contradict another one, or itself, once.

    All others are prefixes of the longest list of their key, with which some of these are compared.
    """
    seen: set[int] = set()
    for anomaly in anomalies:
        reads = [anomaly.op]
        if anomaly.kind is AnomalyKind.INCOMPATIBLE_ORDER and anomaly.other_op is not None:
            reads.insert(0, anomaly.other_op)
        yield from (op for op in reads if op not in seen)
        seen.update(reads)
