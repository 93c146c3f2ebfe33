"""Version orders that no order contains: list anomalies that are violations even without ``rf``."""

from __future__ import annotations

from itertools import groupby

from isolang.history.columns import ABORTED, APPEND, INITIAL, READ_LIST, UNKNOWN_VALUE
from isolang.problem.anomalies import Anomaly, AnomalyKind
from isolang.problem.problem import Problem

_OF_LISTS = (
    AnomalyKind.INCOMPATIBLE_ORDER,
    AnomalyKind.DUPLICATE_ELEMENT,
    AnomalyKind.SPLIT_APPEND,
)


def find_order_contradiction(problem: Problem) -> Anomaly | None:
    """Give the first anomaly by which ``vo`` is no order, so that no ``ww`` contains it.

    It violates every spec that uses ``ww``, also one that judges no reads (PL-1). Weaker than the
    anomalies themselves: in which order one transaction's own elements stand is no matter of
    ``ww``. Where a single list read shows the contradiction, the anomaly names no other operation.
    """
    for anomaly in problem.anomalies():
        order = _shown_order(problem, anomaly.op)
        if len(set(order)) < len(order):
            # A read that contradicts its own transaction, too, can show elements torn apart.
            kind = anomaly.kind if anomaly.kind in _OF_LISTS else AnomalyKind.SPLIT_APPEND
            return Anomaly(kind=kind, txn=anomaly.txn, op=anomaly.op, other_txn=-1, other_op=-1)
        if anomaly.kind is AnomalyKind.INCOMPATIBLE_ORDER:
            other = _shown_order(problem, anomaly.other_op)
            shorter = min(len(order), len(other))
            if order[:shorter] != other[:shorter]:
                return anomaly
    return None


def _shown_order(problem: Problem, op: int) -> list[int]:
    """The writers of the elements that a list read shows, in order, neighbours merged.

    One with an append that the list lacks comes again at the end, unless it is the last: what is
    missing was appended after all that is shown.
    """
    history, columns = problem.history, problem.history.columns
    number = int(columns.op_value[op])
    if int(columns.op_kind[op]) != READ_LIST or number == UNKNOWN_VALUE:
        return []
    writer: dict[int, int] = {}
    appends = (columns.op_kind == APPEND) & (columns.op_key == columns.op_key[op])
    for append in (appends & (columns.op_ok != 0)).nonzero()[0].tolist():
        txn = history.transaction_of(append)
        if int(columns.txn_status[txn]) not in (ABORTED, INITIAL):
            writer.setdefault(int(columns.op_value[append]), txn)
    elements = columns.list_values[columns.list_start[number] : columns.list_start[number + 1]]
    shown = [writer[v] for v in elements.tolist() if v in writer]
    merged = [txn for txn, _ in groupby(shown)]
    missing = set(writer) - set(elements.tolist())
    late = {writer[v] for v in missing}
    return merged + [txn for txn in merged[:-1] if txn in late and txn != merged[-1]][:1]
