"""The transactions of a violation, with the operations that matter."""

from __future__ import annotations

from collections.abc import Sequence

from isolang.explain.part import Part
from isolang.explain.violation import OperationView, TransactionView
from isolang.explain.words import Words


def show_transactions(
    part: Part, words: Words, txns: Sequence[int], matters: set[int]
) -> tuple[TransactionView, ...]:
    """Show transactions with the operations that matter, in the order of the history.

    Args:
        part: what the numbers are of; the views have those of the whole.
        words: of the part.
        txns: what to show; T0 and -1 are left out.
        matters: the operations that an edge is about.
    """
    history = part.history
    views = []
    for txn in sorted({t for t in txns if 0 <= t < history.t0}):
        ops = history.operations_of(txn)
        shown = [op for op in ops if op in matters]
        views.append(
            TransactionView(
                number=part.txns[txn],
                name=history.label(txn),
                status=history.status(txn),
                session=history.session_of(txn),
                where=history.where(txn),
                operations=tuple(
                    OperationView(
                        number=part.ops[op],
                        text=words.operation(op),
                        where=history.where_op(op),
                    )
                    for op in shown
                ),
                omitted=len(ops) - len(shown),
            )
        )
    return tuple(views)
