"""One log of a stream: its lines, its transactions, and those that the watermark holds back."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec
from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.watch.stream.batch import LogSpan
from isolang.watch.stream.formats import followed_format
from isolang.watch.stream.operations import Block, Follower, FollowState
from isolang.watch.stream.segments import Segment
from isolang.watch.stream.tail import Piece, Tail

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Waiting(Struct, kw_only=True, eq=False):
    """A block of which not all was yielded.

    Attributes:
        block: the block.
        left: its completed transactions that were not yielded.
        ready: for each of them, when it and all before it in its session were completed.
        before: the state before it, from which a resumed watch reads it again.
    """

    block: Block
    left: NDArray[np.bool_]
    ready: NDArray[np.int64]
    before: bytes


class LogClient:
    """One log.

    Args:
        source: a path, ``-``, or a binary stream.
        name: what to call it.
        number: of all clients of the stream.
        segments: the files of all.
        format: as ``--from`` takes it, or ``auto``.
        clock: ``auto``, ``bytes`` or ``time``.
        prefix: what the names of its sessions begin with.
        follow: whether it may grow.
        spool: a copy of what comes through a pipe.
        now: the time.
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
        self.heard = now  # when it last had something new
        self.over = False
        self.stopped = False  # whether it is over because the watch is
        self.torn = 0  # bytes left out where it ended
        self.format = ""
        self._follow = follow
        self._wanted = format
        self._segments = segments
        self._latest: dict[int, int] = {}  # session: when the last of its transactions was ready
        self._yielded: tuple[int, int] | None = None  # how far, and up to which time
        self._finished = False
        self._last: Piece | None = None  # a line without an end

    @property
    def front(self) -> int | None:
        """The time that it has come to; ``None`` before its first transaction."""
        return self.follower.state.front

    @property
    def last_time(self) -> int | None:
        """The latest time in it, whatever is still missing before; ``None`` before the first."""
        state = self.follower.state
        return max(state.front or 0, state.ahead[-1]) if state.ahead else state.front

    @property
    def sure(self) -> int:
        """The time before which nothing follows in it, whatever the order of its lines is."""
        state = self.follower.state
        # By their times the lines of one process alone are in order, or those that :index counts.
        one = state.has_process == 1 and len(state.sessions) == 1
        ordered = state.clock != "time" or one or self._first_number is not None
        if state.front is None or state.unannounced or not ordered:
            return c.UNKNOWN_BEGIN
        return state.front - state.behind

    @property
    def is_from_its_beginning(self) -> bool:
        """Whether nothing was in flight where the log begins, as the numbers of its events say."""
        return self._first_number == 0

    @property
    def _first_number(self) -> int | None:
        """The :index of the first event, where no number is missing from there on.

        It is ``None`` also of a log that does not grow: it has ended soon, and a program may have
        numbered its lines that knew no more than these. Why the numbers tell what may still come
        stands in docs/routes.md, *Numbered events*.
        """
        state = self.follower.state
        if not self._follow or not state.timed:
            return None
        if state.counts.get("completions_without_invocation"):
            return None
        if state.clock == "index":
            return 0  # what is still missing holds the watermark
        return state.first_index if state.indexed and state.contiguous else None

    @property
    def waits(self) -> int:
        """Bytes that were read and not yielded."""
        return sum(w.block.size for w in self.waiting) + self.follower.held

    def read(self, size: int, now: float) -> Block | None:
        """Read the next block; ``None`` if there is none now.

        Raises:
            HistoryError: it cannot be read, or followed.
        """
        if (block := self._taken(self.follower.take())) is not None:
            return block
        torn = self.tail.torn
        piece = self.tail.read(size)
        if piece is None:
            if self.tail.torn != torn:
                self.heard = now
            return self.finish() if self.tail.ended and not self.over else None
        self.heard = now
        self._offer(piece)
        return self._taken(self.follower.take())

    def finish(self) -> Block | None:
        """End the log; the line that has no end is read if it is whole.

        Raises:
            HistoryError: it is not, and it is needed.
        """
        try:
            if not self._finished:
                self._finished = True
                piece = self.tail.finish()
                self.tail.close()
                if piece is not None:
                    self._last = piece
                    self._offer(piece)
            block = self._taken(self.follower.take(last=True))
        except HistoryError:
            # SOUND BECAUSE: every completion has its invocation, so that one which is torn leaves
            # its transaction indeterminate; an invocation alone has done nothing.
            text = self._last.data.strip() if self._last is not None else b""
            others = self.follower.held - (self._last.size if self._last is not None else 0)
            if others or not self.follower.state.timed or text[:1] != b"{" or text[-1:] == b"}":
                raise
            self.torn = self.follower.drop()
            block = None
        self.over = not self.follower.held
        return block

    def _offer(self, piece: Piece) -> None:
        if not self.format:
            if not piece.data.strip():
                return
            self.format = followed_format(piece.data, self._wanted, self.name)
        self.spans.append(
            LogSpan(file=piece.file, start=piece.offset, end=piece.offset + piece.size)
        )
        self.follower.offer(piece)

    def _taken(self, block: Block | None) -> Block | None:
        if block is not None:
            self.last = block
        return block

    # --- behind the watermark ---

    def hold(self, block: Block, before: bytes) -> None:
        """Keep a block for the watermark, without what was yielded before the watch was resumed."""
        import numpy as np

        left = ~block.in_flight
        ready = self._ready(block)
        if self._yielded is not None:
            until, watermark = self._yielded
            bases = np.array([segment.base for segment in self._segments], np.int64)
            again = bases[block.done_file] + block.done < until
            left &= ~(again & (ready < watermark))
            if not again.any():
                self._yielded = None
        self.waiting.append(Waiting(block=block, left=left, ready=ready, before=before))

    def _ready(self, block: Block) -> NDArray[np.int64]:
        """Where the times of a session go back, the later transaction waits for the earlier one."""
        import numpy as np

        of, ready = block.columns.txn_session, block.when.copy()
        if self.follower.state.has_process != 1:  # each is a session of its own
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
        """The state after the last block, as bytes."""
        return msgspec.msgpack.encode(self.follower.state)

    def restart(self) -> tuple[bytes, int]:
        """The state from which all that was not yielded is read again, and how far it was read."""
        state = self.waiting[0].before if self.waiting else self.snapshot()
        return state, self.follower.state.reached.moment

    def resume(self, state: bytes, read: int, watermark: int) -> None:
        """Go on from a state.

        Args:
            state: where to begin.
            read: how far the log was read.
            watermark: up to which that was yielded.

        Raises:
            HistoryError: the log is gone or changed.
        """
        self.follower.state = msgspec.msgpack.decode(state, type=FollowState)
        self.tail.resume(self.follower.state.reached)
        self.last = self.follower.open_ones()
        self.format = "edn" if self.follower.state.clock else ""
        self._yielded = (read, watermark)
