"""Rereads a log: finds transactions by place and writers by value, and hashes bytes."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any

from msgspec.structs import replace

from isolang.errors import HistoryError, IsolangError
from isolang.history import columns as c
from isolang.history.values import Value, encode
from isolang.watch.stream.batch import LogPlace
from isolang.watch.stream.operations import Block, Follower, OpenInvocation
from isolang.watch.stream.rows import Rows, append, place_of
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
_ROWS_AT_ONCE = 4096  # how many transactions are read again at a time
_BYTES_OF_ROW = 1 << 14  # lines between transactions are read if there are fewer bytes for each


class Log:
    """Reads the input of a stream again."""

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
        with ExitStack() as opened:
            return _RowReader(self, _OpenFiles(self, opened)).read(at)

    def writers(self, pairs: Sequence[tuple[Value, Value]]) -> list[list[LogPlace]]:
        """Return the transactions that write the given versions.

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
        follower = client.follower.fresh_copy(clock=state.clock or "bytes")
        follower.state.rests_on_log = state.rests_on_log
        return follower

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


class _RowReader:
    """Reads the transactions at some places of a log again."""

    def __init__(self, log: Log, files: _OpenFiles) -> None:
        self._log, self._files = log, files

    def read(self, at: NDArray[np.int64]) -> Rows:
        """Return the same as :meth:`Log.rows_at`."""
        import numpy as np

        found = Rows.empty()
        order: list[int] = []
        for first in range(0, len(at), _ROWS_AT_ONCE):
            some = at[first : first + _ROWS_AT_ONCE]
            alone = np.ones(len(some), bool)
            for file in np.unique(some[:, 3]).tolist():
                selected = np.flatnonzero((some[:, 1] == file) & (some[:, 3] == file))
                read = self._read_together(some[selected], file)
                if read is None:
                    continue
                block, names, rows = read
                append(found.columns, found.names, block.columns, names, rows)
                alone[selected] = False
                order += (first + selected).tolist()
            for row in np.flatnonzero(alone).tolist():
                columns, session = self._read_alone(some[row].tolist())
                append(found.columns, found.names, columns, [session], np.zeros(1, np.int32))
                order.append(first + row)
        found.at = at[order].astype(np.int64)
        return found.take(np.argsort(order)) if order != [*range(len(order))] else found

    def _read_together(
        self, at: NDArray[np.int64], file: int
    ) -> tuple[Block, list[str], NDArray[np.int32]] | None:
        """Read transactions that were invoked and completed in a file by reading part of the file.

        Returns:
            The transactions of that part of the file, the names of their sessions, and the row
            numbers of the selected transactions. ``None`` if the transactions must be read one by
            one, because they are far apart, or because that part of the file cannot be read as it
            was read together with the lines before it.
        """
        import numpy as np

        if not len(at) or at[:, 4].min() < 0:
            return None
        start, last = int(at[:, 4].min()), int(at[:, 4].max())
        if last - start > _BYTES_OF_ROW * len(at):
            return None
        client = self._log._client(file)
        follower, base = self._log._follower(client), self._log.segments[file].base
        before = np.unique(at[at[:, 2] < start, 2]).tolist()
        follower.state.open = [
            OpenInvocation(
                file=file,
                offset=offset,
                moment=base + offset,
                number=number,
                session=0,
                text=self._log._line(file, offset, self._files),
            )
            for number, offset in enumerate(before, 1)
        ]
        follower.state.begun = len(before)
        size, pieces = last - start, []
        for data in self._log._bytes(file, start, files=self._files):
            pieces.append(data[:size])
            size -= len(pieces[-1])
            if not size:
                break
        text = b"".join(pieces) + self._log._line(file, last, self._files)
        try:
            follower.add_lines(
                Piece(file=file, offset=start, moment=base + start, data=text, size=len(text))
            )
            block = follower.take(last=True)
        except IsolangError:
            return None
        assert block is not None
        places = zip(block.file.tolist(), block.offset.tolist(), block.done.tolist(), strict=True)
        row_at = {(o, d): row for row, (f, o, d) in enumerate(places) if f == file}
        rows = [row_at.get((offset, done), -1) for offset, done in at[:, [2, 4]].tolist()]
        if min(rows) < 0:
            return None
        names = list(block.names)
        if block.processes:
            known: dict[int, str] = {}
            for row in rows:
                session = int(block.columns.txn_session[row])
                process = block.processes[session]
                name = self._session_name(client, process, base + int(block.offset[row]))
                if known.setdefault(session, name) != name:
                    return None
            for session, name in known.items():
                names[session] = name
        block.columns.has_time = client.follower.state.timed
        return block, names, np.array(rows, np.int32)

    def _session_name(self, client: LogClient, process: int, moment: int) -> str:
        """Return the name of the session that a transaction of a process belongs to."""
        follower = client.follower
        before = follower.state.resumed.get(process, [])
        return follower.session_name(process, 1 + bisect_right(before, moment))

    def _read_alone(self, row: list[int]) -> tuple[Columns, str]:
        """Return the transaction at a place, and the name of its session."""
        place = place_of(row)
        client = self._log._client(place.file)
        follower = self._log._follower(client)
        at = (place.file, place.offset)
        alone = place.done < 0 or (place.done_file, place.done) == at
        if not alone:
            follower.state.open = [
                OpenInvocation(
                    file=place.file,
                    offset=place.offset,
                    moment=self._log.segments[place.file].base + place.offset,
                    number=1,
                    session=0,
                    text=self._log._line(*at, self._files),
                )
            ]
            follower.state.begun = 1
            at = (place.done_file, place.done)
        text = self._log._line(*at, self._files)
        follower.add_lines(
            Piece(
                file=at[0],
                offset=at[1],
                moment=self._log.segments[at[0]].base + at[1],
                data=text,
                size=len(text),
            )
        )
        block = follower.take(last=True)
        if block is None or block.columns.transactions() != 1:
            name = self._log.segments[place.file].path
            raise HistoryError(
                f"{name} byte {place.offset}: no transaction begins here (expected one)"
            )
        block.columns.has_time = client.follower.state.timed
        moment = self._log.segments[int(block.file[0])].base + int(block.offset[0])
        session = block.names[0]
        processes = [p for p, _ in follower.state.sessions.items()]
        if processes:
            session = self._session_name(client, processes[0], moment)
        return block.columns, session


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
