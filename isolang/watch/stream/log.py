"""Rereads a log: finds transactions by place and writers by value, and hashes bytes."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any

from msgspec.structs import replace

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.values import Value, encode
from isolang.watch.stream.batch import LogPlace
from isolang.watch.stream.operations import Block, Follower, OpenInvocation
from isolang.watch.stream.rows import Rows, place_of
from isolang.watch.stream.segments import Segment, find_segment, open_bytes, read_some, seek
from isolang.watch.stream.tail import Piece, Tail

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.watch.stream.client import LogClient

_Atom = tuple[int, Any]

_BLOCK = 4 << 20
_LINE = 1 << 12


class Log:
    """Reads the input of a stream again.

    Args:
        segments: the files of the stream; places contain indices into this list.
        clients: the clients of the stream, by path or number.

    Attributes:
        segments: the files of the stream.
    """

    def __init__(self, segments: list[Segment], clients: Mapping[str, LogClient]) -> None:
        self.segments = segments
        self._clients = clients

    def rows_at(self, at: NDArray[np.int64]) -> Rows:
        """Return the transactions at the given places.

        Args:
            at: int64[n, 5]: numbers and places, as in :attr:`isolang.watch.stream.rows.Rows.at`.

        Raises:
            HistoryError: the log cannot be read again, or has no transaction at a place.
        """
        import numpy as np

        found, first = Rows.empty(), np.zeros(1, np.int32)
        sessions: dict[str, int] = {}
        with ExitStack() as opened:
            files = _OpenFiles(self, opened)
            for row in at.tolist():
                columns, session = self._read_again(row, files)
                number = sessions.setdefault(session, len(sessions))
                found.columns.append(columns, first, np.full(columns.sessions, number, np.int32))
        found.names = list(sessions)
        found.at = at.astype(np.int64)
        return found

    def _read_again(self, row: list[int], files: _OpenFiles) -> tuple[Columns, str]:
        """Return the transaction at a place, and the name of its session."""
        place = place_of(row)
        client = self._client(place.file)
        follower = self._follower(client)
        at = (place.file, place.offset)
        alone = place.done < 0 or (place.done_file, place.done) == at
        if not alone:
            follower.state.open = [
                OpenInvocation(
                    file=place.file,
                    offset=place.offset,
                    moment=self.segments[place.file].base + place.offset,
                    number=1,
                    session=0,
                    text=self._line(*at, files),
                )
            ]
            follower.state.begun = 1
            at = (place.done_file, place.done)
        text = self._line(*at, files)
        follower.add_lines(
            Piece(
                file=at[0],
                offset=at[1],
                moment=self.segments[at[0]].base + at[1],
                data=text,
                size=len(text),
            )
        )
        block = follower.take(last=True)
        if block is None or block.columns.transactions() != 1:
            name = self.segments[place.file].path
            raise HistoryError(
                f"{name} byte {place.offset}: no transaction begins here (expected one)"
            )
        block.columns.has_time = client.follower.state.timed
        moment = self.segments[int(block.file[0])].base + int(block.offset[0])
        session = block.names[0]
        processes = [p for p, _ in follower.state.sessions.items()]
        if processes:
            before = client.follower.state.resumed.get(processes[0], [])
            session = follower.session_name(processes[0], 1 + bisect_right(before, moment))
        return block.columns, session

    def writers(self, pairs: Sequence[tuple[Value, Value]]) -> list[list[LogPlace]]:
        """Return the transactions that write the given versions.

        Args:
            pairs: the versions, each as a key and a value.

        Returns:
            For each version, the places of its writers, in the order of each log. If a writer is
            still in flight, its place has no completion.

        Raises:
            HistoryError: a part of the log cannot be read again.
        """
        return self.places_of(
            [(encode(key, "the key"), encode(value, "the value")) for key, value in pairs]
        )

    def places_of(self, atoms: Sequence[tuple[_Atom, _Atom | None]]) -> list[list[LogPlace]]:
        """Return the same as :meth:`writers` for versions whose keys and values are atoms.

        The atom ``DELETED`` represents a deletion. ``None`` instead of a value matches every value
        of the key.
        """
        found: list[dict[tuple[int, int], LogPlace]] = [{} for _ in atoms]
        for client in self._clients.values():
            for block in self._blocks(client):
                for pair, txn in _writes_of_versions(block, atoms):
                    place = LogPlace(
                        file=int(block.file[txn]),
                        offset=int(block.offset[txn]),
                        done_file=int(block.done_file[txn]),
                        done=int(block.done[txn]),
                    )
                    found[pair][place.file, place.offset] = place
        return [list(places.values()) for places in found]

    def bytes_hash(self, file: int, start: int, end: int) -> str:
        """Return the SHA-256 of a range of bytes, in hexadecimal.

        Args:
            file: the file that the range begins in.
            start: the first byte of the range in that file.
            end: the byte after the last byte of the range. If it is beyond the end of the file, the
                range continues in the next file of the log.

        Raises:
            HistoryError: the bytes cannot be read again.
        """
        digest = hashlib.sha256()
        missing = end - start
        for data in self._bytes(file, start):
            digest.update(data[:missing])
            missing -= min(missing, len(data))
            if not missing:
                return digest.hexdigest()
        if missing:
            raise HistoryError(
                f"{self.segments[file].path}: shorter than what was read of it (got "
                f"{end - missing} bytes, expected at least {end})"
            )
        return digest.hexdigest()

    def line_of(self, place: LogPlace) -> str:
        """Return a transaction's place as ``name:line``, for messages.

        Raises:
            HistoryError: the file cannot be read again.
        """
        path, before, lines = self.segments[place.file].path, place.offset, 1
        with self._open(place.file) as opened:
            while before and (data := read_some(opened, min(before, 1 << 20), path)):
                lines += data.count(b"\n")
                before -= len(data)
        return f"{path}:{lines}"

    # --- files ---

    def _client(self, file: int) -> LogClient:
        if not 0 <= file < len(self.segments):
            raise HistoryError(f"no file {file} of {len(self.segments)} in the log")
        name = self.segments[file].client
        return next(client for client in self._clients.values() if client.name == name)

    def _follower(self, client: LogClient) -> Follower:
        state = client.follower.state
        return client.follower.fresh_copy(clock=state.clock or "bytes")

    def _open(self, file: int) -> IO[bytes]:
        segment = self.segments[file]
        if segment.pipe and segment.path == segment.client:
            raise HistoryError(
                f"{segment.client}: a pipe cannot be read again; hint: keep a copy of it (spool)"
            )
        opened, _ = open_bytes(find_segment(segment))
        return opened

    def _bytes(
        self, file: int, start: int, size: int = 1 << 20, files: _OpenFiles | None = None
    ) -> Iterator[bytes]:
        """Yield the bytes of a log from a place to its end, file after file."""
        client = self.segments[file].client
        for number in range(file, len(self.segments)):
            if self.segments[number].client != client:
                continue
            path = self.segments[number].path
            with ExitStack() as closing:
                opened = (
                    closing.enter_context(self._open(number)) if files is None else files[number]
                )
                seek(opened, start if number == file else 0, path)
                while data := read_some(opened, size, path):
                    yield data

    def _line(self, file: int, offset: int, files: _OpenFiles) -> bytes:
        """Return the line that begins at a place, even if the line ends in the next file."""
        text = b""
        for data in self._bytes(file, offset, _LINE, files):
            if text.rstrip()[-1:] == b"}" and data[:1] in (b"{", b"#"):
                break  # the file ended with this line, without a newline
            text += data
            if b"\n" in data:
                return text[: text.index(b"\n") + 1]
        return text + b"\n"

    def _blocks(self, client: LogClient) -> Iterator[Block]:
        """Yield the blocks of a log from its beginning to the place reached by the stream."""
        numbers = [i for i, s in enumerate(self.segments) if s.client == client.name]
        again = _RereadTail(client.name, self.segments, numbers, self)
        follower = self._follower(client)
        end = client.follower.state.reached.moment
        while piece := again.read(_BLOCK):
            if piece.moment >= end:
                break
            if piece.moment + piece.size > end:
                size = end - piece.moment
                piece = replace(piece, data=piece.data[:size], size=size)
            follower.add_lines(piece)
            if block := follower.take():
                yield block
        last = again.finish()
        if last is not None and last.moment + last.size <= end:
            follower.add_lines(last)
            if block := follower.take():
                yield block
        again.close()


class _OpenFiles(dict[int, IO[bytes]]):
    """The open files of a log, by number. A file that cannot seek is reopened for each read."""

    def __init__(self, log: Log, closing: ExitStack) -> None:
        super().__init__()
        self._log = log
        self._closing = closing

    def __missing__(self, number: int) -> IO[bytes]:
        opened = self._closing.enter_context(self._log._open(number))
        if opened.seekable():
            self[number] = opened
        return opened


class _RereadTail(Tail):
    """Reads the known files of a log again, one after another."""

    def __init__(self, name: str, segments: list[Segment], numbers: list[int], log: Log) -> None:
        super().__init__(IO, name, segments, follow=False)  # type: ignore[arg-type]
        self._numbers = iter(numbers)
        self._log = log

    def _open_first(self) -> bool:
        self.ended = not self._open_next()
        return not self.ended

    def _open_next(self) -> bool:
        number = next(self._numbers, None)
        if number is None:
            self.ended = True
            return False
        self._enter_segment(self._segments[number], number, self._log._open(number))
        return True

    def _check_growth(self, file: IO[bytes]) -> None:
        """Do nothing, because only bytes already read by the stream are read again."""


def _writes_of_versions(
    block: Block, pairs: Sequence[tuple[_Atom, _Atom | None]]
) -> Iterator[tuple[int, int]]:
    """Yield the index of each version that a block writes, and the row of the writer."""
    import numpy as np

    columns = block.columns
    keys = {columns.key(k): k for k in range(columns.n_keys())}
    kind = columns.op_kind
    writes = np.flatnonzero((kind == c.WRITE) | (kind == c.APPEND))
    for pair, (key, value) in enumerate(pairs):
        if key not in keys:
            continue
        for op in writes[columns.op_key[writes] == keys[key]].tolist():
            if value is None or columns.value(int(columns.op_value[op])) == value:
                yield pair, int(np.searchsorted(columns.op_start, op, side="right")) - 1
