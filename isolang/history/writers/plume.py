"""Writes Plume's text format: ``r(key,value,session,transaction)``.

The value 0 is the initial state, and aborted transactions are numbered -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.history import columns as c
from isolang.history.readers.reading import quantity
from isolang.history.writers.numbers import number_history
from isolang.history.writers.outline import FormatFeatures
from isolang.history.writers.report import Contents, Sink, WriteReport

if TYPE_CHECKING:
    from isolang.history.history import History

_TARGET = FormatFeatures(name="Plume text")


def encode(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[Contents, WriteReport]:
    """Encode a history in Plume's text format.

    Raises:
        HistoryError: the format cannot express the history.
    """
    from isolang import _native

    found = number_history(
        history, _TARGET, bits=63, zero_writable=False, renumber=renumber, drop=drop
    )
    part = found.part

    def write(sink: Sink) -> None:
        _native.write_plume(
            history.columns, part.txns, part.start, part.ops, found.keys, found.values, sink
        )

    aborted = int(np.count_nonzero(history.columns.txn_status[part.txns] != c.COMMITTED))
    note = f"{quantity(aborted, 'aborted transaction')}: only the writes are kept"
    return write, found.report("plume", *([note] if aborted else []))
