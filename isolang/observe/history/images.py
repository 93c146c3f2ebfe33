"""Keeps the row images of a history's versions in a temporary file.

An image is a whole row as the server sends it in binary format. A condition may be met after the
versions that it must be evaluated on were written and replaced, so the image of each version is
kept until the end.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO, Any, Final

from msgspec import Struct, field

from isolang.observe.history.seen import WrittenRow

_HEAD: Final = struct.Struct("!HI")  # the sizes of a version's number and of its image
_BLOCK: Final = 1 << 15  # how many bytes of a table's images are written at once
_MOST: Final = 1 << 32  # the largest number of bytes in the file


class _TableImages(Struct):
    """The images of one table's versions.

    Attributes:
        blocks: for each block in a file, the file, the offset and the size.
        missing: whether some version has no image.
    """

    blocks: list[tuple[IO[bytes], int, int]] = field(default_factory=list)
    waiting: list[bytes] = field(default_factory=list)
    waiting_bytes: int = 0
    count: int = 0
    missing: bool = False


class RowImages:
    """The images of versions, by table."""

    def __init__(self) -> None:
        self._tables: dict[str, _TableImages] = {}
        self._file: IO[bytes] | None = None
        self._size = 0

    def add(self, table: str, number: str, image: bytes | None) -> None:
        """Keep the image of a version; ``None`` if it is unknown."""
        images = self._tables.setdefault(table, _TableImages())
        if images.missing:
            return
        if image is None or self._size > _MOST:
            images.missing = True
            images.waiting.clear()
            return
        name = number.encode()
        images.waiting += (_HEAD.pack(len(name), len(image)), name, image)
        images.waiting_bytes += _HEAD.size + len(name) + len(image)
        images.count += 1
        if images.waiting_bytes > _BLOCK:
            self._write(images)

    def add_written(self, write: WrittenRow) -> None:
        """Keep the image of a version that a transaction wrote."""
        if write.version is not None:
            self.add(write.table.name, write.version.number, write.image)

    def _write(self, images: _TableImages) -> None:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        data = b"".join(images.waiting)
        os.pwrite(self._file.fileno(), data, self._size)
        images.blocks.append((self._file, self._size, len(data)))
        self._size += len(data)
        images.waiting.clear()
        images.waiting_bytes = 0

    def count(self, table: str) -> int | None:
        """Return how many versions of a table have images; ``None`` if others have none."""
        images = self._tables.get(table)
        if images is None:
            return 0
        return None if images.missing else images.count

    def of(self, table: str, begin: int, end: int) -> Iterator[tuple[str, bytes]]:
        """Yield the number and the image of versions, by their positions in the order added."""
        images = self._tables.get(table, _TableImages())
        at = 0
        for data in self._blocks(images):
            place = 0
            while place < len(data) and at < end:
                name, size = _HEAD.unpack_from(data, place)
                place += _HEAD.size
                if at >= begin:
                    number = data[place : place + name].decode()
                    yield number, data[place + name : place + name + size]
                place += name + size
                at += 1

    def numbers(self, table: str) -> frozenset[str]:
        """Return the numbers of the versions of a table whose images are known."""
        count = self.count(table)
        return frozenset(number for number, _ in self.of(table, 0, count or 0))

    def _blocks(self, images: _TableImages) -> Iterator[bytes]:
        for file, offset, size in images.blocks:
            yield os.pread(file.fileno(), size, offset)
        yield b"".join(images.waiting)

    def __deepcopy__(self, memo: dict[int, Any]) -> RowImages:
        """Return a copy that reads the same file, and writes a file of its own."""
        copy = RowImages()
        for name, images in self._tables.items():
            copy._tables[name] = _TableImages(
                blocks=[*images.blocks],
                waiting=[*images.waiting],
                waiting_bytes=images.waiting_bytes,
                count=images.count,
                missing=images.missing,
            )
        return copy
