"""Manages the window of a watch: its transactions, and the places of abandoned transactions."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

from isolang.history import columns as c
from isolang.watch.stream.rows import Rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.watch.horizon import Horizon

_LONG: Final = 4  # a window is long if it has this many rounds' worth of transactions


class Snapshot:
    """The transactions that one round checks: first the finished ones, then those in flight.

    Attributes:
        columns: the transactions as columns whose initial values are the last values of the parts;
            ``None`` before the check.
    """

    def __init__(self, kept: Rows, in_flight: Rows) -> None:
        import numpy as np

        self.rows = Rows.empty()
        self.rows.extend(kept)
        self.rows.extend(in_flight)
        self.in_flight: NDArray[np.bool_] = np.arange(len(self.rows)) >= len(kept)
        self.columns: Columns | None = None

    def __len__(self) -> int:
        return len(self.rows)


class Window:
    """The transactions in memory, and the places of the transactions that the watch gave up on.

    The watch gives up on a transaction in flight after ``grace`` rounds and ``grace_seconds``. From
    then on, the transaction is kept as an indeterminate transaction until it ends.

    Args:
        grace_seconds: the number of seconds that must also have passed since that transaction was
            first read.

    Attributes:
        kept: the finished transactions that no cut has removed.
        in_flight: the transactions whose completion has not been read yet.
        seen: the number of transactions that have finished or been given up on so far, which is
            also the number of the next transaction. A transaction that finished after it was given
            up on is counted twice, so it has two numbers.
        abandoned: the file and offset of each transaction that was in flight for too long.
        since: the value of ``seen`` when each transaction in flight was first read, by its file and
            offset.
    """

    def __init__(
        self,
        *,
        round: int,  # noqa: A002 — the word of the field
        grace: int,
        grace_seconds: float,
    ) -> None:
        self.kept, self.in_flight = Rows.empty(), Rows.empty()
        self.seen = self.again = 0
        self.abandoned: set[tuple[int, int]] = set()
        self.since: dict[tuple[int, int], int] = {}
        self._round, self._grace, self._grace_seconds = round, grace, grace_seconds
        self._arrived: deque[tuple[float, int]] = deque()
        self._began = time.monotonic()

    def snapshot(self) -> Snapshot:
        """Return the transactions that the next round checks."""
        return Snapshot(self.kept, self.in_flight)

    @property
    def transactions(self) -> int:
        """The number of transactions that have finished or been given up on."""
        return self.seen - self.again

    @property
    def wait_from(self) -> int:
        """The number of the oldest transaction that the window is still waiting for."""
        old = self.seen - self._grace * self._round
        if not self._grace_seconds:
            return old
        until = time.monotonic() - self._grace_seconds
        while len(self._arrived) > 1 and self._arrived[1][0] <= until:
            self._arrived.popleft()
        first, seen = self._arrived[0] if self._arrived else (until, 0)
        return min(old, seen if first <= until else 0)

    def advance(self, rows: Rows, in_flight: NDArray[np.bool_]) -> set[tuple[int, int]]:
        """Count the finished transactions of a batch, and replace the transactions in flight.

        If a transaction has been in flight for too long, the watch gives up on it, and keeps it as
        an indeterminate transaction from then on.

        Returns:
            The file and offset of each transaction in flight that the watch has given up on. Later
            batches need not contain it until it ends.
        """
        import numpy as np

        self.seen += int(np.count_nonzero(~in_flight))
        since: dict[tuple[int, int], int] = {}
        awaited, too_long, places = [], [], set()
        wait_from = self.wait_from
        flying = np.flatnonzero(in_flight)
        for t, (file, offset) in zip(flying.tolist(), rows.at[flying, 1:3].tolist(), strict=True):
            place = file, offset
            if place in self.abandoned:
                places.add(place)
                continue
            first_read = self.since.get(place, self.seen)
            if first_read >= wait_from:
                since[place] = first_read
                awaited.append(t)
            else:
                self.abandoned.add(place)
                places.add(place)
                too_long.append(t)
        if too_long:
            self.kept.extend(rows, np.array(too_long, np.int32))
            self.kept.at[-len(too_long) :, 0] = np.arange(self.seen, self.seen + len(too_long))
            self.seen += len(too_long)
        self.since = since
        self.in_flight = rows.take(np.array(awaited, np.int32))
        if self._grace_seconds:
            self._arrived.append((time.monotonic(), self.seen))
        return places

    def remove(self, file: int, offset: int) -> bool:
        """Remove the kept transaction with this place, and return whether it was found."""
        import numpy as np

        at = self.kept.at
        found = (at[:, 1] == file) & (at[:, 2] == offset)
        if not found.any():
            return False
        self.kept = self.kept.take(np.flatnonzero(~found))
        return True

    def put_back(self, rows: Rows) -> None:
        """Insert transactions of parts in order of their numbers, which follow session order."""
        import numpy as np

        rows.extend(self.kept)
        self.kept = rows.take(np.argsort(rows.numbers, kind="stable"))

    def keep(self, window: Snapshot, *, gone: NDArray[np.bool_]) -> None:
        """Keep the finished transactions of a snapshot, except those that a cut removed."""
        import numpy as np

        self.kept = window.rows.take(np.flatnonzero(~window.in_flight & ~gone))

    def is_early(self) -> bool:
        """Return whether a transaction that began before the stream may still be in flight."""
        if self._grace_seconds:
            return time.monotonic() - self._began < self._grace_seconds
        return self.seen <= self._grace * self._round

    def holding_phrase(self, horizon: Horizon) -> str:
        """Return a phrase that names the transaction keeping the window long.

        Return an empty string if the window is not long.
        """
        size = len(self.kept)
        if size < _LONG * self._round:
            return ""
        oldest, what = self.kept, "of unknown outcome"
        open_ = self.in_flight
        begin, least = self.kept.columns.txn_begin, open_.columns.txn_begin
        if len(open_) and least.min() <= begin.min():
            oldest, what, begin = open_, "open", least
        row = int(begin.argmin())
        status = oldest.columns.txn_status[row]
        if what != "open" and status != c.INDETERMINATE:
            return f"one knot of {size:,}"
        age = horizon.open_duration(int(begin[row]))
        return f"T{oldest.columns.txn_number[row]}, {what}{age}, holds {size:,}"
