"""Decodes the values of rows in MariaDB's binary log into the texts of row images.

A *decoder* returns the text at a position of the bytes, and the position behind it. The texts are
those of :meth:`isolang.observe.log.tables.LoggedColumn.sql`. The log states a column's type as in
the protocol, with a few bytes of metadata; some types look the same there (INET6 and UUID are
stored as BINARY), so a decoder also takes the column's definition, where it is known.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Final

from isolang.observe.log.tables import LoggedColumn

Decoder = Callable[[bytes, int], tuple[str, int]]

TINY, SHORT, LONG, FLOAT, DOUBLE, NULL, TIMESTAMP, LONGLONG, INT24 = range(1, 10)
DATE, TIME, DATETIME, YEAR, NEWDATE, VARCHAR, BIT = range(10, 17)
TIMESTAMP2, DATETIME2, TIME2 = 17, 18, 19
BLOB_COMPRESSED, VARCHAR_COMPRESSED = 140, 141
NEWDECIMAL, ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY = 246, 247, 248, 252, 253, 254, 255

NUMERIC: Final = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, FLOAT, DOUBLE, NEWDECIMAL, YEAR})
"""The types that the log's bits of signedness describe."""

METADATA_BYTES: Final = {
    FLOAT: 1, DOUBLE: 1, BLOB: 1, GEOMETRY: 1, BLOB_COMPRESSED: 1, TIMESTAMP2: 1, DATETIME2: 1,
    TIME2: 1, VARCHAR: 2, VAR_STRING: 2, VARCHAR_COMPRESSED: 2, BIT: 2, NEWDECIMAL: 2, STRING: 2,
    ENUM: 2, SET: 2,
}  # fmt: skip

_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)  # bytes for 0 to 9 decimal digits
_SECONDS: Final = 1_000_000
_OLD_TIME_ZERO: Final = (838 * 3600 + 59 * 60 + 59 + 1) * _SECONDS


class UnknownTypeError(ValueError):
    """A value in the log has a type that cannot be decoded."""


def real_type(kind: int, metadata: bytes) -> tuple[int, int]:
    """Return a column's type and size; the metadata of a STRING may name another type."""
    if kind != STRING:
        return kind, int.from_bytes(metadata, "little")
    first, second = metadata
    if first in (ENUM, SET):
        return first, second
    # A CHAR of more than 255 bytes hides two bits of its length, inverted, in those of its type.
    return STRING, second | ((first & 0x30) ^ 0x30) << 4


def decoder(kind: int, metadata: bytes, *, unsigned: bool, column: LoggedColumn | None) -> Decoder:
    """Return the decoder of a column.

    Raises:
        UnknownTypeError: the type is not known.
    """
    if column is not None and column.old and column.scale:
        return _old_fraction(column)
    kind, size = real_type(kind, metadata)
    match kind:
        case _ if kind in _INTEGER_BYTES:
            return _integer(_INTEGER_BYTES[kind], signed=not unsigned)
        case _ if kind in _TEMPORAL:
            return _TEMPORAL[kind]
        case _ if kind in _FRACTIONAL:
            return _FRACTIONAL[kind](size)
        case 246:
            return _decimal(metadata[0], metadata[1])
        case 4:
            return _real("<f", 4)
        case 8 | 5:
            return _real("<d", 8)
        case 16:
            return _integer(metadata[1] + (metadata[0] > 0), signed=False, order="big")
        case 247 | 248:
            return _integer(size, signed=False)
        case 15 | 253:
            return _bytes(1 if size < 256 else 2)
        case 254:
            return _string(size, column)
        case 252 | 255:
            return _bytes(size)
        case 141:
            return _bytes(1 if size < 256 else 2, compressed=True)
        case 140:
            return _bytes(size, compressed=True)
    raise UnknownTypeError(f"type {kind}")


_INTEGER_BYTES: Final = {TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8}


def _integer(size: int, *, signed: bool, order: str = "little") -> Decoder:
    big = order == "big"

    def decode(data: bytes, at: int) -> tuple[str, int]:
        end = at + size
        number = int.from_bytes(data[at:end], "big" if big else "little", signed=signed)
        return str(number), end

    return decode


