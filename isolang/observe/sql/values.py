"""Converts column values, literals and parameters to numbers and texts for histories.

Dates and timestamps become microseconds since 1970, and decimals of a fixed scale become integers.
Values that might be read differently in another session or under another setting are rejected.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

# The type numbers of PostgreSQL's types.
BOOL, TEXT, VARCHAR, NAME, UNKNOWN, UUID_OID = 16, 25, 1043, 19, 705, 2950
INTEGERS: Final = {21: "!h", 23: "!i", 20: "!q"}
DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC, FLOAT8 = 1082, 1114, 1184, 1700, 701
_OIDS: Final = {
    "bool": BOOL, "boolean": BOOL, "text": TEXT, "varchar": VARCHAR, "int": 23, "integer": 23,
    "int2": 21, "int4": 23, "int8": 20, "smallint": 21, "bigint": 20, "uuid": UUID_OID,
    "date": DATE, "timestamp": TIMESTAMP, "timestamptz": TIMESTAMPTZ, "numeric": NUMERIC,
    "decimal": NUMERIC, "float8": FLOAT8,
    "character varying": VARCHAR, "double precision": FLOAT8,
    "timestamp without time zone": TIMESTAMP, "timestamp with time zone": TIMESTAMPTZ,
}  # fmt: skip
USER_TYPE: Final = -1
"""Stands in for the number of a type known only by its name in a cast."""
_ARRAYS: Final = {1000: BOOL, 1005: 21, 1007: 23, 1016: 20, 1009: TEXT, 1015: VARCHAR,
                  2951: UUID_OID, 1182: DATE, 1115: TIMESTAMP, 1185: TIMESTAMPTZ,
                  1231: NUMERIC}  # fmt: skip
_CLASSES: Final = (
    frozenset({BOOL}), frozenset({TEXT, VARCHAR}), frozenset({UUID_OID}),
    frozenset({*INTEGERS, NUMERIC, FLOAT8}), frozenset({DATE, TIMESTAMP}), frozenset({TIMESTAMPTZ}),
)  # fmt: skip

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SINCE_2000: Final = 946_684_800_000_000
_DAY: Final = 86_400_000_000
_LARGEST: Final = 2**63 - 1
_EXACT: Final = 2**53  # from here on, databases differ in comparing floats with integers
_LONGEST_TEXT: Final = 64  # a longer text is replaced by its hash
_SCALE: Final = 6  # the largest number of digits after the decimal point
_INTEGER: Final = re.compile(r"[+-]?\d+")
_FLOAT: Final = re.compile(r"[+-]?\d+(?:\.\d*)?(?:e[+-]?\d+)?", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?))?(.*)")
_OFFSET: Final = re.compile(r"[+-]\d\d(?::?\d\d)?|Z|z|\+00")


class UnknownValueError(ValueError):
    """Raised when a value cannot be converted with certainty."""


class RecordedColumn(Struct, frozen=True, kw_only=True):
    """A column of a table.

    Attributes:
        scale: for a decimal, the number of digits after the point; -1 if not fixed.
        equal: whether texts are equal only if their bytes are equal; true for other types.
        required: whether the column is declared NOT NULL.
    """

    name: str
    oid: int
    enum: bool = False
    scale: int = -1
    equal: bool = True
    required: bool = False

    @property
    def comparable(self) -> bool:
        """Return whether a condition on this column can be evaluated."""
        if self.oid == NUMERIC:
            return 0 <= self.scale <= _SCALE
        if self.oid in (TEXT, VARCHAR):
            return self.equal
        return self.enum or self.ordered or self.oid in (BOOL, UUID_OID)

    @property
    def ordered(self) -> bool:
        """Return whether the column's values are numbers in a history."""
        fixed = self.oid == NUMERIC and 0 <= self.scale <= _SCALE
        return fixed or self.oid in INTEGERS or self.oid in (DATE, TIMESTAMP, TIMESTAMPTZ)

    @property
    def form(self) -> str:
        """Return what the column's numbers in a history mean, for people; empty for others."""
        if self.oid == NUMERIC and self.comparable:
            return f"numeric {self.scale}" if self.scale else ""
        return {DATE: "date", TIMESTAMP: "timestamp", TIMESTAMPTZ: "timestamptz"}.get(self.oid, "")

    def recorded(self, value: Any) -> Any:
        """Return the value to record in a history for a result of ``to_json``."""
        if value is None or self.oid == BOOL:
            return value
        if self.oid in INTEGERS:
            return int(value)
        if self.oid == NUMERIC:
            # SOUND BECAUSE: NaN is larger than all numbers in PostgreSQL, and equals itself.
            return _LARGEST if value == "NaN" else _scaled(Decimal(value), self.scale)
        if self.oid in (DATE, TIMESTAMP, TIMESTAMPTZ):
            try:
                return _microseconds(str(value))
            except (UnknownValueError, ValueError, OverflowError):
                # infinity, or a year beyond those of constants in parsed conditions
                return -_LARGEST if value == "-infinity" or "BC" in str(value) else _LARGEST
        return short_text(str(value))

    def constant(self, value: Any, oid: int) -> Any:
        """Return the value used in a history for a constant compared with this column.

        Args:
            value: the text, or the bytes in binary format.

        Raises:
            UnknownValueError: the comparison cannot be repeated with certainty.
        """
        own = TEXT if self.enum else self.oid
        # SOUND BECAUSE: an enumeration can be compared only with values of its own type.
        if oid in (0, UNKNOWN) or (self.enum and oid in (USER_TYPE, self.oid)):
            oid = own
        elif oid != own and not any({oid, own} <= one for one in _CLASSES):
            raise UnknownValueError(f"a constant of type {oid}")
        plain = binary_value(value, oid) if isinstance(value, bytes) else _parsed(value, oid)
        if self.oid == NUMERIC and not isinstance(plain, float):
            return _scaled(Decimal(plain), self.scale)
        if isinstance(plain, Decimal):
            is_integer = plain == plain.to_integral_value()
            if not is_integer and float(plain).is_integer():
                raise UnknownValueError("a fraction with more digits than a float has")
            plain = int(plain) if is_integer else float(plain)
        if isinstance(plain, float):
            if self.oid == NUMERIC or not abs(plain) < _EXACT:
                raise UnknownValueError("a float")
            return plain
        if isinstance(plain, int) and not isinstance(plain, bool) and abs(plain) >= _LARGEST:
            raise UnknownValueError("a large number")
        return short_text(plain) if isinstance(plain, str) else plain


