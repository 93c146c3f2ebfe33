"""What a stream yields: transactions, where each of them stands, and what has arrived so far."""

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
    """Where a transaction stands in the log.

    Attributes:
        file: an index into :attr:`Log.segments`; of the invocation, if there is one.
        offset: the byte where it begins, in the file as it is without compression.
        done_file: the file of the completion; -1 if that is not read yet or there is none.
        done: the byte where the completion begins, or -1. Without an invocation it is ``offset``.
    """

    file: int
    offset: int
    done_file: int = -1
    done: int = -1


class Places(Struct, frozen=True, kw_only=True, eq=False):
    """The places of all transactions of a batch, as :class:`LogPlace` has them.

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

    A line that ends in the next file of its log is counted as if it stood in the first.
    """

    file: int
    start: int
    end: int


class Batch(Struct, frozen=True, kw_only=True, eq=False):
    """The next transactions of a stream.

    Each transaction is in exactly one batch as one that is not in flight. Before, it is in flight
    in every batch from its invocation on: indeterminate, with the writes that it was invoked with,
    and under the same place and session. Transactions of a session stand in its order. Predicate
    reads are as they were recorded: ``columns.lower_predicates()`` is for the window that judges
    them.

    Attributes:
        history: the transactions. Sessions are named, and the names are those of the whole stream:
            ``3``, after an :info ``3.2``; in a folder ``client/3``. Times are bytes of the log, or
            nanoseconds where :attr:`clock` is ``time``.
        places: of each transaction.
        sessions: int64: for each session of the columns its number in the stream.
        in_flight: bool, for each transaction: whether its completion is still to come.
        late: bool, for each transaction: whether it contradicts the watermark of a batch before: it
            began before that and was not in flight then, or ended before that.
        watermark: what is still to come begins at this time or later, and what is in flight ends at
            it or later. Completions without invocations begin at an unknown time. ``None`` before
            the first invocation. What clients that are in ``idle`` may still bring is not counted.
        sure: nothing that is still to come begins before this time, whatever the order of lines
            is: with what the clients in ``idle`` may still bring, and what was still to be written
            where the stream was stopped. The greatest number at the end of logs that are complete,
            the least one where nobody can know: of lines in the order of no clock.
        clock: what times are: ``bytes`` (the order of the log), ``time`` (:time), or ``none``
            before the first invocation.
        idle: the clients that have been silent for longer than the grace, and no longer hold the
            watermark.
        holding: the client that holds the watermark; empty where there is only one.
        waiting: bytes that were read and are not yet in a batch, as the watermark is behind them.
        spans: the bytes that were read for this batch.
        torn: bytes of unfinished last lines, waited for.
        ended: whether nothing comes after this batch. What is in flight then stays so.
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
