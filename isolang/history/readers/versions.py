"""What dbcop's two newer formats share: null is the initial state, and 0 is if nobody wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.history import columns as c
from isolang.history.readers.reading import counted

if TYPE_CHECKING:
    from isolang._native import Columns

INITIAL_SENTENCE = "a read of null, or of version 0 where no transaction wrote 0 to the key"
SESSION_SENTENCE = "the order of transactions in a session of the file"
REAL_TIME_SENTENCE = "none: the format has no times"


def normalise_zero_reads(columns: Columns) -> tuple[str, ...]:
    """Make reads of version 0 reads of nil, for the keys that nobody wrote 0 to; say how many.

    A write of 0 by an uncommitted transaction counts: a read of that 0 is an aborted read, not an
    initial one.
    """
    import numpy as np

    zero = columns.intern_value(1, 0)
    is_zero = columns.op_value == zero
    written = np.zeros(columns.n_keys(), dtype=bool)
    written[columns.op_key[is_zero & (columns.op_kind == c.WRITE)]] = True
    reads = is_zero & (columns.op_kind == c.READ) & ~written[columns.op_key]
    found = np.flatnonzero(reads).tolist()
    for op in found:
        columns.set_value(op, c.NIL_ATOM)
    if not found:
        return ()
    return (f"{counted(len(found), 'read')} of version 0, which nobody wrote: the initial state",)
