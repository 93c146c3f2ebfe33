"""Writes files completely or not at all: if, say, the disk is full, the old file remains."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def open_replacement(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces ``path`` once the ``with`` block ends without an error.

    The new file keeps the permissions of the old one. If ``path`` is a pipe or a terminal, it is
    written directly.

    Raises:
        OSError: if the file cannot be written.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    temporary = path.with_name(f".{path.name[:100]}.{os.urandom(4).hex()}")
    try:
        with temporary.open("xb") as stream:
            if path.exists():
                os.chmod(temporary, path.stat().st_mode & 0o7777)
            yield stream
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_atomically(path: Path, text: str) -> None:
    """Write a text file completely or not at all.

    Raises:
        OSError: if the file cannot be written.
    """
    with open_replacement(path) as stream:
        stream.write(text.encode())
