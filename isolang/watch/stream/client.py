"""Reads one log of a stream, and keeps the transactions that the watermark has not reached."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec
from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.not_seen import RecordingState, recording_after
from isolang.watch.stream.batch import LogSpan
from isolang.watch.stream.formats import followed_format
from isolang.watch.stream.operations import Block, Follower, FollowState
from isolang.watch.stream.segments import Segment, open_bytes, read_some, rotated_files
from isolang.watch.stream.tail import Piece, Tail

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Waiting(Struct, kw_only=True, eq=False):
    """A block with transactions that have not been yielded yet.

    Attributes:
        pending: bool: for each transaction, whether it is finished but has not been yielded yet.
        ready: for each transaction, the time by which it and all earlier transactions of its
            session had completed.
        before: the state of the log before the block; a resumed watch reads the block again from
            this state.
    """

    block: Block
    pending: NDArray[np.bool_]
    ready: NDArray[np.int64]
    before: bytes


class LogClient:
    """Reads the log of one client, block by block.

    Args:
        clock: ``auto``, ``bytes``, ``time`` or ``index``.

    Attributes:
        waiting: the blocks with transactions that have not been yielded yet.
        last: the last block; ``None`` before the first block.
        spans: the bytes read for the next batch.
        heard: when the log last had new data.
        torn: the number of bytes of an incomplete last line that was dropped at the end of the log.
        format: the format of the log; empty before the first line.
    """

    def __init__(
        self,
        source: Path | IO[bytes],
        name: str,
        number: int,
        segments: list[Segment],
        *,
        format: str,  # noqa: A002 — the name users know from the command line
        clock: str,
        prefix: str,
        follow: bool,
        spool: IO[bytes] | None,
        now: float,
    ) -> None:
        self.name = name
        self.tail = Tail(source, name, segments, spool=spool, follow=follow)
        self.follower = Follower(name, prefix=prefix, clock=clock, first=number << 32)
        self.waiting: deque[Waiting] = deque()
        self.last: Block | None = None
        self.spans: list[LogSpan] = []
        self.heard = now
        self.over = False
        self.stopped = False
        self.torn = 0
        self._file = source if isinstance(source, Path) else None
        self._is_whole: bool | None = None  # whether all recordings in the file have their end
        self.format = ""
        self._follow = follow
        self._format = format
        self._segments = segments
        # Maps each session to the time when its last transaction was ready.
        self._latest: dict[int, int] = {}
        # The moment that each earlier watch had reached in the log, and its watermark.
        self._yielded: list[tuple[int, int]] = []
        self._finished = False
        self._last: Piece | None = None  # the last line, if it has no newline

    def lacks_end(self) -> bool:
        """Return whether the log is a recording that had no end when that was first asked."""
        if not self.follower.state.recording:
            return False
        if self._is_whole is None:
            self._is_whole = self._file is not None and _has_ends(self._file)
        return not self._is_whole

    def is_unaudited(self) -> bool:
        """Return whether the log rests on a server's log that no audit has confirmed so far.

        An audit may write the recording again without some tables, as another file.
        """
        state = self.follower.state
        if not (state.rests_on_log and state.recording):
            return False
        return self._file is None or not (self.tail.reads(self._file) and _has_ends(self._file))

    @property
    def front(self) -> int | None:
        """The time that the log has reached; ``None`` before the first transaction."""
        return self.follower.state.front

    @property
    def last_time(self) -> int | None:
        """The latest time in the log, even if an earlier :index is missing.

        ``None`` if the log has no times so far.
        """
        state = self.follower.state
        return max(state.front or 0, state.ahead[-1]) if state.ahead else state.front

    @property
    def sure(self) -> int:
        """The time at or after which all later transactions begin, regardless of line order.

        It is the least integer if no such time is known.
        """
        state = self.follower.state
        # Lines are in the order of :time only if they are from one process or numbered by :index.
        one = state.has_process == 1 and len(state.sessions) == 1
        ordered = state.clock != "time" or one or self._first_number is not None
        if state.front is None or state.unannounced or not ordered:
            return c.UNKNOWN_BEGIN
        return state.front - state.behind

    @property
    def is_from_its_beginning(self) -> bool:
        """``True`` if the log begins with event 0, so no earlier transaction can be in flight."""
        return self._first_number == 0

    @property
    def _first_number(self) -> int | None:
        """The :index of the first event; ``None`` if a later number is missing.

        It is also ``None`` for a complete log, because a program that had only these lines may have
        numbered them. docs/routes.md, *Numbered events*, explains why the numbers show which events
        may still follow.
        """
        state = self.follower.state
        if not self._follow or not state.timed:
            return None
        if state.counts.get("completions_without_invocation"):
            return None
        if state.clock == "index":
            return 0  # the watermark waits for each missing number
        return state.first_index if state.indexed and state.contiguous else None

    @property
    def waits(self) -> int:
        """The number of bytes read in blocks whose transactions have not all been yielded yet."""
        return sum(w.block.size for w in self.waiting) + self.follower.pending_bytes

    def read_block(self, size: int, now: float) -> tuple[Block | None, bytes, bool]:
        """Read the next block.

        Returns:
            The block (``None`` if no complete block can be read now), the state before the block,
            and whether the log made progress.
        """
        before, reached = self.snapshot(), self.tail.reached
        block = self.read(size, now)
        return block, before, block is not None or self.over or self.tail.reached != reached

    def read(self, size: int, now: float) -> Block | None:
        """Return the next block, or ``None`` if the log currently has no complete block.

        Raises:
            HistoryError: the log cannot be read, or cannot be followed.
        """
        if (block := self._accept_block(self.follower.take())) is not None:
            return block
        torn = self.tail.torn
        piece = self.tail.read(size)
        if piece is None:
            if self.tail.torn != torn:
                self.heard = now
            return self.finish() if self.tail.ended and not self.over else None
        self.heard = now
        self._offer(piece)
        return self._accept_block(self.follower.take())

    def finish(self) -> Block | None:
        """End the log, and return its last block, or ``None`` if there is none.

        A last line without a newline is read if it is complete, and otherwise dropped.

        Raises:
            HistoryError: the last line is torn, and dropping it would not be sound.
        """
        try:
            if not self._finished:
                self._finished = True
                piece = self.tail.finish()
                self.tail.close()
                if piece is not None:
                    self._last = piece
                    self._offer(piece)
            block = self._accept_block(self.follower.take(last=True))
        except HistoryError:
            # SOUND BECAUSE: every completion has an invocation, so if a torn completion is dropped,
            # its transaction stays indeterminate; and a transaction with only a torn invocation has
            # not done anything.
            text = self._last.data.strip() if self._last is not None else b""
            others = self.follower.pending_bytes - (
                self._last.size if self._last is not None else 0
            )
            if others or not self.follower.state.timed or text[:1] != b"{" or text[-1:] == b"}":
                raise
            self.torn = self.follower.drop_last()
            block = None
        self.over = not self.follower.pending_bytes
        return block

    def _offer(self, piece: Piece) -> None:
        if not self.format:
            if not piece.data.strip():
                return
            self.format = followed_format(piece.data, self._format, self.name)
        self.spans.append(
            LogSpan(file=piece.file, start=piece.offset, end=piece.offset + piece.size)
        )
        self.follower.add_lines(piece)

    def _accept_block(self, block: Block | None) -> Block | None:
        if block is not None:
            self.last = block
        return block

    # --- behind the watermark ---

    def hold(self, block: Block, before: bytes) -> None:
        """Keep a block until the watermark has passed all of its transactions.

        Transactions that an earlier watch has yielded are not yielded again.
        """
        import numpy as np

        pending = ~block.in_flight
        ready = self._ready(block)
        for until, watermark in self._yielded:
            bases = np.array([segment.base for segment in self._segments], np.int64)
            again = bases[block.done_file] + block.done < until
            pending &= ~(again & (ready < watermark))
        self._yielded = self._not_read_again()
        self.waiting.append(Waiting(block=block, pending=pending, ready=ready, before=before))

    def _ready(self, block: Block) -> NDArray[np.int64]:
        """Return when each transaction and all earlier ones in its session had completed.

        If the times of a session go back, a later transaction also waits until the earlier
        transactions have completed.
        """
        import numpy as np

        of, ready = block.columns.txn_session, block.when.copy()
        if self.follower.state.has_process != 1:  # each transaction is its own session
            return ready
        finished = ~block.in_flight
        numbers = block.sessions.tolist()
        latest = np.array([self._latest.get(s, c.UNKNOWN_BEGIN) for s in numbers], np.int64)
        if self.follower.state.behind:
            for session in range(len(block.sessions)):
                txns = np.flatnonzero((of == session) & finished)
                ready[txns] = np.maximum(np.maximum.accumulate(ready[txns]), latest[session])
        np.maximum.at(latest, of[finished], ready[finished])
        self._latest.update(zip(numbers, latest.tolist(), strict=True))
        return ready

    def snapshot(self) -> bytes:
        """Return the state of the log after the last block, as bytes."""
        return msgspec.msgpack.encode(self.follower.state)

    def restart_state(self) -> tuple[bytes, int, list[tuple[int, int]]]:
        """Return the state from which a resumed watch reads, and the moment this watch has reached.

        The third value contains the moment reached and the watermark of each earlier watch that had
        read further than this watch.
        """
        state = self.waiting[0].before if self.waiting else self.snapshot()
        return state, self.follower.state.reached.moment, self._not_read_again()

    def _not_read_again(self) -> list[tuple[int, int]]:
        """Return the moment and watermark of each earlier watch that read further than this one."""
        reached = self.follower.state.reached.moment
        return [one for one in self._yielded if one[0] > reached]

    def resume(self, state: bytes, yielded: list[tuple[int, int]]) -> None:
        """Continue reading from a state returned by :meth:`restart_state`.

        Raises:
            HistoryError: the log no longer exists or has been changed.
        """
        self.follower.state = msgspec.msgpack.decode(state, type=FollowState)
        self.tail.resume(self.follower.state.reached)
        self.last = self.follower.open_transactions()
        self.format = "edn" if self.follower.state.clock else ""
        self._yielded = yielded


def _has_ends(log: Path) -> bool:
    """Return whether each recording in a log, of which some files may be compressed, has its end.

    Raises:
        HistoryError: a file cannot be read.
    """
    state: RecordingState = ""
    for path in (*(older for _, older in rotated_files(log)), log):
        if path.exists():  # the log is missing while it is rotated
            file, _ = open_bytes(path)
            with file:
                state = recording_after(read_some(file, -1, str(path)), state)
    return not state
