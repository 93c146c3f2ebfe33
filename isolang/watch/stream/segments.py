"""Finds and opens the files of a log: the file that grows, and its rotated files.

A rotated file is called ``name.1``, and older files are called ``name.2`` and so on. They may be
compressed. Together with the growing file, they form one log. The *moment* of a byte is its
position in that whole log.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

from msgspec import Struct

from isolang.errors import HistoryError

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
HEAD = 256  # this many first bytes identify a file after it was renamed or compressed
_ROTATED = re.compile(r"(?P<name>.+?)\.(?P<number>\d+)(?:\.(?:gz|xz|bz2|zst|zstd))?")
_DAMAGE_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, OSError, ValueError)


class Segment(Struct, kw_only=True):
    """One file of a log.

    Attributes:
        path: the path where the file was last found.
        inode: the inode number, which identifies the file after it was renamed.
        head: the first bytes after decompression, in hexadecimal, which identify the file after it
            was compressed.
        base: the moment of the first byte.
    """

    path: str
    client: str
    device: int = 0
    inode: int = 0
    head: str = ""
    base: int = 0
    pipe: bool = False


def compression(head: bytes) -> str:
    """Return the compression format of a file with these first bytes; empty if not compressed."""
    return next((name for magic, name in _MAGIC if head.startswith(magic)), "")


def open_bytes(path: Path) -> tuple[IO[bytes], str]:
    """Open a file. If the file is compressed, reading decompresses it.

    Raises:
        HistoryError: the file cannot be read.
    """
    try:
        file = path.open("rb", buffering=0)
        kind = compression(os.pread(file.fileno(), 6, 0)) if file.seekable() else ""
        if not kind:
            return file, ""
        file.close()
        return cast("IO[bytes]", _OPEN[kind](path)), kind
    except OSError as e:
        raise HistoryError(f"{path}: cannot read the file: {e.strerror or e}") from None


def read_some(file: IO[bytes], size: int, path: str) -> bytes:
    """Return up to ``size`` bytes from a file, or empty bytes at the end of the file.

    Raises:
        HistoryError: the file cannot be read, or its compressed data are damaged.
    """
    try:
        return file.read(size) or b""
    except _DAMAGE_ERRORS as e:
        raise HistoryError(
            f"{path}: cannot read the file: {e}; was it copied completely?"
        ) from None


def seek(file: IO[bytes], offset: int, path: str) -> None:
    """Move to a byte of a file; if the file cannot seek, read it up to that byte.

    Raises:
        HistoryError: the file is too short, or its compressed data are damaged.
    """
    try:
        at = file.seek(offset) if file.seekable() else _skip(file, offset)
    except _DAMAGE_ERRORS as e:
        raise HistoryError(
            f"{path}: cannot read the file: {e}; was it copied completely?"
        ) from None
    if at != offset:
        raise HistoryError(
            f"{path}: shorter than what was read of it (got {at} bytes, expected at least {offset})"
        )


def _skip(file: IO[bytes], size: int) -> int:
    missing = size
    while missing and (data := file.read(min(missing, 1 << 20))):
        missing -= len(data)
    return size - missing


class _Zstd(io.RawIOBase):
    """Decompresses a file. Unlike zstandard, it raises an error for a truncated frame."""

    def __init__(self, path: Path) -> None:
        import zstandard

        self._file = path.open("rb")
        self._new = zstandard.ZstdDecompressor
        self._frame: Any = None
        self._ready = b""
        self._error = zstandard.ZstdError

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            unused = self._frame.unused_data if self._frame is not None and self._frame.eof else b""
            data = unused or self._file.read(1 << 17)
            if not data:
                if self._frame is not None and not self._frame.eof:
                    raise EOFError("the data end inside a frame")
                return 0
            if self._frame is None or self._frame.eof:
                self._frame = self._new().decompressobj()
            try:
                self._ready = self._frame.decompress(data)
            except self._error as e:
                raise ValueError(str(e)) from None
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def _zstd(path: Path) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        pass
    else:
        opened: IO[bytes] = zstd.open(path, "rb")
        return opened
    try:
        return io.BufferedReader(_Zstd(path))
    except ImportError:
        raise HistoryError(
            f"{path}: the file is compressed with zstd, but the package zstandard is not "
            "installed; pip install 'isolang[zstd]', or decompress it first: zstd -d"
        ) from None


_OPEN: Final[dict[str, Callable[[Path], Any]]] = {
    "gzip": gzip.GzipFile,
    "xz": lzma.LZMAFile,
    "bzip2": bz2.BZ2File,
    "zstd": _zstd,
}


def rotated_files(path: Path) -> list[tuple[int, Path]]:
    """Return the number and path of each rotated file of a log, oldest first."""
    try:
        siblings = list(path.parent.iterdir())
    except FileNotFoundError:
        return []
    found = []
    for sibling in siblings:
        match = _ROTATED.fullmatch(sibling.name)
        if match and match["name"] == path.name and sibling.is_file():
            found.append((int(match["number"]), sibling))
    return sorted(found, reverse=True)


def log_of(path: Path, names: set[str]) -> str | None:
    """Return the name of the log that a rotated file belongs to.

    Return ``None`` if the file is not a rotated file, or if its log is not among ``names``.
    """
    match = _ROTATED.fullmatch(path.name)
    return match["name"] if match and match["name"] in names else None


def read_head(path: Path) -> str:
    """Return the first bytes of a file, decompressed and in hexadecimal."""
    file, _ = open_bytes(path)
    with file:
        return read_some(file, HEAD, str(path)).hex()


def find_segment(segment: Segment) -> Path:
    """Find a file that may have been renamed or compressed since it was read.

    Raises:
        HistoryError: the file no longer exists.
    """
    path = Path(segment.path)
    log = path.with_name(match["name"]) if (match := _ROTATED.fullmatch(path.name)) else path
    others: list[Path] = []
    for candidate in _candidates(path, log):
        try:
            info = candidate.stat()
        except FileNotFoundError:
            continue
        if (info.st_dev, info.st_ino) == (segment.device, segment.inode):
            others.insert(0, candidate)  # the head is still compared, because inodes are reused
        else:
            others.append(candidate)
    for candidate in others:
        if read_head(candidate).startswith(segment.head):
            segment.path = str(candidate)
            return candidate
    raise HistoryError(
        f"{segment.path}: this part of the log no longer exists (expected it there or in the same "
        "folder); keep the rotated files while the log is watched"
    )


def _candidates(path: Path, log: Path) -> Iterator[Path]:
    yield path
    yield from dict.fromkeys([log, *(p for _, p in rotated_files(log))])
