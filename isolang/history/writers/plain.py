"""The fast way for plain histories: numbers, one initial state, nothing that the format lacks.

The native writers give the same bytes as the Python ones, which know everything else; a generated
history of a million transactions is plain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from isolang.history import columns as c
from isolang.history.readers.reading import counted
from isolang.history.writers import WriteReport

if TYPE_CHECKING:
    from isolang.history.history import History


def applies(history: History, name: str, drop: frozenset[str]) -> bool:
    """Whether the fast way gives what the other one would give."""
    from isolang import _native

    columns = history.columns
    if name not in ("edn", "dbcop", "plume"):
        return False
    if columns.has_time and name != "edn" and "real-time" not in drop:
        return False  # an error, which the other way words
    if name == "edn" and history.session_names:
        return False  # sessions may keep their numbers
    return _native.is_plain(columns, name, _in_real_time(history, name, drop))


def _in_real_time(history: History, name: str, drop: frozenset[str]) -> bool:
    return history.columns.has_time and name == "edn" and "real-time" not in drop


def write(
    history: History, sink: Callable[[bytes], object], *, name: str, drop: frozenset[str]
) -> WriteReport:
    """Write a history to which this applies.

    Args:
        history: what to write.
        sink: takes the bytes, in pieces.
        name: the format: ``edn``, ``dbcop`` or ``plume``.
        drop: what is left out.
    """
    import numpy as np

    from isolang import _native

    columns = history.columns
    _native.write_plain(columns, name, _in_real_time(history, name, drop), sink)
    notes = ["left out: real time"] if columns.has_time and "real-time" in drop else []
    if name != "edn":
        initial = (columns.op_kind == c.READ) & (columns.op_value == c.NIL_ATOM)
        reads = int(np.count_nonzero(initial))
        if reads:
            notes.append(f"{counted(reads, 'read')} of the initial state under its name here")
    aborted = int(np.count_nonzero(columns.txn_status == c.ABORTED))
    if name == "plume" and aborted:
        notes.append(f"{counted(aborted, 'aborted transaction')}: only the writes have a meaning")
    return WriteReport(
        format=name,
        transactions=columns.transactions(),
        operations=columns.operations(),
        notes=tuple(notes),
    )
