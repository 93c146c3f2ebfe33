"""AWDIT's text: ``r key value`` lines; runs of - separate transactions, runs of = sessions.

There is no initial state, so where one is read, a first transaction in a session of its own writes
0 to those keys; a note says to declare it when it is read (``initial=1``, ``--initial 1``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.history import columns as c
from isolang.history.writers import WriteReport
from isolang.history.writers.numbers import as_numbers
from isolang.history.writers.outline import Target, outline

if TYPE_CHECKING:
    from isolang.history.history import History

_TARGET = Target(name="AWDIT text", aborted=False)


def encode(history: History, *, renumber: bool, drop: frozenset[str]) -> tuple[bytes, WriteReport]:
    """Encode a history.

    Raises:
        HistoryError: if the text cannot express it.
    """
    part = outline(history, _TARGET, drop)
    numbers = as_numbers(part, target=_TARGET.name, bits=64, zero_writable=False, renumber=renumber)
    initial: set[int] = set()

    def line(op: int) -> str:
        key, value = numbers.key(part.key[op]), numbers.value(op)
        if value == 0:
            initial.add(key)
        return f"{'w' if part.kind[op] == c.WRITE else 'r'} {key} {value}\n"

    sessions = [
        "-----\n".join("".join(map(line, part.ops(txn))) for txn in session)
        for session in part.by_session()
    ]
    notes = [*part.notes, *numbers.notes]
    if initial:
        sessions.insert(0, "".join(f"w {key} 0\n" for key in sorted(initial)))
        notes.append("transaction 1 is the initial state: declare it when reading (--initial 1)")
    report = WriteReport(
        format="awdit",
        transactions=len(part.transactions),
        operations=part.count(),
        notes=tuple(notes),
        key_numbers=numbers.key_numbers,
    )
    return "=====\n".join(sessions).encode(), report
