"""The batches of a stream: transactions, their places in the log, and how far the stream is."""

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
        file: the file of the invocation, or of the completion if there was none before it, as an
            index into :attr:`Log.segments`.
        offset: the byte where that line begins, in the file without compression.
        done_file: the file of the completion; -1 if the completion was not read yet or is missing.
        done: the byte where the completion begins, or -1; ``offset`` without an invocation.
    """

    file: int
    offset: int
    done_file: int = -1
    done: int = -1


class Places(Struct, frozen=True, kw_only=True, eq=False):
    """The places of all transactions of a batch: a column for each field of :class:`LogPlace`.

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
    """Bytes that were read for a batch: ``start`` to ``end`` of a file.

    A line that ends in the next file of its log counts as a line of the first.
    """

    file: int
    start: int
    end: int


class Batch(Struct, frozen=True, kw_only=True, eq=False):
    """The next transactions of a stream.

    Each transaction is in exactly one batch as a finished one. Before that it is in flight in every
    batch from its invocation on: indeterminate, with the writes of its invocation, and with the
    same place and session. The transactions of a session are in session order. Predicate reads are
    as they were recorded; the window that checks them calls ``columns.lower_predicates()``.

    Attributes:
        history: the transactions. The names of sessions are those of the whole stream: ``3``, after
            an :info ``3.2``; in a folder ``client/3``. Times are bytes of the log, or nanoseconds
            if :attr:`clock` is ``time``.
        places: the place of each transaction.
        sessions: int64: for each session of the columns, its number in the stream.
        in_flight: bool: for each transaction, whether its completion is still to come.
        late: bool: for each transaction, whether it contradicts the watermark of an earlier batch,
            because it ended before that watermark, or began before it and was not in flight then.
        watermark: the time at or after which all later transactions begin and all transactions in
            flight end, except those of the clients in ``idle``, and except completions without an
            invocation, whose begin is unknown. ``None`` before the first invocation.
        sure: no later transaction begins before this time, whatever the order of lines is, not even
            one of a client in ``idle``, or one written after the stream was stopped. It is the
            greatest number at the end of complete logs, and the least one if the lines are in the
            order of no clock.
        clock: the unit of times: ``bytes`` (the order of the log), ``time`` (:time), ``index``
            (:index), or ``none`` before the first invocation.
        idle: the clients that have been silent for longer than the grace, and no longer hold the
            watermark.
        holding: the client that holds the watermark; empty if there is only one.
        waiting: bytes that were read and are not yet in a batch, since they are behind the
            watermark.
        spans: the bytes that were read for this batch.
        torn: bytes of unfinished last lines.
        ended: whether this is the last batch. The transactions in flight then stay in flight.
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
