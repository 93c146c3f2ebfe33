"""Reads fields of a recording's maps that are in no column, from its file or its text."""

from __future__ import annotations

import io
import mmap
import stat
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, TypeVar

_T = TypeVar("_T")
LineReader: TypeAlias = Callable[[Iterable[bytes], str], Mapping[int, _T]]
"""Returns what lines of a recording of some name have in a field, by the number of the line."""


def fields_of_file(path: str, names: tuple[bytes, ...], read: LineReader[_T]) -> Mapping[int, _T]:
    """Return what ``read`` finds in a file; empty if it cannot be read, or has none of the names.

    Raises:
        HistoryError: a field is malformed.
    """
    try:
        about = Path(path).stat()
        # a pipe cannot be read a second time
        regular = stat.S_ISREG(about.st_mode) and about.st_size
        return _read(path, about.st_mtime_ns, about.st_size, names, read) if regular else {}
    except OSError:
        return {}


@lru_cache(maxsize=8)
def _read(
    path: str, changed: int, size: int, names: tuple[bytes, ...], read: LineReader[_T]
) -> Mapping[int, _T]:
    with Path(path).open("rb") as file:
        # Most files have no such field, and reading a large file line by line is slow.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            if all(text.find(name) < 0 for name in names):
                return {}
        return read(file, path)


def fields_of_text(
    text: bytes, name: str, names: tuple[bytes, ...], read: LineReader[_T]
) -> Mapping[int, _T]:
    """Return what ``read`` finds in the text of a recording, as :func:`fields_of_file` does.

    Raises:
        HistoryError: a field is malformed.
    """
    return read(io.BytesIO(text), name) if any(name_bytes in text for name_bytes in names) else {}
