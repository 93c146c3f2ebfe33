"""What a name says of a log of operations: linearizability and its kin.

Each of its transactions is one operation, which reads, writes, or compares and sets one key. Of a
cycle of such the field says that the operations have no linearization (M. Herlihy, J. Wing, TOPLAS
12(3), 1990), or that they are not sequentially consistent (L. Lamport, 1979).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isolang.explain import names
from isolang.history.columns import APPEND, READ_NONE_OF, WRITE
from isolang.language.vocabulary import DEPENDENCIES

if TYPE_CHECKING:
    from collections.abc import Collection

    from isolang.explain.violation import TransactionView
    from isolang.history.history import History

MEANING: Final = {
    "thin-air read": "an operation read a value that nobody wrote",
    "G1a": "an operation read what only failed ones wrote",
    "G0": "writes are ordered in a circle",
    "G1c": "operations are ordered in a circle by what they read",
    "lost update": "an operation replaced a value that another one had replaced before",
    "causality violation": "an operation saw an effect and missed its cause",
    "G-single": "a stale read: an operation saw a value that had been replaced",
    "long fork": "reads saw writes in orders that contradict each other",
    "G2": "reads saw writes in orders that contradict each other",
    "no order": "no order of the operations explains what they read (no cycle shows it)",
}


_LOGS: Final = ("registers", "workload")
"""The formats that record operations."""


def are_operations(history: History) -> bool:
    """Return whether a log has each operation on one key: a read, a write, or both in turn."""
    import numpy as np

    columns = history.columns
    start, keys = columns.op_start, columns.op_key
    sizes = np.diff(start)
    if (
        history.format not in _LOGS
        or not len(keys)
        or sizes.max() > 2
        or len(columns.statement_start)
    ):
        return False
    first = start[:-1][sizes == 2]
    writes = np.isin(columns.op_kind, (WRITE, APPEND))
    in_turn = ~writes[first] & writes[first + 1]
    return bool(np.all((keys[first] == keys[first + 1]) & in_turn))


def failed_comparisons(history: History, shown: Collection[TransactionView]) -> tuple[str, ...]:
    """Of what an argument shows, the comparisons that failed and are taken to have run.

    Args:
        history: a log of operations has set-reads for these alone.
        shown: the transactions of the argument; if none, it is about all of the history.
    """
    if history.format != "registers":
        return ()
    columns = history.columns
    about = [t.number for t in shown if t.operations] if shown else range(history.t0)
    return tuple(
        history.name_of(t)
        for t in about
        if any(columns.op_kind[op] == READ_NONE_OF for op in history.operations_of(t))
    )


def meaning(name: str, history: History, relations: Collection[str] = (), key: str = "") -> str:
    """What a name says, in a line: of operations where the history is a log of them.

    Args:
        name: of the anomaly.
        history: that it is in.
        relations: what orders the cycles that the refutation ends in.
        key: of all operations in them, if that is one.
    """
    what = MEANING.get(names.base(name))
    if what is None or not set(relations) <= {"so", "rt", *DEPENDENCIES}:
        return names.meaning(name)
    if not are_operations(history):
        return names.meaning(name)
    if not relations:
        return what
    those = f"the operations on {key}" if key else "the operations"
    if "rt" in relations:
        return f"{what}; {those} have no linearization"
    if "so" in relations:
        order = f"no order of {those} that keeps each session's"
        return f"{what}; {order} explains what they read: not sequentially consistent"
    return f"{what}; no order of {those} explains what they read"
