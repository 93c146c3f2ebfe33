"""Cuts parts off the window. Each part satisfies the level by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isolang.certify.proofs import Witness
from isolang.errors import HistoryError
from isolang.watch.cut import split_cut, witness_of
from isolang.watch.judging import WindowJudge, columns_after_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.watch.horizon import Horizon
    from isolang.watch.parts import Parts
    from isolang.watch.window import Snapshot, Window

_YOUNG: Final = 1  # for this many rounds, later reads may reveal the order of two writers
_PARTS_AT_ONCE: Final = 16  # how many parts a cut divides the window into after parts were put back


class Cuts:
    """Cuts parts off the window of a watch."""

    def __init__(
        self, judge: WindowJudge, window: Window, horizon: Horizon, parts: Parts, size: int
    ) -> None:
        self._judge, self._window, self._horizon = judge, window, horizon
        self._parts, self._size = parts, size

    def cut(self, window: Snapshot, witness: Witness, *, ended: bool, again: bool) -> int:
        """Cut parts off the window, and return the number of transactions in them.

        Raises:
            HistoryError: the last part is not valid by itself.
        """
        import numpy as np

        gone, cut = np.zeros(len(window), bool), 0
        for until in self._division_numbers(window.rows.numbers, again=again):
            going, aside = self._split(window, witness, until, ended=ended)
            share = going[~gone[going]]
            if not len(share):
                continue
            # A part must satisfy the level by itself. If it does not, its transactions stay in the
            # window, which is sound but takes more memory.
            if self._cut_part(window, witness, share, aside):
                gone[share] = gone[aside] = True
                cut += len(share)
            elif ended and until is None:
                raise HistoryError(
                    "the last part is not valid by itself (got a witness of the window, "
                    "expected one of its part); please report this stream"
                )
        if cut:
            self._window.keep(window, gone=gone)
            self._parts.save()
        return cut

    def _division_numbers(self, numbers: NDArray[np.int64], *, again: bool) -> list[int | None]:
        """Return the transaction numbers that divide the window into parts, followed by ``None``.

        If this round has put parts back, the window is cut into parts of the usual size again. If
        the whole window became a single part, each contradiction would put all of it back, and the
        part would only grow.
        """
        if not again:
            return [None]
        size = max(self._size, len(numbers) // _PARTS_AT_ONCE)
        return [*sorted(numbers.tolist())[size:-size:size], None]

    def _split(
        self, window: Snapshot, witness: Witness, until: int | None, *, ended: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """Split the window with :func:`split_cut`, up to the transaction with the number ``until``.

        Return the transactions to cut, and the transactions without effect. If ``until`` is a
        number, the second array is empty, so transactions without effect stay in the window.
        """
        seen = self._window.seen
        going, aside = split_cut(
            window,
            witness,
            self._horizon.limits(seen - self._size, real_time=self._judge.plan.uses_real_time),
            young_from=seen - _YOUNG * self._size + 1,
            wait_from=self._window.wait_from,
            until=until,
            ended=ended and until is None,
        )
        return going, aside if until is None else aside[:0]

    def _cut_part(
        self, window: Snapshot, witness: Witness, going: NDArray[np.int32], aside: NDArray[np.intp]
    ) -> bool:
        """Add rows of the window to the chain as a part if they satisfy the level by themselves.

        Return whether the rows satisfy the level.
        """
        rows = window.rows
        assert window.columns is not None
        members = rows.take(going)
        columns, _ = columns_after_parts(members, self._parts.values.last)
        own = witness_of(window.columns, witness, going, columns)
        part = self._horizon.history_of(columns, members.names)
        if not self._judge.accepts(part, own):
            return False
        self._parts.note_interaction(part, own)
        self._parts.add(members, rows.take(aside), columns, own)
        return True
