"""Reads a history's bytes from a file, a folder of logs, or a stream."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from isolang.errors import HistoryError

_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"
_BZIP2 = b"BZh"
_ZSTD = b"\x28\xb5\x2f\xfd"
_LARGE = 8 << 20  # for larger files, mapping 4-KiB pages takes longer than copying the data
_SIDE_FILES = (".debug", ".error", ".wlog")  # files that Cobra's clients leave next to their logs


class HistoryInput(Struct, frozen=True, kw_only=True):
    """The contents of one input, which may consist of several files.

    Attributes:
        files: the name and contents of each file, in natural order of names (T2 before T10).
        ignored: a phrase for each kind of directory entry that was not read.
    """

    name: str
    files: tuple[tuple[str, bytes], ...]
    is_directory: bool = False
    ignored: tuple[str, ...] = ()


def read_source(where: str | Path | IO[bytes]) -> HistoryInput:
    """Read an input and decompress it.

    Raises:
        HistoryError: the input cannot be read or decompressed.
    """
    if not isinstance(where, str | Path):
        return _read_stream(where)
    if str(where) == "-":
        stdin: IO[bytes] = sys.stdin.buffer
        return HistoryInput(
            name="<stdin>", files=(("<stdin>", _decompressed_contents("<stdin>", stdin)),)
        )
    path = Path(where)
    try:
        if path.is_dir():
            return _read_directory(path)
    except OSError as e:
        raise _unreadable(str(path), e) from None
    return HistoryInput(name=str(path), files=((str(path), _read_file(path)),))


def is_large_file(where: str | Path) -> bool:
    """Return whether the input is a regular file that is worth reading in pieces.

    Raises:
        OSError: the file cannot be read.
    """
    if str(where) == "-":
        return False
    status = Path(where).stat()
    return stat.S_ISREG(status.st_mode) and status.st_size >= _LARGE


def _read_stream(stream: Any) -> HistoryInput:
    name = getattr(stream, "name", None)
    name = name if isinstance(name, str) else "<stream>"
    if isinstance(stream, io.TextIOBase):
        msg = f"{name}: a text stream (expected bytes); open the file in binary mode"
        raise HistoryError(msg)
    if not hasattr(stream, "read"):
        msg = (
            f"not a history (got {type(stream).__name__}, expected a path, '-' or a binary "
            "stream); for transactions in memory use History.from_transactions"
        )
        raise HistoryError(msg)
    return HistoryInput(name=name, files=((name, _decompressed_contents(name, stream)),))


def _unreadable(name: str, error: OSError) -> HistoryError:
    return HistoryError(f"{name}: cannot read the file: {error.strerror or error}")


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            kind = os.fstat(file.fileno()).st_mode
            if stat.S_ISBLK(kind) or (stat.S_ISCHR(kind) and not file.isatty()):
                msg = f"{path}: not a history (got a device, expected a file, a folder or a pipe)"
                raise HistoryError(msg)
            return _decompressed_contents(str(path), file)
    except OSError as e:
        raise _unreadable(str(path), e) from None


def _decompressed_contents(name: str, stream: Any) -> bytes:
    """Return a stream's contents, decompressed if the first bytes indicate a known compression."""
    data = _read_rest(stream)
    if data.startswith(_GZIP):
        return _decompress(name, "gzip", gzip.GzipFile(fileobj=io.BytesIO(data)).read)
    if data.startswith(_XZ):
        import lzma

        return _decompress(name, "xz", lambda: lzma.decompress(data), lzma.LZMAError)
    if data.startswith(_BZIP2):
        import bz2

        return _decompress(name, "bzip2", lambda: bz2.decompress(data), ValueError, OSError)
    if data.startswith(_ZSTD):
        return _unzstd(name, data)
    return data


def _read_rest(stream: Any) -> bytes:
    """Read the rest of a stream in one piece, to avoid copying when pieces are joined."""
    if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
        remaining = os.fstat(stream.fileno()).st_size - stream.tell() if stream.seekable() else 0
        if remaining >= _LARGE and stream.raw.tell() == stream.tell():  # the buffer is empty
            from isolang._native import read_in_large_pages

            data = read_in_large_pages(stream.fileno(), remaining)
            more: bytes = stream.read()  # the file may have grown meanwhile
            return data + more if more else data
    rest: bytes = stream.read()
    return rest


def _decompress(name: str, kind: str, read: Callable[[], bytes], *errors: type[Exception]) -> bytes:
    expected: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error, *errors)
    try:
        return read()
    except expected as e:
        msg = f"{name}: damaged {kind} data ({e}); was it copied completely?"
        raise HistoryError(msg) from None


def _unzstd(name: str, data: bytes) -> bytes:
    """Decompress zstd with the standard library (Python 3.14 or later) or ``zstandard``."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        pass
    else:
        return _decompress(name, "zstd", lambda: zstd.decompress(data), zstd.ZstdError)
    try:
        import zstandard
    except ImportError:
        msg = (
            f"{name}: the file is compressed with zstd, but the package zstandard is not "
            "installed; pip install 'isolang[zstd]', or decompress it first: zstd -d"
        )
        raise HistoryError(msg) from None
    return _decompress(name, "zstd", lambda: _frames(data), zstandard.ZstdError)


def _frames(data: bytes) -> bytes:
    """Decompress each frame separately, because stream decompression accepts a truncated frame."""
    import zstandard

    out = []
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        out.append(frame.decompress(data))
        if not frame.eof:
            raise EOFError("the data ends inside a frame")
        data = frame.unused_data
    return b"".join(out)


def natural_sort_key(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key for names that compares the numbers in them as numbers."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(p), p) if p.isdecimal() else (1, 0, p) for p in parts]


def plain_name(path: str) -> str:
    """Return a file's name without its folder and compression suffix."""
    name = Path(path).name
    return re.sub(r"\.(gz|xz|bz2|zst|zstd)$", "", name)


def _read_directory(path: Path) -> HistoryInput:
    entries = sorted(path.iterdir(), key=lambda p: natural_sort_key(p.name))
    files, side, hidden, folders = [], 0, 0, []
    for entry in entries:
        if entry.is_dir():
            folders.append(entry.name)
        elif entry.name.startswith("."):
            hidden += 1
        elif plain_name(entry.name).endswith(_SIDE_FILES):
            side += 1
        else:
            files.append(entry)
    if not files:
        inside = f"; perhaps you mean its folder {folders[0]}" if len(folders) == 1 else ""
        msg = f"{path}: the folder contains no history files{inside}"
        raise HistoryError(msg)
    ignored = []
    if side:
        ignored.append(f"{_file_count(side, 'side')} ({', '.join(_SIDE_FILES)})")
    if hidden:
        ignored.append(_file_count(hidden, "hidden"))
    if folders:
        ignored.append(f"folders: {_shortened_list(folders)}")
    return HistoryInput(
        name=str(path),
        files=tuple((str(f), _read_file(f)) for f in files),
        is_directory=True,
        ignored=tuple(ignored),
    )


def _file_count(count: int, kind: str) -> str:
    return f"{count} {kind} file{'' if count == 1 else 's'}"


def _shortened_list(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