def oid_of_cast(name: str) -> int:
    """Return a type's number, given its name in a cast.

    Raises:
        UnknownValueError: values of the type cannot be compared.
    """
    try:
        return _OIDS[name]
    except KeyError:
        raise UnknownValueError(f"a cast to {name}") from None


def keeps_value(oid: int, cast: int) -> bool:
    """Return whether a cast from one type to another preserves every value that it accepts.

    >>> keeps_value(23, 1700), keeps_value(1700, 23)
    (True, False)
    """
    texts = (TEXT, VARCHAR)
    return (
        oid == cast
        or (oid in texts and cast in texts)
        or (oid in INTEGERS and (cast in INTEGERS or cast == NUMERIC))
    )


def short_text(text: str) -> str:
    """Return a text, or its hash if it is long. Equal results mean equal texts."""
    if len(text) <= _LONGEST_TEXT:
        return text
    return "sha256:" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


# An element with or without quotes, and the character behind it.
_ELEMENT: Final = re.compile(
    r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([^{}",\\\s](?:[^{}",\\]*[^{}",\\\s])?))\s*+([,}])', re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def array_items(value: Any, oid: int) -> tuple[list[Any], int]:
    """Return the elements of an array, and their type number.

    Raises:
        UnknownValueError: the array has NULLs, or several dimensions.
    """
    item = _ARRAYS.get(oid, 0)
    if oid and not item:
        raise UnknownValueError("an array of another type")
    if isinstance(value, bytes):
        dimensions, nulls, kind = struct.unpack_from("!iii", value)
        if not dimensions:
            return [], kind
        if dimensions != 1 or nulls:
            raise UnknownValueError("an array with NULL, or of several dimensions")
        (number,) = struct.unpack_from("!i", value, 12)
        items: list[Any] = []
        at = 20
        for _ in range(number):
            (size,) = struct.unpack_from("!i", value, at)
            items.append(value[at + 4 : at + 4 + size])
            at += 4 + size
        return items, kind
    return _items_in_text(value), item


def _items_in_text(text: str) -> list[str]:
    """Return the elements of an array as PostgreSQL writes it."""
    items: list[str] = []
    at, behind = 1, ","
    if not text.startswith("{") or text[1:].strip() == "}":
        at, behind = (len(text), "}") if text.startswith("{") else (0, "")
    while behind == ",":
        found = _ELEMENT.match(text, at)
        if found is None:
            raise UnknownValueError("an array of several dimensions")
        quoted, plain, behind = found.groups()
        if quoted is None and plain.lower() == "null":
            raise UnknownValueError("an array with NULL")
        items.append(plain or (_ESCAPED.sub(r"\1", quoted) if "\\" in quoted else quoted))
        at = found.end()
    if behind != "}" or text[at:].strip():
        raise UnknownValueError("an array of several dimensions")
    return items


def binary_value(value: bytes, oid: int) -> Any:
    """Decode the value of a parameter in binary format.

    Raises:
        UnknownValueError: the type is not supported.
    """
    try:
        if oid in INTEGERS:
            return struct.unpack(INTEGERS[oid], value)[0]
        if oid in (TEXT, VARCHAR):
            return value.decode()
        if oid == BOOL:
            return value == b"\1"
        if oid == UUID_OID:
            return str(UUID(bytes=value))
        if oid == FLOAT8:
            return struct.unpack("!d", value)[0]
        if oid == DATE:
            return _finite(struct.unpack("!i", value)[0], 2**31 - 1) * _DAY + _SINCE_2000
        if oid in (TIMESTAMP, TIMESTAMPTZ):
            return _finite(struct.unpack("!q", value)[0], _LARGEST) + _SINCE_2000
        if oid == NUMERIC:
            return _decimal(value)
    except (struct.error, ValueError) as error:
        raise UnknownValueError("a value in binary format") from error
    raise UnknownValueError(f"a binary value of type {oid}")


def _finite(value: int, largest: int) -> int:
    if abs(value) >= largest:
        raise UnknownValueError("infinity")
    return value


def _decimal(value: bytes) -> Decimal:
    number, weight, sign, _ = struct.unpack_from("!hhHh", value)
    if sign not in (0, 0x4000):
        raise UnknownValueError("not a number")
    digits: Sequence[int] = struct.unpack_from(f"!{number}h", value, 8)
    total = sum(
        (Decimal(d) * Decimal(10000) ** (weight - n) for n, d in enumerate(digits)), Decimal(0)
    )
    return -total if sign else total


def _parsed(text: str, oid: int) -> Any:
    """Return the value that PostgreSQL reads from a constant's text under all settings."""
    if oid in INTEGERS:
        plain = text.strip()
        if _INTEGER.fullmatch(plain):
            return int(plain)
        oid = NUMERIC
    if oid == NUMERIC:
        try:
            found = Decimal(text.strip())
        except InvalidOperation:
            raise UnknownValueError("a number") from None
        if not found.is_finite():
            raise UnknownValueError("a number that is not finite")
        return found
    if oid == FLOAT8 and _FLOAT.fullmatch(text):
        return float(text)
    if oid == BOOL:
        word = text.strip().lower()
        if word in ("t", "true", "1", "f", "false", "0"):
            return word in ("t", "true", "1")
        raise UnknownValueError("a boolean")
    if oid == UUID_OID:
        try:
            return str(UUID(text.strip()))
        except ValueError:
            raise UnknownValueError("a UUID") from None
    if oid in (TEXT, VARCHAR):
        return text
    if oid == DATE and _DATE.fullmatch(text):
        return _microseconds(text)
    if oid in (TIMESTAMP, TIMESTAMPTZ):
        found_time = _TIME.fullmatch(text)
        offset = found_time[3].strip() if found_time else ""
        has_offset = _OFFSET.fullmatch(offset)
        if found_time and oid == TIMESTAMPTZ and has_offset:
            return _microseconds(text)
        if found_time and oid == TIMESTAMP and (not offset or (found_time[2] and has_offset)):
            return _microseconds(text.removesuffix(offset))  # the server ignores the offset
    raise UnknownValueError(f"a constant of type {oid}")


def _microseconds(text: str) -> int:
    """Return the microseconds since 1970 for a date or time in ISO format."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise UnknownValueError("a date") from None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    gone = when - _EPOCH
    return (gone.days * 86_400 + gone.seconds) * 1_000_000 + gone.microseconds


def shifted(value: Decimal, digits: int) -> Decimal:
    """Return a number whose decimal point moves right, with all digits: Python would keep 28."""
    return value.scaleb(digits, Context(prec=max(1, len(value.as_tuple().digits))))


def _scaled(value: Decimal, scale: int) -> int:
    scaled = shifted(value, scale)
    if scaled != scaled.to_integral_value() or abs(scaled) >= _LARGEST:
        raise UnknownValueError("a decimal with more digits than the column has")
    return int(scaled)
