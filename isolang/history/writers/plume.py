"""Plume's text: ``r(key,value,session,transaction)``; 0 is initial, transaction -1 aborted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.history import columns as c
from isolang.history.readers.reading import counted
from isolang.history.writers import WriteReport
from isolang.history.writers.numbers import as_numbers
from isolang.history.writers.outline import Target, outline

if TYPE_CHECKING:
    from isolang.history.history import History

_TARGET = Target(name="Plume text")


def encode(history: History, *, renumber: bool, drop: frozenset[str]) -> tuple[bytes, WriteReport]:
    """Encode a history.

    Raises:
        HistoryError: if the text cannot express it.
    """
    part = outline(history, _TARGET, drop)
    numbers = as_numbers(part, target=_TARGET.name, bits=63, zero_writable=False, renumber=renumber)
    lines, aborted, operations = [], 0, 0
    ids = {txn: i for i, txn in enumerate(part.transactions, 1)}
    for session, transactions in enumerate(part.by_session(), 1):
        for txn in transactions:
            committed = part.status[txn] == c.COMMITTED
            aborted += not committed
            name = ids[txn] if committed else -1
            for op in part.ops(txn):
                kind = "w" if part.kind[op] == c.WRITE else "r"
                key = numbers.key(part.key[op])
                lines.append(f"{kind}({key},{numbers.value(op)},{session},{name})\n")
                operations += 1
    notes = [*part.notes, *numbers.notes]
    if aborted:
        notes.append(f"{counted(aborted, 'aborted transaction')}: only the writes have a meaning")
    report = WriteReport(
        format="plume",
        transactions=len(part.transactions),
        operations=operations,
        notes=tuple(notes),
        key_numbers=numbers.key_numbers,
    )
    return "".join(lines).encode(), report
