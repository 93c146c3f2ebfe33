"""Removes transactions from the window of a watch, in the order of the window's own witness.

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
    """The transactions that must stay in the window.

    Attributes:
        before: a transaction may be removed if it ended before this time; ``None`` without times.
        behind: without times, a transaction may be removed if its number is smaller.
        real_time: whether the level uses ``rt``, so that real time adds edges.
        clock_error: nanoseconds by which the clocks of two sessions may differ.
    """

    before: int | None
    behind: int
    real_time: bool
    clock_error: int = 0

    def closed(
        self, columns: Columns, numbers: NDArray[np.int64], in_flight: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return which transactions can no longer overlap a later one."""
        known = ~in_flight & (columns.txn_status != c.INDETERMINATE)
        closed: NDArray[np.bool_] = known & self.ended(columns, numbers)
        return closed

    def ended(self, columns: Columns, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which transactions ended before every later transaction begins."""
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
    """Return the transactions of the next cut: those without a predecessor outside of the cut.

    Aborted transactions are ignored, and the caller removes them.

    Args:
        window: the columns of the window, in an order that extends session order.
        witness: a witness that the window satisfies the level.
        limits: which transactions must stay.
        closed: the result of :meth:`CutLimits.closed`.
        in_flight: for each transaction, whether its outcome is not known yet.
        young: for each transaction, whether a later read may still reveal the version order of its
            writes.

    Returns:
        The row numbers of the cut, ascending.
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


def everything(window: Columns) -> NDArray[np.int32]:
    """Return the last cut of a stream, which has all transactions that did not abort."""
    import numpy as np

    return np.flatnonzero(window.txn_status != c.ABORTED).astype(np.int32)


def witness_of(
    window: Columns, witness: Witness, going: NDArray[np.int32], part: Columns
) -> Witness:
    """Return the witness of a window restricted to some of its transactions.

    Args:
        window: the columns that were checked.
        witness: a witness that the window satisfies the level.
        going: the rows to keep.
        part: the columns of these rows, with the same value numbers.
    """
    return Witness(
        *_native.restrict_witness(
            window, witness.source, witness.order_start, witness.order_txn, going, part
        )
    )


def split(
    window: Snapshot,
    witness: Witness,
    limits: CutLimits,
    *,
    young_from: int,
    wait_from: int,
    until: int | None = None,
    ended: bool,
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Return the transactions that a cut removes: those of its part, and those without effect.

    Args:
        window: the transactions that a round has checked.
        witness: a witness that the window satisfies the level.
        limits: which transactions must stay.
        young_from: a later read may still reveal the version order of writers with this number or
            a larger one.
        until: transactions with this number or a larger one stay; ``None`` for no such limit.
        wait_from: the watch no longer waits for indeterminate transactions with a smaller number.
        ended: whether the stream has ended; then all transactions that took effect are removed.

    Returns:
        The row numbers of the part; and the row numbers of aborted transactions, and of
        indeterminate transactions that the watch gives up because no transaction has read from
        them.
    """
    import numpy as np

    columns, rows, in_flight = window.columns, window.rows, window.in_flight
    assert columns is not None
    if ended:
        going = everything(columns)
    else:
        closed = limits.closed(columns, rows.numbers, in_flight)
        if until is not None:
            closed &= rows.numbers < until
        going = cut(columns, witness, limits, closed, in_flight, rows.numbers >= young_from)
    unread = np.ones(len(rows) + 1, bool)  # the last entry stands for the initial state
    unread[going] = False
    unread[witness.source] = False
    status = rows.columns.txn_status
    aborted = status == c.ABORTED
    if limits.before is not None:
        end = rows.columns.txn_end
        aborted &= (end != c.UNKNOWN_END) & (end < limits.before)
    abandoned = (status == c.INDETERMINATE) & (rows.numbers < wait_from)
    return going, np.flatnonzero(unread[:-1] & ~in_flight & (aborted | abandoned))
