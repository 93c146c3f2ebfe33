"""Reads Jepsen's operation maps block by block, and joins invocations with later completions.

The native reader reads each block separately. The maps of open invocations are inserted again
before each block, so the reader can join a completion with an invocation from any earlier block.
This module keeps everything else that depends on earlier blocks, such as each process's session and
the number of transactions.

An invocation that stays open for long may be set aside. It is then left out of the blocks until its
process appears in the log again. The cost of a block therefore does not depend on how many clients
have crashed before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Set
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from isolang import _native
from isolang.errors import HistoryError, UnsupportedError
from isolang.history import columns as c
from isolang.history.initial import declare_initial
from isolang.history.not_seen import (
    RecordingState,
    names_lacking,
    recording_after,
    rests_on_log,
    without_versions,
)
from isolang.history.readers.reading import call_native
from isolang.watch.stream.tail import Piece, ReachedPlace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns

_COUNTED: Final = (
    "nonclient",
    "skipped",
    "stray_completions",
    "odd_values",
    "completion_differs",
    "completions_without_invocation",
    "resumed_after_info",
    "time_goes_back",
)
# After this number of bytes, the clock is chosen even without an :ok, although only an :ok shows
# whether operations have times.
_BYTES_BEFORE_CLOCK: Final = 1 << 20

#: The byte order mark. It is replaced by blanks of the same length, so offsets do not change.
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


#: The clocks under which the order of events may differ from the order of lines.
EVENT_CLOCKS: Final = ("time", "index")


class OpenInvocation(Struct, frozen=True, kw_only=True):
    """An invocation whose completion has not been read yet.

    It has its place, its session, its map, and its :process. The process is ``None`` if the log has
    no processes or the state was saved by an earlier release.
    """

    file: int
    offset: int
    moment: int
    number: int
    session: int
    text: bytes
    process: int | None = None


class FollowState(Struct, kw_only=True):
    """The state of a log after a block. Reading can continue from this state.

    Attributes:
        reached: the place up to which the log was read.
        open: the open invocations, in the order of the log, except those that were set aside.
        aside: the open invocations that were set aside, encoded, by process.
        sessions: for each process, the number of its current session in the stream, and the number
            of that session among the process's sessions, from 1. The first number is -1 if the next
            transaction begins a new session.
        resumed: for each process with an :info, the moments when its second and later sessions
            began.
        has_process: 1 if maps have a :process, 0 if no map has one, -1 before the first map.
        syntax: ``json`` or ``edn``; empty before the first map.
        timed: whether the log has had invocations so far.
        clock: ``bytes``, ``time`` or ``index``; empty before the first block.
        indexed: whether all maps so far have had an increasing :index.
        contiguous: whether the :index has had no gaps so far.
        first_index: the :index of the first map; ``None`` if unknown.
        last_index: the :index of the last map; ``None`` if unknown.
        front: the time that the log has reached in the unit of ``clock``; ``None`` before the
            first map.
        behind: the largest difference between a :time and an earlier line's later :time.
        unannounced: the number of completions that have no invocation although their process had an
            earlier transaction in the log. Their transactions cannot have been in flight when the
            log began.
        counts: the number of ignored maps and values, by kind.
        next_index: the least :index that has not been read yet, if :index is the clock.
        ahead: the :index values greater than ``next_index`` that have been read.
        lacks_facts: whether the lines name facts or operations that are in no transaction.
        recording: whether a recording of an application in the log lacks its end.
        rests_on_log: whether such a recording has the writes of a server's log, in their order.
            Versions cannot be followed, so they are left out.
    """

    reached: ReachedPlace = ReachedPlace()
    lines: int = 0
    begun: int = 0
    numbered: int = 0
    open: list[OpenInvocation] = field(default_factory=list)
    aside: dict[int, bytes] = field(default_factory=dict)
    sessions: dict[int, tuple[int, int]] = field(default_factory=dict)
    resumed: dict[int, list[int]] = field(default_factory=dict)
    has_process: int = -1
    syntax: str = ""
    timed: bool = False
    clock: str = ""
    indexed: bool = True
    contiguous: bool = True
    first_index: int | None = None
    last_index: int | None = None
    front: int | None = None
    behind: int = 0
    unannounced: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    next_index: int = 0
    ahead: list[int] = field(default_factory=list)
    latest: dict[int, int] = field(default_factory=dict)
    lacks_facts: bool = False
    recording: RecordingState = ""
    rests_on_log: bool = False

    def advance(self, name: str, piece: Piece, remarks: dict[str, Any], clock: str) -> None:
        """Advance the front to the latest time in a piece, and record by how much times go back.

        Args:
            clock: ``bytes``, ``time`` or ``index``.

        Raises:
            UnsupportedError: the values of :index are not usable as a clock.
        """
        if clock == "bytes":
            self.front = piece.moment + piece.size
        elif clock == "index":
            ahead = set(self.ahead)
            for index, process in zip(remarks["indices"], remarks["index_processes"], strict=True):
                if process >= 0 and index < self.latest.get(process, -1):
                    raise UnsupportedError(
                        f"{name}: :index {index} of process {process} comes after a later :index "
                        "(expected the lines of a process in order); hint: isocheck check reads "
                        "the "
                        "whole file"
                    )
                self.latest[process] = index
                if index < self.next_index or index in ahead:
                    raise UnsupportedError(
                        f"{name}: :index {index} appears twice (expected each once, because it "
                        "orders the "
                        "events); hint: isocheck check reads the file as a whole"
                    )
                ahead.add(index)
            while self.next_index in ahead:
                ahead.discard(self.next_index)
                self.next_index += 1
            self.ahead = sorted(ahead)
            self.front = self.next_index
        elif remarks["timed_maps"]:
            most = remarks["time_most"]
            self.front = most if self.front is None else max(self.front, most)
            self.behind = max(self.behind, remarks["time_behind"])

    def check_index(self, name: str, remarks: dict[str, Any], clock: str) -> None:
        """Check that :index increases from line to line, if all maps have an :index.

        Raises:
            UnsupportedError: :index does not increase from line to line.
        """
        if not self.indexed:
            return
        if not remarks["all_indexed"]:
            self.indexed = False
            return
        if clock == "index":
            # The threads of a recorder may write lines in a different order from the events.
            return
        first, last = self.first_index, self.last_index
        joins = last is None or remarks["index_first"] > last
        if joins and remarks["index_increases"]:
            self.contiguous = bool(
                self.contiguous
                and remarks["index_contiguous"]
                and (last is None or remarks["index_first"] == last + 1)
            )
            self.first_index = remarks["index_first"] if first is None else first
            self.last_index = remarks["index_last"]
            return
        # SOUND BECAUSE without gaps, each number from the first to the last was read.
        there = range(0)
        if self.contiguous and first is not None and last is not None:
            there = range(first, last + 1)
        if (
            remarks["index_repeats"]
            or remarks["index_first"] in there
            or remarks["index_last"] in there
        ):
            self.indexed = False  # numbers repeat, so line order is used instead
            return
        raise UnsupportedError(
            f"{name}: :index has another order than the lines, which cannot be followed "
            "(expected it to increase); hint: isocheck check reads the file as a whole"
        )


class Block(Struct, frozen=True, kw_only=True, eq=False):
    """The transactions of a block, including those in flight at its end unless they are set aside.

    Attributes:
        columns: the transactions, whose times are in the unit of the clock.
        processes: for each session of the columns, its process; empty if the log has no processes.
        offset: for each transaction, the byte offset of that line.
        done_file: for each transaction, the file with its completion; -1 if it is in flight.
        done: for each transaction, the byte offset of its completion; -1 if it is in flight.
        when: for each transaction, the time of its completion; the greatest integer if it is in
            flight.
        size: the size of the block in the log, in bytes.
    """

    columns: Columns
    sessions: NDArray[np.int64]
    names: list[str]
    processes: list[int]
    file: NDArray[np.int32]
    offset: NDArray[np.int64]
    done_file: NDArray[np.int32]
    done: NDArray[np.int64]
    when: NDArray[np.int64]
    size: int

    @property
    def in_flight(self) -> NDArray[np.bool_]:
        """A flag for each transaction: ``True`` if its completion has not been read yet."""
        flags: NDArray[np.bool_] = self.done < 0
        return flags


class Follower:
    """Reads the transactions of one log, block by block.

    Args:
        clock: ``auto``, ``bytes``, ``time`` or ``index``.

    Attributes:
        state: the state of the log after the last block.
    """

    def __init__(self, name: str, *, prefix: str, clock: str, first: int) -> None:
        self.state = FollowState()
        self._name = name
        self._prefix = prefix
        self._clock = clock
        self._first = first
        self._pieces: deque[Piece] = deque()
        self._decided = clock != "auto"
        self._recorded: bool | None = None  # whether a Recorder wrote the log; None if unknown
        # Whether all maps so far have had a :time, and whether any map has had :times.
        self._timed, self._times = True, False

    def fresh_copy(self, *, clock: str) -> Follower:
        """Return a new follower that reads the same log from its beginning."""
        return Follower(self._name, prefix=self._prefix, clock=clock, first=self._first)

    @property
    def pending_bytes(self) -> int:
        """The number of added bytes that are in no block yet."""
        return sum(piece.size for piece in self._pieces)

    def add_lines(self, piece: Piece) -> None:
        """Add the next lines of the log.

        Raises:
            HistoryError: a line cannot be read; the message states its number.
        """
        if not piece.offset and piece.data.startswith(_BYTE_ORDER_MARK):
            piece = replace(piece, data=b"   " + piece.data.removeprefix(_BYTE_ORDER_MARK))
        self._pieces.append(piece)  # also if the piece cannot be read
        self.state.lacks_facts = self.state.lacks_facts or names_lacking(piece.data)
        self.state.recording = recording_after(piece.data, self.state.recording)
        if not piece.offset and rests_on_log(piece.data):
            self.state.rests_on_log = self.state.lacks_facts = True
        if self._recorded is None:
            self._recorded = None if not (start := _first_map(piece.data)) else _is_recorded(start)
            self._decided = self._decided or bool(self._recorded)
        if not self._decided and not self.state.clock:
            remarks = self._read(piece, "bytes")[1]
            self._timed = self._timed and remarks["all_timed"]
            self._times = self._times or bool(remarks["timed_operations"])
            answered = remarks["ok"] - ("initial" in remarks)
            self._decided = answered > 0 or self.pending_bytes >= _BYTES_BEFORE_CLOCK

    def take(self, *, last: bool = False) -> Block | None:
        """Return a block with the next lines that were added, or ``None`` if they must wait.

        All lines wait for the first :ok, because only an :ok shows whether operations have times.

        Raises:
            HistoryError: the lines are in a different syntax from earlier lines, or cannot be read.
            UnsupportedError: the lines can be read only as part of the whole file.
        """
        clock = self.state.clock or self._clock
        if not self._pieces or not (clock != "auto" or self._decided or last):
            return None
        if clock == "auto":
            clock = "index" if self._recorded else "bytes"
            if not self._recorded and self._times and self._timed:
                clock = "time"
        piece = self._pieces[0]
        block = self._accept(piece, self._read(piece, clock), clock)
        self._pieces.popleft()
        return block

    def open_transactions(self) -> Block | None:
        """Return a block with only the transactions in flight; ``None`` if there are none.

        This is used after a state has been restored.
        """
        at = self.state.reached
        if not self.state.open:
            return None
        nothing = Piece(file=at.file, offset=at.offset, moment=at.moment, data=b"", size=0)
        clock = self.state.clock
        return self._accept(nothing, self._read(nothing, clock), clock)

    def set_aside(self, places: Set[tuple[int, int]]) -> None:
        """Leave open invocations out of the next blocks, until their processes appear again.

        SOUND BECAUSE a process has one open operation at a time, so the next map of its process
        completes the invocation or is an error, and :meth:`_read` then also reads the invocation.
        In a log without processes, any map may complete an invocation, so none is set aside.
        """
        state, still = self.state, []
        for op in self.state.open:
            if op.process is not None and (op.file, op.offset) in places:
                state.aside[op.process] = msgspec.msgpack.encode(op)
            else:
                still.append(op)
        state.open = still

    def _recall(self, processes: Collection[int]) -> None:
        """Undo :meth:`set_aside` for the open invocations of these processes."""
        state = self.state
        back = [msgspec.msgpack.decode(state.aside.pop(p), type=OpenInvocation) for p in processes]
        state.open = sorted([*state.open, *back], key=lambda op: op.moment)

    def drop_last(self) -> int:
        """Drop the piece that was added last, and return its size in bytes."""
        return self._pieces.pop().size

    def _number(self) -> int:
        self.state.numbered += 1
        return self._first + self.state.numbered - 1

    def _read(self, piece: Piece, clock: str) -> Any:
        """Read a piece after the open invocations, with those set aside that it may complete."""
        read = self._read_natively(piece, clock)
        aside = self.state.aside
        if aside and (again := aside.keys() & set(read[1]["processes"])):
            self._recall(again)
            read = self._read_natively(piece, clock)
        return read

    def _read_natively(self, piece: Piece, clock: str) -> Any:
        state = self.state
        same = state.reached.file == piece.file
        text = b"".join(op.text for op in state.open)
        data = without_versions(text + piece.data) if state.rests_on_log else text + piece.data
        read: Any = _native.follow_edn
        return call_native(
            read,
            data,
            self._name,
            {
                "file": piece.file,
                "carried_bytes": len(text),
                "carried_file": [op.file for op in state.open],
                "carried_offset": [op.offset for op in state.open],
                "carried_moment": [op.moment for op in state.open],
                "carried_number": [op.number for op in state.open],
                "lines": state.lines if same else 0,
                "bytes": piece.offset,
                "moment": piece.moment,
                "begun": state.begun,
                "front": c.UNKNOWN_BEGIN if state.front is None else state.front,
                "by_time": clock in EVENT_CLOCKS,
                "index_is_time": clock == "index",
                "by_index": state.indexed,
                "json": state.syntax == "json",
                "has_process": state.has_process,
            },
            timeout=0.0,
        )

    def _accept(self, piece: Piece, read: Any, clock: str) -> Block:
        import numpy as np

        columns, remarks, invoked, completed, when = read
        state = self.state
        fresh = remarks["maps"] - len(state.open)
        if fresh:
            state.check_index(self._name, remarks, clock)
            if state.syntax not in {"", remarks["syntax"]}:
                raise HistoryError(
                    f"{self._name}: {remarks['syntax']} after line {state.lines} (got "
                    f"{remarks['syntax']}, expected {state.syntax} as before)"
                )
            state.syntax = remarks["syntax"]
            state.clock = clock
            state.timed = state.timed or bool(remarks["invocations"])
            state.has_process = int(remarks["has_process"])
        carried = len(state.open)
        n = columns.transactions()
        file = np.full(n, piece.file, np.int32)
        file[:carried] = [op.file for op in state.open]
        offset = np.where(invoked >= 0, invoked, completed)
        done_file = np.where(completed >= 0, np.int32(piece.file), np.int32(-1))
        if "initial" in remarks:
            if state.begun - carried + remarks["initial"] > 0:
                raise HistoryError(
                    f"{self._name}: :init comes after or together with other transactions "
                    "(expected "
                    "it before all of them)"
                )
            declare_initial(columns, remarks["initial"], self._name, rows=True, lowered=False)
        self._count_unannounced(columns, remarks, invoked, completed)
        sessions, names = self._sessions(piece, columns, remarks, completed, file, offset)
        processes = remarks["session_labels"]
        still: list[OpenInvocation] = []
        for t in np.flatnonzero(completed < 0).tolist():
            session = int(columns.txn_session[t])
            if t < carried:
                still.append(state.open[t])
                continue
            at = int(offset[t]) - piece.offset
            end = piece.data.find(b"\n", at)
            still.append(
                OpenInvocation(
                    file=piece.file,
                    offset=piece.offset + at,
                    moment=piece.moment + at,
                    number=state.begun + t - carried + 1,
                    session=int(sessions[session]),
                    process=processes[session] if processes else None,
                    text=piece.data[at : end if end >= 0 else None] + b"\n",
                )
            )
        state.begun += n - carried
        state.open = still
        state.lines = (state.lines if state.reached.file == piece.file else 0) + piece.data.count(
            b"\n"
        )
        state.reached = ReachedPlace(
            file=piece.file, offset=piece.offset + piece.size, moment=piece.moment + piece.size
        )
        for kind in _COUNTED:
            if remarks[kind] and not (clock == "index" and kind == "time_goes_back"):
                state.counts[kind] = state.counts.get(kind, 0) + remarks[kind]
        state.advance(self._name, piece, remarks, clock)
        return Block(
            columns=columns,
            sessions=sessions,
            names=names,
            processes=processes,
            file=file,
            offset=offset,
            done_file=done_file.astype(np.int32),
            done=completed,
            when=np.where(completed >= 0, when, c.UNKNOWN_END),
            size=piece.size,
        )

    def _count_unannounced(
        self, columns: Columns, remarks: dict[str, Any], invoked: Any, completed: Any
    ) -> None:
        """Count the completions without an invocation whose process was already in the log."""
        import numpy as np

        state = self.state
        if not state.timed:
            return
        processes = remarks["session_labels"]
        sessions = columns.txn_session
        for t in np.flatnonzero((invoked < 0) & (completed >= 0)).tolist():
            session = sessions[t]
            first = processes and processes[session] not in state.sessions
            if not first or bool((sessions[:t] == session).any()):
                state.unannounced += 1

    def _sessions(  # noqa: PLR0917 — parallel columns
        self,
        piece: Piece,
        columns: Columns,
        remarks: dict[str, Any],
        completed: Any,
        file: Any,
        offset: Any,
    ) -> tuple[Any, list[str]]:
        """Return the name of each session in a block and its number in the stream."""
        import numpy as np

        state = self.state
        processes = remarks["session_labels"]
        if not processes:  # each transaction is its own session, with its place as the name
            places = zip(file.tolist(), offset.tolist(), strict=True)
            carried = [op.session for op in state.open]
            fresh = [self._number() for _ in range(columns.transactions() - len(carried))]
            named = [f"{self._prefix}@{f}:{o}" for f, o in places]
            return np.array(carried + fresh, np.int64), named
        status = columns.txn_status
        over = np.zeros(len(processes), bool)
        over[columns.txn_session[(status == c.INDETERMINATE) & (completed >= 0)]] = True
        numbers: list[int] = []
        names: list[str] = []
        for session, (process, is_over) in enumerate(zip(processes, over.tolist(), strict=True)):
            number, which = state.sessions.get(process, (-1, 0))
            if number < 0:
                number, which = self._number(), which + 1
                if which > 1:
                    first = int(np.argmax(columns.txn_session == session))
                    at = piece.moment - piece.offset + int(offset[first])
                    state.resumed.setdefault(process, []).append(at)
            state.sessions[process] = (-1 if is_over else number, which)
            numbers.append(number)
            names.append(self.session_name(process, which))
        return np.array(numbers, np.int64), names

    def session_name(self, process: int, which: int) -> str:
        """Return the name of a session of a process; its sessions are numbered from 1."""
        return f"{self._prefix}{process}" + (f".{which}" if which > 1 else "")


def _first_map(data: bytes) -> bytes:
    """Return the first line that is neither empty nor a comment; empty bytes if there is none."""
    for line in data.splitlines():
        if line.strip() and not line.lstrip().startswith(b";"):
            return line
    return b""


def _is_recorded(line: bytes) -> bool:
    """Return whether a log begins like one of :class:`isolang.run.record.recorder.Recorder`.

    The threads of a recorder may write lines in a different order from the events, whose order is
    recorded by :index. All threads share one counter without gaps, so a missing line is noticed.
    """
    return line.startswith(b"{:index 0, :type :")
