"""Converts keys and values between Python objects and the typed atoms of the columns.

``1``, ``"1"``, ``Keyword("1")``, ``1.0`` and ``True`` are five different values wherever a history
is read, built, compared or written. A checker that confused them would find false sources or miss
true ones.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any, Final, TypeAlias
from uuid import UUID

from msgspec import Struct

from isolang.errors import HistoryError
from isolang.patterns import pattern

NIL, INTEGER, NATURAL, STRING, KEYWORD, OTHER = range(6)  # AtomKind in native/core/history.hpp


class UnknownValue(Enum):
    """The type of :data:`UNKNOWN`."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = UnknownValue.UNKNOWN
"""The unknown result of a read, such as an ``:info`` read in a Jepsen history.

A read with this result constrains nothing."""


class Keyword(Struct, frozen=True):
    """An EDN keyword; for example, ``Keyword("x")`` is ``:x``."""

    name: str

    def __repr__(self) -> str:
        return f"Keyword({self.name!r})"


class Literal(Struct, frozen=True):
    """The canonical text of any other form found in a file, such as a symbol or a nested vector."""

    text: str


Value: TypeAlias = (
    bool | int | float | str | Decimal | UUID | bytes | dt.date | dt.time | tuple[Any, ...]
    | Keyword | Literal | dict[str, Any] | None
)  # fmt: skip
"""A key or a value: an object of a type returned by databases, or an EDN keyword or form.

Datetimes are dates too. A dictionary is a row, with values by column name.
"""

_MOST_DIGITS = 4300  # Python does not print or parse integers with more digits


def encode(value: object, where: str) -> tuple[int, Any]:
    """Return the kind and payload of the atom that represents a value in the native columns.

    Values of the same type that are equal in Python have the same atom: for example ``0.0`` and
    ``-0.0``, ``Decimal("1.50")`` and ``Decimal("1.5")``, or one instant in two time zones.

    Raises:
        HistoryError: an object of this type cannot be a key or a value, or the value is NaN, which
            is not equal to itself.
    """
    if type(value) is int and -(2**63) <= value < 2**63:  # the most common case
        return INTEGER, value
    match value:
        case None:
            return NIL, None
        case bool():
            return OTHER, "true" if value else "false"
        case int():
            return _integer(value, where)
        case str():
            return STRING, _utf8(value, where)
        case Keyword():
            return KEYWORD, _utf8(value.name, where)
        case Literal():
            return OTHER, _utf8(value.text, where)
        case float():
            if math.isnan(value):
                raise HistoryError(f"{where}: {_NOT_ITSELF} (got NaN); use a string or None")
            return OTHER, repr(float(value) + 0.0)
        case Decimal():
            return OTHER, _decimal(value, where)
        case UUID():
            return OTHER, f'#uuid "{value}"'
        case bytes() | bytearray() | memoryview():
            return OTHER, f'#bytes "{bytes(value).hex()}"'
        case dt.datetime() if value.tzinfo is not None:
            return OTHER, f'#inst "{value.astimezone(dt.UTC).isoformat()}"'
        case dt.datetime():
            return OTHER, f'#datetime "{value.isoformat()}"'
        case dt.date():
            return OTHER, f'#date "{value.isoformat()}"'
        case dt.time():
            return OTHER, f'#time "{value.isoformat()}"'
        case dict():
            return OTHER, _row(value, where)
        case tuple():
            return OTHER, f"[{' '.join(value_text(v, where) for v in value)}]"
    if hasattr(value, "__index__"):  # such as NumPy integers
        return encode(value.__index__(), where)
    msg = (
        f"{where}: a key or value of this type has no exact text (got "
        f"{type(value).__name__}, expected None, bool, int, float, str, Decimal, UUID, "
        "bytes, a date or time, a tuple or a dictionary of these, or Keyword); convert "
        "it to a string first"
    )
    raise HistoryError(msg)


_NOT_ITSELF = "a value that is not equal to itself"


def _integer(value: int, where: str) -> tuple[int, Any]:
    if -(2**63) <= value < 2**63:
        return INTEGER, int(value)
    if 2**63 <= value < 2**64:
        return NATURAL, int(value)
    try:
        return OTHER, str(int(value))
    except ValueError:
        msg = (
            f"{where}: the integer has more than {_MOST_DIGITS} digits (got "
            f"{value.bit_length()} bits); use its hash or a string"
        )
        raise HistoryError(msg) from None


def _decimal(value: Decimal, where: str) -> str:
    if not value.is_finite():
        what = _NOT_ITSELF if value.is_nan() else "a number without an exact text"
        raise HistoryError(f"{where}: {what} (got {value}); use a string or None")
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0").rstrip("0")
    if not text:
        return "0M"
    exponent = int(exponent) + len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return f"{Decimal((sign, tuple(map(int, text)), exponent))}M"


def value_text(value: object, where: str) -> str:
    """Return the text of a vector element, as the native reader prints it."""
    kind, payload = encode(value, where)
    if kind == STRING:
        return _quoted(payload)
    return atom_text(kind, payload)


