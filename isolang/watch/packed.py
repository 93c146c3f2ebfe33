"""Packs columns of integers into bytes for the chain, and unpacks them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from isolang.errors import HistoryError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Packed: TypeAlias = bytes | tuple[str, bool, bytes]

_LEVEL: Final = 1
_MOST: Final = 1 << 31  # the largest number of bytes after decompression


def pack(columns: Mapping[str, NDArray[np.integer[Any]] | bytes]) -> bytes:
    """Compress named columns of integers or bytes into one byte string."""
    raw = {
        name: column if isinstance(column, bytes) else _encode_column(column)
        for name, column in columns.items()
    }
    return zlib.compress(msgspec.msgpack.encode(raw), _LEVEL)


def unpack(data: bytes, where: str) -> dict[str, Any]:
    """Return the columns packed by :func:`pack`, with integers as int64.

    Raises:
        HistoryError: the data were not packed by :func:`pack`.
    """
    try:
        inflate = zlib.decompressobj()
        text = inflate.decompress(data, _MOST)
        if not inflate.eof or inflate.unused_data:
            raise ValueError("torn")
        raw: dict[str, _Packed] = msgspec.msgpack.decode(text, type=dict[str, _Packed])
        return {
            name: column if isinstance(column, bytes) else _decode_column(*column)
            for name, column in raw.items()
        }
    except (ValueError, zlib.error, msgspec.DecodeError) as error:
        raise HistoryError(f"{where}: cannot read the columns ({error})") from None


def _encode_column(column: NDArray[np.integer[Any]]) -> tuple[str, bool, bytes]:
    """Encode a column with the narrowest integer type, as numbers or as successive differences.

    Returns:
        The NumPy type, whether the bytes contain differences, and the bytes.
    """
    import numpy as np

    whole = np.ascontiguousarray(column, np.int64)
    steps = np.diff(whole, prepend=np.int64(0))
    narrow, by_steps = _narrowest(whole), _narrowest(steps)
    if np.dtype(by_steps).itemsize < np.dtype(narrow).itemsize:
        return by_steps, True, steps.astype(by_steps).tobytes()
    return narrow, False, whole.astype(narrow).tobytes()


def _narrowest(numbers: NDArray[np.int64]) -> str:
    if not len(numbers):
        return "<i1"
    least, most = int(numbers.min()), int(numbers.max())
    for bits, name in ((7, "<i1"), (15, "<i2"), (31, "<i4")):
        if -(1 << bits) <= least and most < 1 << bits:
            return name
    return "<i8"


def _decode_column(kind: str, by_steps: bool, data: bytes) -> NDArray[np.int64]:
    import numpy as np

    if kind not in {"<i1", "<i2", "<i4", "<i8"}:
        raise ValueError("unknown number type")
    numbers = np.frombuffer(data, kind).astype(np.int64)
    return np.cumsum(numbers) if by_steps else numbers
