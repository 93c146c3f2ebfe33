"""Reads the history in ``test.jepsen``, the binary file in which Jepsen stores a test.

The history is converted to the lines of ``history.edn``. The file layout is defined by
``jepsen.store.format``, versions 0 and 1. The file consists of blocks, each with a length, a
checksum and a type. An index maps numbers to blocks, and its root is the map that describes the
test. This map refers to the history block, which may be a vector of other blocks. Integers are
big-endian.
"""

from __future__ import annotations

import struct
import time
import zlib
from typing import Final

from isolang.errors import HistoryError, UnsupportedError
from isolang.history.detect import detect
from isolang.history.formats import FORMATS
from isolang.history.fressian import REFERENCE, Fressian, FressianError, Items
from isolang.history.readers.reading import Files, Reading

_MAGIC: Final = b"JEPSEN"
_VERSIONS: Final = (0, 1)
_INDEX, _FRESSIAN, _PARTIAL_MAP, _STREAM, _VECTOR = range(1, 6)
_HEADER: Final = 28
"""The size of a block header in bytes: a length, a checksum, and 16 bytes for the type."""


def read(files: Files, *, timeout: float) -> Reading:
    """Read the history in one file.

    Raises:
        HistoryError: the file is damaged or contains no history.
        UnsupportedError: the file is in a later version of the format, or its history cannot be
            judged.
        TimeoutError: reading took longer than ``timeout`` seconds; 0 means no limit.
    """
    ((name, data),) = files
    until = time.monotonic() + timeout if timeout else None
    lines = _File(name, data, until).history()
    text = "\n".join(lines).encode()
    guess = detect(text)
    if len(guess.formats) != 1:
        msg = f"{name}: operations of an unknown kind (got {guess.looks_like})"
        raise UnsupportedError(msg)
    remaining = max(until - time.monotonic(), 1e-9) if until is not None else 0.0
    return FORMATS[guess.formats[0]].read(((name, text),), timeout=remaining)


class _File:
    def __init__(self, name: str, data: bytes, until: float | None) -> None:
        self.name = name
        self.data = data
        self.until = until
        try:
            version, index = struct.unpack_from(">iq", data, len(_MAGIC))
        except struct.error:
            raise self.fail("the file ends inside its header") from None
        if version not in _VERSIONS:
            msg = (
                f"{name}: Jepsen's binary file of version {version} (expected 0 or 1); give the "
                "history.edn of the same run, which Jepsen writes next to it"
            )
            raise UnsupportedError(msg)
        if not index:
            raise self.fail(
                "it has no index of blocks, because the run ended before anything was saved"
            )
        self.root, self.places = self.index(*self.block_at(index))

    def fail(self, what: str) -> HistoryError:
        hint = "the run's history.edn holds the same history"
        return HistoryError(f"{self.name}: the Jepsen file is damaged: {what}; {hint}")

    def block_at(self, at: int) -> tuple[int, bytes]:
        """Verify the checksum of the block at a byte offset, and return its type and contents."""
        if not 0 < at <= len(self.data) - _HEADER:
            raise self.fail(f"a block at byte {at} of {len(self.data)}")
        length, checksum, kind = struct.unpack_from(">qIh", self.data, at)
        if not _HEADER <= length <= len(self.data) - at:
            raise self.fail(f"a block of {length} bytes at byte {at} of {len(self.data)}")
        contents = self.data[at + _HEADER : at + length]
        header = struct.pack(">qIh", length, 0, kind).ljust(_HEADER, b"\0")
        if zlib.crc32(header, zlib.crc32(contents)) != checksum:
            raise self.fail(f"the checksum of the block at byte {at}")
        return kind, contents

    def index(self, kind: int, contents: bytes) -> tuple[int, dict[int, int]]:
        """Return the number of the root block, and each block's offset by its number."""
        if kind != _INDEX or len(contents) % 12 != 4:
            raise self.fail(f"a block of type {kind} where its index should be")
        (root,) = struct.unpack_from(">i", contents)
        return root, dict(struct.iter_unpack(">iq", contents[4:]))

    def block(self, number: int) -> tuple[int, bytes]:
        if number not in self.places:
            raise self.fail(f"no block {number}")
        return self.block_at(self.places[number])

    def history(self) -> list[str]:
        """Return the history's operations, each as EDN text."""
        number, seen = self.root, set[int]()
        while number and number not in seen:
            seen.add(number)
            kind, contents = self.block(number)
            if kind not in (_FRESSIAN, _PARTIAL_MAP):
                raise self.fail(f"a block of type {kind} where the map of the test should be")
            number = 0
            if kind == _PARTIAL_MAP:
                (number,) = struct.unpack_from(">i", contents.ljust(4, b"\0"))
                contents = contents[4:]
            test = self.texts(contents)[:1]
            parts = test[0].parts if test and isinstance(test[0], Items) else []
            found = dict(zip(parts[::2], parts[1::2], strict=False)).get(":history")
            if found is not None and found.startswith(REFERENCE):
                block = found.removeprefix(REFERENCE)
                if not block.isdecimal():
                    raise self.fail(f"a reference to block {block[:30]}")
                return self.operations(int(block), 0)
            if isinstance(found, Items):
                return found.parts
        msg = f"{self.name}: Jepsen's file of this test contains no history"
        raise HistoryError(msg)

    def operations(self, number: int, depth: int) -> list[str]:
        """Return the operations in a block and in all blocks it refers to."""
        kind, contents = self.block(number)
        if kind in (_FRESSIAN, _STREAM):
            found = self.texts(contents)
            whole = found[0] if kind == _FRESSIAN and len(found) == 1 else None
            return whole.parts if isinstance(whole, Items) and whole[0] == "[" else found
        if kind != _VECTOR or len(contents) % 12 != 8 or depth > len(self.places):
            raise self.fail(f"a block of type {kind} where operations should be")
        (count,) = struct.unpack_from(">q", contents)
        blocks = [block for _, block in struct.iter_unpack(">qi", contents[8:])]
        found = [op for block in blocks for op in self.operations(block, depth + 1)]
        if len(found) != count:
            raise self.fail(f"{len(found)} operations (expected {count}, as its vector says)")
        return found

    def texts(self, contents: bytes) -> list[str]:
        """Decode the values in a block's contents and return their texts."""
        values, found = Fressian(contents), []
        try:
            while not values.at_end():
                if self.until is not None and time.monotonic() > self.until:
                    raise TimeoutError
                found.append(values.value())
        except FressianError as error:
            raise self.fail(str(error)) from None
        return found
