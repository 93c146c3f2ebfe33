"""Chooses the transactions that a cut removes from the window, following the witness's order.

The algorithm is native (native/watch/cut.cpp); docs/routes.md, *Cuts of a stream*, proves it sound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolang import _native
from isolang.certify.proofs import Witness
from isolang.history import columns as c

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.watch.window import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class CutLimits:
    """The limits that determine the transactions that must stay in the window.

    Attributes:
        before: only transactions that ended before this time may be removed; ``None`` if the
            stream has no times.
        behind: if the stream has no times, only transactions with a smaller number than this may
            be removed.
        real_time: whether the level uses ``rt``; if it does, real time adds edges.
        clock_error: the largest difference between two sessions' clocks, in nanoseconds.
    """

    before: int | None
    behind: int
    real_time: bool
    clock_error: int = 0

    def certainly_ended(
        self, columns: Columns, numbers: NDArray[np.int64], in_flight: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return, for each transaction, whether it certainly ended before all later ones began.

        The entry is false for indeterminate transactions and for transactions in flight, because
        they may take effect at any later time.
        """
        known = ~in_flight & (columns.txn_status != c.INDETERMINATE)
        closed: NDArray[np.bool_] = known & self.ended_before_limit(columns, numbers)
        return closed

    def ended_before_limit(self, columns: Columns, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return, for each transaction, whether it ended before the cut's time limit."""
        if self.before is None:
            return numbers < self.behind
        end = columns.txn_end
        found: NDArray[np.bool_] = (end != c.UNKNOWN_END) & (
            end < self.before - 2 * self.clock_error
        )
        return found


def cut(  # noqa: PLR0917 — parallel columns
    window: Columns,
    witness: Witness,
    limits: CutLimits,
    closed: NDArray[np.bool_],
    in_flight: NDArray[np.bool_],
    young: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Return the transactions of the next cut: no transaction outside the cut precedes them.

    Aborted transactions are ignored; the caller removes them.

    Returns:
        The row numbers of the transactions in the cut, in ascending order.
    """
    import numpy as np

    return _native.cut_window(
        window,
        witness.source,
        witness.order_start,
        witness.order_txn,
        (~closed).astype(np.uint8),
        in_flight.astype(np.uint8),
        young.astype(np.uint8),
        limits.before is not None,
        limits.real_time,
        limits.clock_error,
    )


def last_cut(window: Columns) -> NDArray[np.int32]:
    """Return the row numbers of the last cut of a stream: all transactions that did not abort."""
    import numpy as np

    return np.flatnonzero(window.txn_status != c.ABORTED).astype(np.int32)


def witness_of(
    window: Columns, witness: Witness, going: NDArray[np.int32], part: Columns
) -> Witness:
    """Restrict a window's witness to the transactions of a cut."""
    return Witness(
        *_native.restrict_witness(
            window, witness.source, witness.order_start, witness.order_txn, going, part
        )
    )


def split_cut(
    window: Snapshot,
    witness: Witness,
    limits: CutLimits,
    *,
    young_from: int,
    wait_from: int,
    until: int | None = None,
    ended: bool,
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Return the transactions that a cut removes, split into its part and those without effect.

    Returns:
        First the row numbers of the part. Then the row numbers of the transactions without effect:
        aborted transactions, and indeterminate transactions that the watch gives up on, because no
        transaction has read from them.
    """
    import numpy as np

    columns, rows, in_flight = window.columns, window.rows, window.in_flight
    assert columns is not None
    if ended:
        going = last_cut(columns)
    else:
        closed = limits.certainly_ended(columns, rows.numbers, in_flight)
        if until is not None:
            closed &= rows.numbers < until
        going = cut(columns, witness, limits, closed, in_flight, rows.numbers >= young_from)
    unread = np.ones(len(rows) + 1, bool)  # the last entry represents the initial state
    unread[going] = False
    unread[witness.source] = False
    status = rows.columns.txn_status
    aborted = status == c.ABORTED
    if limits.before is not None:
        end = rows.columns.txn_end
        aborted &= (end != c.UNKNOWN_END) & (end < limits.before)
    abandoned = (status == c.INDETERMINATE) & (rows.numbers < wait_from)
    return going, np.flatnonzero(unread[:-1] & ~in_flight & (aborted | abandoned))
