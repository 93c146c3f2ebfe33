"""Decides whether the reads of a valid history observed other sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.certify.proofs import Witness
    from isolang.history.history import History


def observes_other_sessions(history: History, witness: Witness) -> bool:
    """Return whether any read returned or missed another session's write."""
    import numpy as np

    columns = history.columns
    session = columns.txn_session

    def sessions_of(reads: NDArray[np.intp]) -> NDArray[np.int32]:
        return session[np.searchsorted(columns.op_start, reads, side="right") - 1]

    seen = np.flatnonzero((witness.source >= 0) & (witness.source < history.t0))
    if (sessions_of(seen) != session[witness.source[seen]]).any():
        return True
    # A read of the initial state missed all writes to its key.
    missing = np.flatnonzero(witness.source == history.t0)
    keys = columns.op_key[missing]
    written = witness.order_start[keys + 1] > witness.order_start[keys]
    missing, keys = missing[written], keys[written]
    if not len(missing):
        return False
    writers = session[witness.order_txn]
    (some,) = np.nonzero(np.diff(witness.order_start))
    least, most = np.zeros((2, len(witness.order_start) - 1), dtype=np.int64)
    least[some] = np.minimum.reduceat(writers, witness.order_start[some])
    most[some] = np.maximum.reduceat(writers, witness.order_start[some])
    own = sessions_of(missing)
    return bool(((least[keys] != own) | (most[keys] != own)).any())