def _real(form: str, size: int) -> Decoder:
    unpack = struct.Struct(form).unpack_from

    def decode(data: bytes, at: int) -> tuple[str, int]:
        return repr(unpack(data, at)[0]), at + size

    return decode


def _decimal(precision: int, scale: int) -> Decoder:
    """Return the decoder of a DECIMAL: nine digits in four bytes, complemented if negative."""
    head, tail = precision - scale, scale
    groups = [head % 9] * (head % 9 > 0) + [9] * (head // 9)
    whole = len(groups)
    groups += [9] * (tail // 9) + [tail % 9] * (tail % 9 > 0)
    sizes = [_DIGIT_BYTES[digits] for digits in groups]
    size = sum(sizes)

    def decode(data: bytes, at: int) -> tuple[str, int]:
        negative = not data[at] & 0x80
        mask = 0xFF if negative else 0
        value = bytes(byte ^ mask for byte in data[at : at + size])
        value = bytes([value[0] ^ 0x80]) + value[1:]
        digits, start = [], 0
        for number, width in zip(groups, sizes, strict=True):
            digits.append(f"{int.from_bytes(value[start : start + width], 'big'):0{number}d}")
            start += width
        text = "".join(digits[:whole]).lstrip("0") or "0"
        if scale:
            text += "." + "".join(digits[whole:])
        zero = not text.strip("0.")
        return ("-" if negative and not zero else "") + text, at + size

    return decode


def _date_text(days: int) -> str:
    return f"{days >> 9:04d}-{days >> 5 & 15:02d}-{days & 31:02d}"


def _date(data: bytes, at: int) -> tuple[str, int]:
    return _date_text(int.from_bytes(data[at : at + 3], "little")), at + 3


def _year(data: bytes, at: int) -> tuple[str, int]:
    return str(1900 + data[at] if data[at] else 0), at + 1


def _old_timestamp(data: bytes, at: int) -> tuple[str, int]:
    return str(int.from_bytes(data[at : at + 4], "little")), at + 4


def _old_datetime(data: bytes, at: int) -> tuple[str, int]:
    digits = f"{int.from_bytes(data[at : at + 8], 'little'):014d}"
    text = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]}:{digits[12:]}"
    return text, at + 8


def _old_time(data: bytes, at: int) -> tuple[str, int]:
    number = int.from_bytes(data[at : at + 3], "little", signed=True)
    digits = f"{abs(number):06d}"
    text = f"{digits[:-4]}:{digits[-4:-2]}:{digits[-2:]}"
    return ("-" if number < 0 else "") + text, at + 3


_TEMPORAL: Final[dict[int, Decoder]] = {
    DATE: _date, NEWDATE: _date, YEAR: _year, TIMESTAMP: _old_timestamp, DATETIME: _old_datetime,
    TIME: _old_time,
}  # fmt: skip


def _fraction(value: int, width: int, digits: int) -> str:
    """Return the decimal fraction of a number with two digits for each of its bytes."""
    return "." + f"{value:0{2 * width}d}"[:digits] if digits else ""


def _timestamp(digits: int) -> Decoder:
    width = (digits + 1) // 2

    def decode(data: bytes, at: int) -> tuple[str, int]:
        end = at + 4 + width
        seconds = int.from_bytes(data[at : at + 4], "big")
        return (
            f"{seconds}{_fraction(int.from_bytes(data[at + 4 : end], 'big'), width, digits)}",
            end,
        )

    return decode


def _datetime(digits: int) -> Decoder:
    width = (digits + 1) // 2

    def decode(data: bytes, at: int) -> tuple[str, int]:
        end = at + 5 + width
        packed = int.from_bytes(data[at : at + 5], "big") - (1 << 39)
        months, clock = packed >> 22, packed & 0x1FFFF
        text = (
            f"{months // 13:04d}-{months % 13:02d}-{packed >> 17 & 31:02d} "
            f"{clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"
        )
        return text + _fraction(int.from_bytes(data[at + 5 : end], "big"), width, digits), end

    return decode


