"""Explains anomalies in logs of single operations, in terms such as linearizability."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from isolang.explain import names
from isolang.history.columns import APPEND, READ_NONE_OF, WRITE
from isolang.language.vocabulary import DEPENDENCIES

if TYPE_CHECKING:
    from collections.abc import Collection

    from isolang.explain.violation import TransactionView
    from isolang.history.history import History

MEANING: Final = {
    "thin-air read": "an operation read a value that no operation wrote",
    "G1a": "an operation read a value that only failed operations wrote",
    "G0": "writes are ordered in a circle",
    "G1c": "what operations read orders them in a circle",
    "lost update": "an operation replaced a value that another operation had already replaced",
    "causality violation": "an operation saw an effect and missed its cause",
    "G-single": "a stale read: an operation read a value that had already been replaced",
    "long fork": "reads saw writes in contradictory orders",
    "G2": "reads saw writes in contradictory orders",
    "no order": "no order of the operations explains what they read (no cycle shows it)",
}


_LOGS: Final = ("registers", "workload")
"""The formats that record single operations."""


def are_operations(history: History) -> bool:
    """Return whether each transaction is a single operation: a read, a write, or both in one."""
    columns = history.columns
    if history.format not in _LOGS or not len(columns.op_key) or len(columns.statement_start):
        return False
    starts, keys, kinds = columns.op_start.tolist(), columns.op_key, columns.op_kind
    for start, end in pairwise(starts):
        if end - start > 2:
            return False
        if end - start == 2:
            in_turn = kinds[start] not in (WRITE, APPEND) and kinds[start + 1] in (WRITE, APPEND)
            if not in_turn or keys[start] != keys[start + 1]:
                return False
    return True


def failed_comparisons(history: History, shown: Collection[TransactionView]) -> tuple[str, ...]:
    """Return the names of failed compare-and-sets that an argument assumes to have run."""
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
    """Return the meaning of an anomaly's name in one line.

    For a log of operations, the meaning refers to operations instead of transactions.
    """
    what = MEANING.get(names.base_name(name))
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
