"""Version orders that no order contains: list anomalies that are violations even without ``rf``."""

from __future__ import annotations

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

    def transactions(op: int) -> list[int]:
        return [history.transaction_of(append) for append in shown_order(history, op)]

    for anomaly in problem.anomalies():
        order = transactions(anomaly.op)
        torn = next((txn for i, txn in enumerate(order) if txn in order[:i]), None)
        if torn is not None:
            return Anomaly(
                kind=AnomalyKind.SPLIT_APPEND, txn=anomaly.txn, op=anomaly.op, other_txn=torn
            )
        if anomaly.kind is AnomalyKind.INCOMPATIBLE_ORDER and anomaly.other_op is not None:
            other = transactions(anomaly.other_op)
            shorter = min(len(order), len(other))
            if order[:shorter] != other[:shorter]:
                return anomaly
    return None
