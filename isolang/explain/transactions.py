"""Builds the views of a violation's transactions, with the operations that matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isolang.explain.part import HistoryPart
from isolang.explain.violation import OperationView, Place, TransactionView
from isolang.explain.words import Phrases

if TYPE_CHECKING:
    from isolang.history.history import History


def show_transactions(
    part: HistoryPart, words: Phrases, txns: Sequence[int], matters: set[int]
) -> tuple[TransactionView, ...]:
    """Return views of transactions with the operations that matter, in history order.

    Args:
        txns: the transactions to show; T0 and -1 are skipped.
    """
    history = part.history
    views = []
    for txn in sorted({t for t in txns if 0 <= t < history.t0}):
        ops = history.operations_of(txn)
        shown = [op for op in ops if op in matters]
        views.append(
            TransactionView(
                number=part.txns[txn],
                name=history.name_of(txn),
                status=history.status(txn),
                session=history.session_of(txn),
                where=history.where(txn),
                place=_place(history, txn, int(history.columns.txn_position[txn])),
                operations=tuple(
                    OperationView(
                        number=part.ops[op],
                        text=words.history.describe_op(op),
                        key=history.key(int(history.columns.op_key[op])),
                        where=history.where_op(op),
                        place=_place(history, txn, int(history.columns.op_position[op])),
                        caller=history.remark(op).caller,
                    )
                    for op in shown
                ),
                omitted=len(ops) - len(shown),
                labels=history.labels_of(txn),
                level=history.level_of(txn),
            )
        )
    return tuple(views)


def _place(history: History, txn: int, position: int) -> Place:
    file = int(history.columns.txn_file[txn])
    name = history.files[file] if 0 <= file < len(history.files) else history.name
    return Place(file=name, unit=history.position_unit, position=position)
