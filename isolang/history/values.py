"""Keys and values as Python objects, and how they become the typed atoms of the columns.

``1``, ``"1"``, ``Keyword("1")``, ``1.0`` and ``True`` are five different values, in every place a
history is read, built, compared or written: a checker that mixes them up invents or loses
reads-from edges.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec import Struct

from isolang.errors import HistoryError

NIL, INTEGER, NATURAL, STRING, KEYWORD, OTHER = range(6)  # AtomKind in native/core/history.hpp


class Unknown(Enum):
    """The type of :data:`UNKNOWN`."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN
"""The result of a read that is not known (Jepsen's ``:info`` reads); it constrains nothing."""


class Keyword(Struct, frozen=True):
    """An EDN keyword: ``Keyword("x")`` is ``:x``."""

    name: str

    def __repr__(self) -> str:
        return f"Keyword({self.name!r})"


class Literal(Struct, frozen=True):
    """Any other scalar of a file, by its canonical text: a symbol, a nested vector."""

    text: str


Value: TypeAlias = bool | int | float | str | Keyword | Literal | None
"""What a key or a value can be."""


def encode(value: object, where: str) -> tuple[int, Any]:
    """Give the atom kind and payload that the native columns intern.

    Args:
        value: a key or a value.
        where: the place to name in an error.

    Raises:
        HistoryError: if the type cannot be a key or value, or it is NaN (which is not equal to
            itself).
    """
    if value is None:
        return NIL, None
    if isinstance(value, bool):
        return OTHER, "true" if value else "false"
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return INTEGER, int(value)
        if 2**63 <= value < 2**64:
            return NATURAL, int(value)
        return OTHER, str(int(value))
    if isinstance(value, str):
        return STRING, _utf8(value, where)
    if isinstance(value, Keyword):
        return KEYWORD, _utf8(value.name, where)
    if isinstance(value, Literal):
        return OTHER, _utf8(value.text, where)
    if isinstance(value, float):
        if math.isnan(value):
            msg = f"{where}: a value that is not equal to itself (got NaN); use a string or None"
            raise HistoryError(msg)
        return OTHER, repr(float(value))
    if hasattr(value, "__index__"):  # numpy integers
        return encode(value.__index__(), where)
    msg = (
        f"{where}: a key or value of a type that has no exact text (got {type(value).__name__}, "
        "expected None, bool, int, float, str or Keyword); convert it to a string first"
    )
    raise HistoryError(msg)


def _utf8(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        msg = f"{where}: a text with half a character (got {text!r}, expected Unicode)"
        raise HistoryError(msg) from None
    return str(text)


def decode(kind: int, payload: Any) -> Value:
    """Give the Python object of an atom; the inverse of :func:`encode`."""
    if kind == NIL:
        return None
    if kind in (INTEGER, NATURAL):
        return int(payload)
    text = str(payload)
    if kind == STRING:
        return text
    if kind == KEYWORD:
        return Keyword(text)
    return _decode_other(text)


def _decode_other(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    # Only text that encodes back to itself: "1.50" stays a literal, for 1.5 would be another atom.
    try:
        if str(int(text)) == text and not -(2**63) <= int(text) < 2**64:
            return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return Literal(text)
    return number if repr(number) == text and not math.isnan(number) else Literal(text)


def show(kind: int, payload: Any) -> str:
    """Give an atom as messages show it: ``5``, ``"a"``, ``:x``, ``nil``."""
    if kind == NIL:
        return "nil"
    if kind == STRING:
        return (
            '"' + str(payload).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        )
    if kind == KEYWORD:
        return f":{payload}"
    return str(payload)
