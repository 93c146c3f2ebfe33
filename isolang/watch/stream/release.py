"""Releases the transactions before a watermark from the logs of several clients, as one batch.

The batch contains the same transactions as if all clients had written one log in the order of
times, and this log had been read up to the watermark. Transactions that ended before the watermark
are finished. Transactions that began before the watermark and ended later are in flight, even if
their completion has already been read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from isolang import _native
from isolang.history import columns as c
from isolang.watch.stream.batch import Places
from isolang.watch.stream.client import LogClient
from isolang.watch.stream.operations import Block

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns


class Released(Struct, frozen=True, kw_only=True, eq=False):
    """The transactions of a batch, with the attributes of :class:`isolang.watch.stream.Batch`."""

    columns: Columns
    names: tuple[str, ...]
    sessions: NDArray[np.int64]
    places: Places
    in_flight: NDArray[np.bool_]
    late: NDArray[np.bool_]


def release_block(block: Block) -> Released:
    """Release all transactions of a block, without a watermark."""
    import numpy as np

    n = block.columns.transactions()
    return Released(
        columns=block.columns,
        names=tuple(block.names),
        sessions=block.sessions,
        places=Places(
            file=block.file, offset=block.offset, done_file=block.done_file, done=block.done
        ),
        in_flight=block.in_flight,
        late=np.zeros(n, bool),
    )


class Releaser:
    """Releases transactions up to a watermark that grows from batch to batch.

    Attributes:
        handed: the file and offset of each transaction that was in flight in the last batch.
        aside: the file and offset of each transaction that was set aside and has not ended.
    """

    def __init__(self) -> None:
        self.watermark: int = c.UNKNOWN_BEGIN
        self.handed: set[tuple[int, int]] = set()
        self.aside: set[tuple[int, int]] = set()

    def release(self, clients: Sequence[LogClient], watermark: int) -> Released:
        """Return the transactions that ended before the watermark or were in flight at it."""
        import numpy as np

        gathered = _GatheredRows()
        for client in clients:
            for one in client.waiting:
                take = one.pending & (one.ready < watermark)
                gathered.add(one.block, np.flatnonzero(take), in_flight=False)
                one.pending &= ~take
            for one in client.waiting:  # transactions that completed after the watermark
                invoked = (one.block.done != one.block.offset) | (
                    one.block.done_file != one.block.file
                )
                open_ = one.pending & invoked & (one.block.columns.txn_begin < watermark)
                gathered.add(one.block, np.flatnonzero(open_), in_flight=True)
            if client.last is not None:
                block = client.last
                open_ = block.in_flight & (block.columns.txn_begin < watermark)
                gathered.add(block, np.flatnonzero(open_), in_flight=True)
            while client.waiting and not client.waiting[0].pending.any():
                client.waiting.popleft()
        found = gathered.released(self.watermark, self.handed, self.aside)
        places = found.places
        open_places = np.flatnonzero(found.in_flight)
        self.handed = set(
            zip(places.file[open_places].tolist(), places.offset[open_places].tolist(), strict=True)
        )
        self.watermark = watermark
        return found


class _GatheredRows:
    """The columns that transactions of several blocks are appended to."""

    def __init__(self) -> None:
        self.columns = _native.Columns()
        self.sessions: dict[int, int] = {}
        self.names: list[str] = []
        self.places: list[tuple[Any, Any, Any, Any]] = []
        self.when: list[Any] = []
        self.in_flight: list[Any] = []

    def add(self, block: Block, txns: NDArray[np.intp], *, in_flight: bool) -> None:
        import numpy as np

        if not len(txns):
            return
        local = np.zeros(len(block.sessions), np.int32)
        for s in dict.fromkeys(block.columns.txn_session[txns].tolist()):
            number = int(block.sessions[s])
            if number not in self.sessions:
                self.sessions[number] = len(self.names)
                self.names.append(block.names[s])
            local[s] = self.sessions[number]
        self.columns.append(block.columns, txns.astype(np.int32), local, in_flight)
        none = np.full(len(txns), -1)
        self.places.append(
            (
                block.file[txns],
                block.offset[txns],
                none if in_flight else block.done_file[txns],
                none if in_flight else block.done[txns],
            )
        )
        self.when.append(np.full(len(txns), c.UNKNOWN_END) if in_flight else block.when[txns])
        self.in_flight.append(np.full(len(txns), in_flight))

    def released(
        self, before: int, handed: set[tuple[int, int]], aside: set[tuple[int, int]]
    ) -> Released:
        """Return all appended transactions as a batch."""
        import numpy as np

        empty = np.zeros(0, np.int64)
        columns = [np.concatenate(part) for part in zip(*self.places, strict=True)] or [empty] * 4
        file, offset, done_file, done = columns
        when = np.concatenate([empty, *self.when])
        in_flight = np.concatenate([np.zeros(0, bool), *self.in_flight])
        late = when < before
        invoked = (done != offset) | (done_file != file)
        for t in np.flatnonzero((self.columns.txn_begin < before) & invoked & ~late).tolist():
            place = int(file[t]), int(offset[t])
            late[t] = place not in handed and place not in aside
            if not in_flight[t]:
                aside.discard(place)
        return Released(
            columns=self.columns,
            names=tuple(self.names),
            sessions=np.fromiter(self.sessions, np.int64, len(self.sessions)),
            places=Places(
                file=file.astype(np.int32),
                offset=offset.astype(np.int64),
                done_file=done_file.astype(np.int32),
                done=done.astype(np.int64),
            ),
            in_flight=in_flight,
            late=late,
        )
