"""Tracks the horizon of a stream: the time before which no later transaction begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isolang.history import columns as c
from isolang.history.history import History
from isolang.watch.cut import CutLimits
from isolang.watch.judging import history_of

if TYPE_CHECKING:
    from isolang._native import Columns
    from isolang.watch.stream import Batch, Rows


class Horizon:
    """The time a stream has reached, according to its last batch.

    Args:
        clock_error: the largest difference between two sessions' clocks, in nanoseconds.

    Attributes:
        clock_error: the largest difference between two sessions' clocks, in nanoseconds.
        source: the history of the last batch, which records how the log is read; ``None`` before
            the first batch.
        watermark: the time at or after which all later transactions begin, except those of ``idle``
            clients; ``None`` if the stream has no times.
        sure: the time at or after which all later transactions begin, including those of ``idle``
            clients.
        idle: the names of the clients that the watermark no longer waits for, because they have
            been silent for too long.
        watermark_note: a message about what the watermark is waiting for; empty if it is not
            waiting.
    """

    def __init__(self, clock_error: int) -> None:
        self.clock_error = clock_error
        self.source: History | None = None
        self.timed = False
        self.watermark: int | None = None
        self.sure: int = c.UNKNOWN_BEGIN
        self.idle: tuple[str, ...] = ()
        self.watermark_note = ""
        self._slowest = ""

    def advance(self, batch: Batch) -> None:
        """Update the horizon with the times of a batch."""
        self.source = batch.history
        self.timed = batch.watermark is not None or (batch.ended and self.timed)
        self.watermark = batch.watermark
        self.sure, self.idle = batch.sure, batch.idle
        self._slowest, self.watermark_note = batch.holding, ""
        if batch.waiting and batch.clock == "index":
            self.watermark_note = (
                f"waits for :index {batch.watermark:,}, which has not appeared yet"
            )
        elif batch.waiting and batch.holding:
            self.watermark_note = f"waits for {batch.holding}, which lags behind the other logs"

    def history_of(self, columns: Columns, names: Sequence[str]) -> History:
        """Return columns as a history that is described as read in the same way as the log."""
        return history_of(columns, names, self.source, clock_error=self.clock_error)

    def limits(self, behind: int, *, real_time: bool) -> CutLimits:
        """Return the limits of a cut, which determine the transactions that stay in the window."""
        return CutLimits(
            before=self.watermark if self.timed else None,
            behind=behind,
            real_time=real_time,
            clock_error=self.clock_error,
        )

    def is_past(self, rows: Rows, selected: Sequence[int]) -> bool:
        """Return whether the selected transactions cannot have read from a later transaction.

        SOUND BECAUSE a later transaction begins at the watermark or later, and each selected
        transaction ended before the watermark by more than the clocks may differ.
        """
        if not self.timed or self.watermark is None:
            return False
        columns = rows.columns
        until = self.watermark - 2 * self.clock_error
        return all(
            columns.txn_end[t] < until for t in selected if columns.txn_status[t] == c.COMMITTED
        )

    def awaited_end(self) -> str:
        """Return a message about what must happen before :meth:`is_past` becomes true."""
        if not self.timed or self.watermark is None:
            return (
                "waits for the end of the log, because without :invoke lines the order of "
                "transactions is unknown"
            )
        who = self._slowest or "the log"
        return f"waits until {who} has passed the time of the reads: it is at {self.watermark:,}"

    def open_duration(self, begin: int) -> str:
        """Return a phrase for how long a transaction that began at ``begin`` has been open.

        Return an empty string if the stream has no clock times or the time is unknown.
        """
        if self.source is None or not self.source.real_time.startswith(":time"):
            return ""
        if self.watermark is None or begin == c.UNKNOWN_BEGIN:
            return ""
        return f" for {(self.watermark - begin) / 1e9:,.0f} s"
