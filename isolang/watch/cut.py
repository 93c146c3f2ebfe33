"""Where a window is cut: along the order of its own witness.

The work is native (native/watch/cut.cpp); why it is sound stands in docs/routes.md, *Cuts of a
stream*.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What must stay in a window.

    Attributes:
        before: only what ended before this time may go; ``None`` where the stream has no times.
        behind: without times, only what has a smaller number than this.
        real_time: whether real time is an edge, as the level uses it.
        clock_error: nanoseconds by which the clocks of two sessions may differ.
    """

    before: int | None
    behind: int
    real_time: bool
    clock_error: int = 0

    def closed(
        self, columns: Columns, numbers: NDArray[np.int64], in_flight: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which transactions are such that all that can overlap them has been seen."""
        known = ~in_flight & (columns.txn_status != c.INDETERMINATE)
        closed: NDArray[np.bool_] = known & self.ended(columns, numbers)
        return closed

    def ended(self, columns: Columns, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which transactions ended before what is still to come begins."""
        if self.before is None:
            return numbers < self.behind
        end = columns.txn_end
        found: NDArray[np.bool_] = (end != c.UNKNOWN_END) & (
            end < self.before - 2 * self.clock_error
        )
        return found


def cut(  # noqa: PLR0917 — columns beside each other
    window: Columns,
    witness: Witness,
    limits: Limits,
    closed: NDArray[np.bool_],
    in_flight: NDArray[np.bool_],
    young: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Find the transactions that no other one leads to.

    Aborted transactions are not looked at: they are the caller's to drop.

    Args:
        window: of the window, in an order that keeps each session's.
        witness: of the level for it.
        limits: what must stay.
        closed: of ``limits``.
        in_flight: whose outcome is still to come.
        young: for whose order later reads are waited for.

    Returns:
        Their rows, ascending.
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
    """The last cut of a stream: all transactions but those that took no effect."""
    import numpy as np

    return np.flatnonzero(window.txn_status != c.ABORTED).astype(np.int32)


def witness_of(
    window: Columns, witness: Witness, going: NDArray[np.int32], part: Columns
) -> Witness:
    """What the witness of a window says of some of its transactions.

    Args:
        window: as it was judged.
        witness: of the level for it.
        going: rows of it.
        part: these alone, from the same values.
    """
    return Witness(
        *_native.restrict_witness(
            window, witness.source, witness.order_start, witness.order_txn, going, part
        )
    )