def _row(value: dict[Any, Any], where: str) -> str:
    """Return a row's text in the form used by the native reader, which sorts columns by text."""
    columns = []
    for name, field in value.items():
        if not isinstance(name, str | Keyword) or not name:
            msg = f"{where}: not the name of a column (got {preview(name)}, expected a string)"
            raise HistoryError(msg)
        text = name.name if isinstance(name, Keyword) else name
        columns.append(f"{column_text(_utf8(text, where))} {value_text(field, where)}")
    return "{" + " ".join(sorted(columns)) + "}"


def column_text(name: str) -> str:
    """Return a column name as text: a keyword such as ``:v`` if possible, otherwise a string."""
    return f":{name}" if re.fullmatch(r"[\w.*+!?$%&=<>/-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _utf8(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        msg = f"{where}: the string is not valid Unicode (got {text!r})"
        raise HistoryError(msg) from None
    return str(text)


def decode(kind: int, payload: Any) -> Value:
    """Return the Python object for an atom; the inverse of :func:`encode`."""
    if kind == NIL:
        return None
    if kind in (INTEGER, NATURAL):
        return int(payload)
    text = str(payload)
    if kind == STRING:
        return text
    if kind == KEYWORD:
        return Keyword(text)
    # A text is decoded only if encoding the result gives the same text. For example, "1.50M" stays
    # a literal, because the decimal 1.5 is encoded as "1.5M", which is a different atom.
    try:
        found = _decode_other(text)
        same = encode(found, "") == (kind, text)
    except (ValueError, ArithmeticError, RecursionError, HistoryError):
        return Literal(text)
    return found if same else Literal(text)


def row_columns(text: str) -> dict[str, Value]:
    """Return the columns of a row by its canonical text; empty if the text is not that of a row.

    Unlike :func:`decode`, this accepts names written as strings: ``{"id" 1}``.
    """
    try:
        row = _decode_other(text) if text.startswith("{") else None
    except (ValueError, ArithmeticError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


_TAGS: Final[dict[str, Callable[[str], Value]]] = {
    "#uuid": UUID,
    "#bytes": bytes.fromhex,
    "#inst": dt.datetime.fromisoformat,
    "#datetime": dt.datetime.fromisoformat,
    "#date": dt.date.fromisoformat,
    "#time": dt.time.fromisoformat,
}
_TAGGED = pattern(r'(#\w+) "([^"\\]*)"')
_TOKEN = pattern(r'\s*(\[|\]|#\w+ "[^"\\]*"|"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s\[\]"]+)')


def _decode_other(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    if tagged := _TAGGED.fullmatch(text):
        return _TAGS.get(tagged[1], Literal)(tagged[2])
    if text.startswith("["):
        return _decode_tuple(text)
    if text.startswith("{"):
        fields = _decode_tuple(f"[{text[1:-1]}]")
        names = [f.name if isinstance(f, Keyword) else str(f) for f in fields[::2]]
        return dict(zip(names, fields[1::2], strict=True))
    if text.endswith("M"):
        return Decimal(text[:-1])
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _decode_tuple(text: str) -> tuple[Value, ...]:
    open_: list[list[Value]] = [[]]
    for token in _TOKEN.findall(text):
        if token == "[":
            open_.append([])
        elif token == "]":
            done = tuple(open_.pop())
            open_[-1].append(done)
        elif token == "nil":
            open_[-1].append(None)
        elif token[0] == '"':
            open_[-1].append(re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL))
        elif token[0] == ":":
            open_[-1].append(Keyword(token[1:]))
        else:
            open_[-1].append(_decode_other(token))
    ((found,),) = open_
    return found if isinstance(found, tuple) else (found,)


def preview(value: object) -> str:
    """Return a short text for any object, for use in messages."""
    try:
        text = repr(value)
    except Exception:  # for example, an integer of thousands of digits, or a user's class
        text = f"a {type(value).__name__} without a text"
    return text if len(text) <= 80 else text[:79] + "…"


ROW_KEY: Final = pattern(r"[^\W\d][\w.]*/[\w./@-]+")  # a table, a slash and a primary key
# The same as a pair; a key may have the number of a row that was inserted again: "7#2".
_ROW_PAIR: Final = pattern(r'\["([^\W\d][\w.]*)" "([\w./@#%,+:-]+)"\]')


def key_name(kind: int, payload: Any) -> str:
    """Return a key as text for messages.

    A string is left unquoted if it is an identifier or names a row, such as ``user/7``; a pair of
    strings that names a row is shown in the same way.
    """
    if kind == OTHER and (pair := _ROW_PAIR.fullmatch(str(payload))):
        return f"{pair[1]}/{pair[2]}"
    named = kind == STRING and (payload.isidentifier() or ROW_KEY.fullmatch(payload))
    return str(payload) if named else atom_text(kind, payload)


def atom_text(kind: int, payload: Any) -> str:
    """Return an atom as text for messages, such as ``5``, ``"a"``, ``:x`` or ``nil``."""
    if kind == NIL:
        return "nil"
    if kind == STRING:
        return (
            '"' + str(payload).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        )
    if kind == KEYWORD:
        return f":{payload}"
    return str(payload)
