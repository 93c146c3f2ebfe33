"""Writing files whole or not at all: a full disk leaves what was there before."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the place of another once the body has ended well.

    It has the permissions of the one before. What is there and no regular file (a pipe, a
    terminal) is written as it stands.

    Raises:
        OSError: it cannot be written.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
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


def write_whole(path: Path, text: str) -> None:
    """Write a text file whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    with replacing(path) as stream:
        stream.write(text.encode())