def _time(digits: int) -> Decoder:
    width = (digits + 1) // 2
    bits = 8 * width

    def decode(data: bytes, at: int) -> tuple[str, int]:
        end = at + 3 + width
        packed = int.from_bytes(data[at:end], "big") - (1 << (23 + bits))
        sign, packed = ("-", -packed) if packed < 0 else ("", packed)
        clock = packed >> bits
        text = f"{sign}{clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"
        return text + _fraction(packed & ((1 << bits) - 1), width, digits), end

    return decode


_FRACTIONAL: Final[dict[int, Callable[[int], Decoder]]] = {
    TIMESTAMP2: _timestamp, DATETIME2: _datetime, TIME2: _time,
}  # fmt: skip


def _old_fraction(column: LoggedColumn) -> Decoder:
    """Return the decoder of MariaDB 5.3's temporal types with fractions of seconds.

    The log does not state how many digits they have.
    """
    digits, unit = column.scale, 10 ** (6 - column.scale)
    if column.type == "timestamp":
        return _timestamp(digits) if digits % 2 == 0 else _old_odd_timestamp(digits)
    if column.type == "time":
        size, zero = (3, 4, 4, 5, 5, 5, 6)[digits], _OLD_TIME_ZERO // unit
    else:
        size, zero = (5, 6, 6, 7, 7, 7, 8)[digits], 0

    def decode(data: bytes, at: int) -> tuple[str, int]:
        packed = (int.from_bytes(data[at : at + size], "big") - zero) * unit
        sign, packed = ("-", -packed) if packed < 0 else ("", packed)
        seconds, fraction = divmod(packed, _SECONDS)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        text = ""
        if column.type == "datetime":
            days, hours = divmod(hours, 24)
            months, day = divmod(days, 32)
            text = f"{months // 13:04d}-{months % 13:02d}-{day:02d} "
        text += f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}.{f'{fraction:06d}'[:digits]}"
        return text, at + size

    return decode


def _old_odd_timestamp(digits: int) -> Decoder:
    width = (digits + 1) // 2

    def decode(data: bytes, at: int) -> tuple[str, int]:
        end = at + 4 + width
        seconds = int.from_bytes(data[at : at + 4], "big")
        return f"{seconds}.{int.from_bytes(data[at + 4 : end], 'big'):0{digits}d}", end

    return decode


def _bytes(length_bytes: int, *, compressed: bool = False) -> Decoder:
    def decode(data: bytes, at: int) -> tuple[str, int]:
        start = at + length_bytes
        end = start + int.from_bytes(data[at:start], "little")
        value = data[start:end]
        return (_uncompressed(value) if compressed else value).hex().upper(), end

    return decode


def _uncompressed(value: bytes) -> bytes:
    """Return the value of a column declared COMPRESSED, whose first byte states the method."""
    if not value or value[0] == 0:
        return value[1:]
    method, length_bytes = value[0] >> 4, value[0] & 7
    if method != 8:
        raise UnknownTypeError(f"compression method {method}")
    bits = -zlib.MAX_WBITS if value[0] & 8 else zlib.MAX_WBITS
    return zlib.decompress(value[1 + length_bytes :], bits)


def _string(size: int, column: LoggedColumn | None) -> Decoder:
    length_bytes = 1 if size < 256 else 2
    kind = "" if column is None else column.type
    padded = size if kind in ("binary", "inet4", "inet6", "uuid") else 0

    def decode(data: bytes, at: int) -> tuple[str, int]:
        start = at + length_bytes
        end = start + int.from_bytes(data[at:start], "little")
        value = data[start:end].ljust(padded, b"\0")
        return (_uuid(value) if kind == "uuid" else value).hex().upper(), end

    return decode


def _uuid(record: bytes) -> bytes:
    """Return the bytes of a UUID; most versions are stored with their groups in reverse order."""
    if record[6] & 0x80 and 0 < record[8] < 0x60:
        return record[12:] + record[10:12] + record[8:10] + record[6:8] + record[:6]
    return record
