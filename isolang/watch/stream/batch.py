"""The batches of a stream: their transactions with places in the log, and the watermark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.history.columns import UNKNOWN_END
from isolang.history.history import History

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class LogPlace(Struct, frozen=True, kw_only=True, order=True):
    """The place of a transaction in the log.

    Attributes:
        file: the file with the invocation, as an index into :attr:`Log.segments`; if the
            transaction has no invocation, the file with the completion.
        offset: the byte offset of that line in the uncompressed file.
        done_file: the file with the completion; -1 if the completion has not been read yet or is
            missing.
        done: the byte offset of the completion; -1 if ``done_file`` is -1; equal to ``offset`` if
            the transaction has no invocation.
    """

    file: int
    offset: int
    done_file: int = -1
    done: int = -1


class Places(Struct, frozen=True, kw_only=True, eq=False):
    """The places of all transactions in a batch, with one column per field of LogPlace.

    Attributes:
        file: int32.
        offset: int64.
        done_file: int32.
        done: int64.
    """

    file: NDArray[np.int32]
    offset: NDArray[np.int64]
    done_file: NDArray[np.int32]
    done: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.file)

    def __getitem__(self, txn: int) -> LogPlace:
        return LogPlace(
            file=int(self.file[txn]),
            offset=int(self.offset[txn]),
            done_file=int(self.done_file[txn]),
            done=int(self.done[txn]),
        )

    def __iter__(self) -> Iterator[LogPlace]:
        return (self[txn] for txn in range(len(self)))


class LogSpan(Struct, frozen=True, kw_only=True):
    """The bytes from ``start`` to ``end`` of a file, read for a batch.

    If a line begins in one file of the log and ends in the next, all of its bytes belong to the
    first.
    """

    file: int
    start: int
    end: int


class Batch(Struct, frozen=True, kw_only=True, eq=False):
    """The next transactions of a stream.

    Each transaction is finished in exactly one batch. In every earlier batch since its invocation
    it is in flight: it is indeterminate, has the writes of its invocation, and has the same place
    and session. :meth:`Stream.set_aside` may leave it out of some of these batches. The
    transactions of a session are in session order. Predicate reads are as recorded; the window that
    checks them calls ``columns.lower_predicates()``.

    Attributes:
        history: the transactions. Sessions have the names that they have in the whole stream: ``3``
            for process 3, ``3.2`` for its next session after an :info, and ``client/3`` if the
            stream has several logs. Times are positions in the log, in bytes, or nanoseconds if
            :attr:`clock` is ``time``.
        sessions: int64: for each session of the columns, its number in the stream.
        in_flight: bool: for each transaction, whether its completion has not been read yet.
        late: bool: for each transaction, whether it contradicts the watermark of an earlier batch,
            because it ended before that watermark, or because it began before that watermark and
            was neither in flight in that batch nor set aside before.
        watermark: the time at or after which all later transactions begin and all transactions in
            flight end. Exceptions are the transactions of the clients in ``idle``, and completions
            without an invocation, whose begin is unknown. ``None`` before the first invocation.
        sure: the time at or after which all later transactions begin, regardless of the order of
            lines, including those of the clients in ``idle`` and those written after the stream was
            stopped. It is the greatest integer at the end of complete logs, and the least integer
            if no clock orders the lines.
        clock: the unit of times: ``bytes`` for the position in the log, ``time`` for :time,
            ``index`` for :index, or ``none`` before the first invocation.
        idle: the names of the clients that have been silent for at least the grace period; the
            watermark does not wait for them.
        holding: the name of the client that the watermark waits for; empty if the stream has only
            one client.
        waiting: the number of bytes that have been read but whose transactions are not in a batch
            yet, because the watermark has not reached them.
        spans: the bytes read for this batch.
        torn: the number of bytes in unfinished last lines.
        ended: whether this is the last batch. If so, the transactions in flight never complete.
    """

    history: History
    places: Places
    sessions: NDArray[np.int64]
    in_flight: NDArray[np.bool_]
    late: NDArray[np.bool_]
    watermark: int | None
    clock: str
    sure: int = UNKNOWN_END
    idle: tuple[str, ...] = ()
    holding: str = ""
    waiting: int = 0
    spans: tuple[LogSpan, ...] = ()
    torn: int = 0
    ended: bool = False

    def __len__(self) -> int:
        return len(self.in_flight)
