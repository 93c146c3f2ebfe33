"""Reads the complete lines of a growing log: first its rotated files, then the live one."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
from pathlib import Path
from typing import IO, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import HistoryError
from isolang.watch.stream.segments import (
    HEAD,
    Segment,
    compression,
    find_segment,
    open_bytes,
    read_head,
    read_some,
    rotated_files,
    seek,
)

_PIPE_CAPACITY: Final = (
    1 << 20
)  # the capacity of a pipe in bytes; large enough that writers rarely wait
_LONGEST_LINE: Final = 64 << 20  # the largest number of bytes in a line
_COMPARED_BYTES: Final = (
    64  # how many of the last bytes to compare; if they change, the file was overwritten
)


class Piece(Struct, frozen=True, kw_only=True):
    """Complete lines of a log.

    Attributes:
        offset: the byte offset of the lines in that segment.
        moment: the position of that byte in the whole log.
        data: the lines. If a line continues in the next segment, it is a separate piece.
        size: the number of bytes that these lines occupy in the log.
    """

    file: int
    offset: int
    moment: int
    data: bytes
    size: int
    last: bool = False


class ReachedPlace(Struct, frozen=True, kw_only=True):
    """The place of the first byte of a log that is not in a piece yet.

    Attributes:
        file: the number of the segment; -1 if no segment has been opened yet.
        offset: the offset of the byte in that segment.
        moment: the moment of that byte.
    """

    file: int = -1
    offset: int = 0
    moment: int = 0


class LineBuffer:
    """The bytes read from a log that are not in a piece yet.

    Attributes:
        reached: the place of the first of these bytes.
    """

    def __init__(self) -> None:
        self.reached = ReachedPlace()
        self._rest = b""
        self._searched = 0  # the number of bytes at the start of ``_rest`` without a newline
        self._border = -1  # where the next segment begins in ``_rest``; -1 if it has one segment
        self._number = -1  # the number of that segment

    def __len__(self) -> int:
        return len(self._rest)

    def add(self, data: bytes) -> None:
        """Append bytes that were read."""
        self._rest += data

    def enter(self, number: int) -> None:
        """Note that the next bytes are from another segment, with this number."""
        if self._rest:
            self._border, self._number = len(self._rest), number
        else:
            self.reached = replace(self.reached, file=number, offset=0)

    def cut(self, path: str) -> Piece | None:
        """Return the complete lines; ``None`` if there are none.

        Raises:
            HistoryError: a line is too long.
        """
        rest, border = self._rest, self._border
        if border < 0:
            end = rest.rfind(b"\n", self._searched) + 1
        elif rest[border : border + 1] in (b"{", b"#") and rest[:border].rstrip()[-1:] == b"}":
            end = border  # the last line of the previous segment is complete without a newline
        else:
            end = rest.find(b"\n", max(border, self._searched)) + 1
        if not end:
            self._searched = len(rest)
            if len(rest) > _LONGEST_LINE:
                raise HistoryError(
                    f"{path}: a line has more than {_LONGEST_LINE >> 20} MiB, starting at byte "
                    f"{self.reached.offset}"
                )
            return None
        piece = self._piece(end)
        self._rest, self._searched, self._border = rest[end:], 0, -1
        at = self.reached
        self.reached = (
            ReachedPlace(file=at.file, offset=at.offset + end, moment=at.moment + end)
            if border < 0
            else ReachedPlace(file=self._number, offset=end - border, moment=at.moment + end)
        )
        return piece

    def _piece(self, size: int, *, last: bool = False) -> Piece:
        at, data = self.reached, self._rest[:size]
        if not last and not data.endswith(b"\n"):
            data += b"\n"
        return Piece(
            file=at.file, offset=at.offset, moment=at.moment, data=data, size=size, last=last
        )

    def finish(self) -> Piece | None:
        """Return the last line, which has no newline; ``None`` if there is none."""
        return self._piece(len(self._rest), last=True) if self._rest else None


class Tail:
    """Reads the complete lines of one log, across its rotated files."""

    def __init__(
        self,
        source: Path | IO[bytes],
        client: str,
        segments: list[Segment],
        *,
        spool: IO[bytes] | None = None,
        follow: bool = True,
    ) -> None:
        self.client = client
        self.ended = False
        self._lines = LineBuffer()
        self._source, self._segments = source, segments
        self._spool, self._follow = spool, follow
        self._file: IO[bytes] | None = None
        self._segment = Segment(path=client, client=client)
        self._compressed = self._pipe = False
        self._position = 0  # the offset of the next byte to read from the segment
        self._seen = b""

    @property
    def reached(self) -> ReachedPlace:
        """The place up to which the log was read."""
        return self._lines.reached

    @property
    def torn(self) -> int:
        """The number of bytes after the last newline."""
        return len(self._lines)

    @property
    def pipe(self) -> int | None:
        """The file descriptor of the pipe; ``None`` if ``select`` cannot wait for it."""
        if not self._pipe or self.ended or self._file is None:
            return None
        try:
            return self._file.fileno()
        except (OSError, AttributeError):
            return None

    @property
    def behind(self) -> int:
        """The number of bytes in the file that have not been read yet; 0 if unknown."""
        if self._file is None or self._pipe or self._compressed or self._file.closed:
            return 0
        return max(0, os.fstat(self._file.fileno()).st_size - self._position)

    def resume(self, reached: ReachedPlace) -> None:
        """Continue at the place reached by an earlier reader of this log.

        Raises:
            HistoryError: the file no longer exists, is too short, or is a pipe.
        """
        if reached.file < 0:
            return
        if not isinstance(self._source, Path) or str(self._source) == "-":
            raise HistoryError(
                f"{self.client}: cannot resume the watch of a pipe, which cannot be read again"
            )
        self._lines.reached = reached
        self._segment = self._segments[reached.file]
        self._file, kind = open_bytes(find_segment(self._segment))
        self._compressed = bool(kind)
        seek(self._file, reached.offset, self._segment.path)
        self._position = reached.offset

    def read(self, size: int) -> Piece | None:
        """Return the next complete lines, or ``None`` if there are none at present.

        Raises:
            HistoryError: the file cannot be read, has become shorter, or has been replaced.
        """
        while not self.ended:
            if piece := self._lines.cut(self._segment.path):
                return piece
            if self._file is None and not self._open_first():
                return None
            if data := self._read_more(size):
                self._lines.add(data)
            elif self._pipe or not self._open_next():
                return None
        return None

    def finish(self) -> Piece | None:
        """End the log, and return the last line if it has no newline; otherwise return ``None``."""
        self.ended = True
        return self._lines.finish()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None and isinstance(self._source, Path):
            self._file.close()

    # --- bytes ---

    def _read_more(self, size: int) -> bytes:
        assert self._file is not None
        if self._pipe:
            data = self._read_pipe(size)
        else:
            if not self._compressed:
                self._check_growth(self._file)
            data = read_some(self._file, size, self._segment.path)
        if len(self._segment.head) == 2 * self._position < 2 * HEAD:
            self._segment.head += data[: HEAD - self._position].hex()
        self._position += len(data)
        self._seen = (
            (self._seen + data)[-_COMPARED_BYTES:]
            if len(data) < _COMPARED_BYTES
            else data[-_COMPARED_BYTES:]
        )
        return data

    def _check_growth(self, file: IO[bytes]) -> None:
        check_growth(file, self._segment.path, self._position, self._seen)

    def _read_pipe(self, size: int) -> bytes:
        assert self._file is not None
        if (number := self.pipe) is None:
            data = self._file.read(size) or b""
            self.ended = not data
        else:
            data, self.ended = _read_now(number, size)
        if not self._position and (kind := compression(data)):
            raise HistoryError(
                f"{self.client}: the data are compressed with {kind} (expected text from a pipe); "
                "decompress them in the pipe with zcat or zstdcat"
            )
        if data and self._spool is not None:
            self._spool.write(data)
            self._spool.flush()
        return data

    # --- segments ---

    def _open_first(self) -> bool:
        """Open the oldest segment. Return whether a segment exists."""
        source = self._source
        if isinstance(source, Path) and str(source) == "-":
            self._enter(sys.stdin.buffer, pipe=True)
        elif not isinstance(source, Path):
            self._enter(source, pipe=True)
        else:
            paths = [path for _, path in rotated_files(source)]
            if source.exists():
                paths.append(source)
            elif not paths:
                if not self._follow:
                    raise HistoryError(f"{source}: cannot read the file: No such file or directory")
                return False
            self._open(paths[0])
        return True

    def _open(self, path: Path) -> None:
        pipe = stat.S_ISFIFO(path.stat().st_mode)
        file, kind = open_bytes(path)
        self._enter(file, path, pipe=pipe, compressed=bool(kind))

    def _enter(
        self,
        file: IO[bytes],
        path: Path | None = None,
        *,
        pipe: bool = False,
        compressed: bool = False,
    ) -> None:
        """Start reading a segment."""
        base = self.reached.moment + len(self._lines)
        name = str(path) if path is not None else self.client
        if pipe and self._spool is not None:
            name = str(self._spool.name)
        segment = Segment(path=name, client=self.client, base=base, pipe=pipe)
        if path is not None:
            info = os.stat(path) if pipe or compressed else os.fstat(file.fileno())
            segment.device, segment.inode = info.st_dev, info.st_ino
        number = self._number_of(segment)
        self._enter_segment(self._segments[number], number, file, pipe=pipe, compressed=compressed)

    def _number_of(self, segment: Segment) -> int:
        """Return the number of a segment, adding the segment if no earlier watch has opened it."""
        same = (segment.client, segment.device, segment.inode, segment.base)
        for number, known in enumerate(self._segments):
            if (known.client, known.device, known.inode, known.base) == same and known.inode:
                return number
        self._segments.append(segment)
        return len(self._segments) - 1

    def _enter_segment(
        self,
        segment: Segment,
        number: int,
        file: IO[bytes],
        *,
        pipe: bool = False,
        compressed: bool = True,
    ) -> None:
        if self._file is not None:
            self.close()
        self._segment, self._file = segment, file
        if pipe:
            _widen(file)
        self._pipe, self._compressed = pipe, compressed
        self._position, self._seen = 0, b""
        self._lines.enter(number)

    def _open_next(self) -> bool:
        """Open the next segment when this one ends, and return whether there is more data.

        If no next segment exists and the log cannot grow, the log has ended.
        """
        assert isinstance(self._source, Path)
        following = self._next_path()
        waits = following == self._source and not self._compressed and self._follow
        if following is None or (waits and not following.stat().st_size):
            self.ended = not self._follow or (
                self._compressed and self._segment.path == str(self._source)
            )
            return False
        if data := self._read_more(1 << 20):  # this was written before the file was renamed
            self._lines.add(data)
        else:
            self._open(following)
        return True

    def _next_path(self) -> Path | None:
        """Return the path of the next segment; ``None`` if there is none."""
        source, head = self._source, self._segment.head
        assert isinstance(source, Path)
        files = [path for _, path in rotated_files(source)] if not self._is_current(source) else []
        if source.exists():
            files.append(source)
        for i, path in enumerate(files):
            if self._is_current(path):
                return files[i + 1] if i + 1 < len(files) else None
        for path in files:  # the segment was compressed or deleted
            if head and read_head(path).startswith(head):
                after = files[files.index(path) + 1 :]
                return after[0] if after else None
        return next((path for path in files if not self._was_read(path)), None)

    def _was_read(self, path: Path) -> bool:
        info = path.stat()
        return any(
            (s.device, s.inode) == (info.st_dev, info.st_ino)
            and s.client == self.client
            and read_head(path).startswith(s.head)  # inodes are reused
            for s in self._segments
        )

    def reads(self, path: Path) -> bool:
        """Return whether a file is the one that is being read."""
        return self._is_current(path)

    def _is_current(self, path: Path) -> bool:
        try:
            info = path.stat()
        except FileNotFoundError:
            return False
        return (info.st_dev, info.st_ino) == (self._segment.device, self._segment.inode)


def _widen(pipe: IO[bytes]) -> None:
    """Increase the capacity of a pipe if the operating system supports and allows this."""
    with contextlib.suppress(OSError, AttributeError, ImportError):
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_CAPACITY)


def _read_now(number: int, size: int) -> tuple[bytes, bool]:
    """Return the bytes available in a pipe, and whether it has ended and has no bytes left."""
    pieces: list[bytes] = []
    while size > 0 and select.select([number], [], [], 0)[0]:
        piece = os.read(number, size)
        if not piece:
            return b"".join(pieces), not pieces  # first return the bytes before the end
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces), False


def check_growth(file: IO[bytes], path: str, position: int, seen: bytes) -> None:
    """Check that a followed file has only grown since it was last read.

    Args:
        position: the number of bytes read from the file so far.
        seen: the last bytes read.

    Raises:
        HistoryError: the file has become shorter, or the last bytes read have changed.
    """
    size = os.fstat(file.fileno()).st_size
    hint = "hint: rotate the log by renaming, not by copying and truncating"
    if size < position:
        raise HistoryError(
            f"{path}: became shorter while it was followed (got {size} bytes, expected at least "
            f"the {position} that were read); {hint}"
        )
    if (
        size > position
        and seen
        and os.pread(file.fileno(), len(seen), position - len(seen)) != seen
    ):
        raise HistoryError(
            f"{path}: was overwritten while it was followed (got other bytes before byte "
            f"{position} than were read there); {hint}"
        )
