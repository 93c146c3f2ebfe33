"""Reads each transaction's unit, such as the request that it belongs to, from a recording.

A transaction's maps may have ``:unit "4bf92f…"``. Transactions with the same unit are the
work of one request. No verdict about transactions depends on units; ``--unit request`` asks about
requests, too (:mod:`isolang.history.carried`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import DecodeError, Struct, json

from isolang.errors import HistoryError
from isolang.history.line_fields import fields_of_file, fields_of_text

_FIELD: Final = b":unit"
_FIELDS: Final = (_FIELD, b":type", b":process")
_JSON_FIELD: Final = b'"unit"'
_JSON_TYPE: Final = b'"type"'
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN: Final = re.compile(
    rb"%s|;[^\n]*|[\[\](){}]|:(?:unit|type|process)(?![\w.*+!?$%%&=<>/'#:-])" % _STRING
)
_VALUE: Final = re.compile(rb"[\s,]*(?:(%s)|:?([\w./*+!?$%%&=<>-]+))" % _STRING)
_OPENS: Final = {b"(": b")", b"[": b"]", b"{": b"}"}


def read_units(path: str) -> Mapping[int, str]:
    """Return the units in a recording, keyed by the lines of the transaction's maps.

    Raises:
        HistoryError: a ``:unit`` field is malformed.
    """
    return fields_of_file(path, (_FIELD, _JSON_FIELD), _units_by_line)


def units_in(text: bytes, name: str) -> Mapping[int, str]:
    """Return the units in the text of a recording, as :func:`read_units` does.

    Raises:
        HistoryError: a ``:unit`` field is malformed.
    """
    return fields_of_text(text, name, (_FIELD, _JSON_FIELD), _units_by_line)


def _units_by_line(lines: Iterable[bytes], name: str) -> Mapping[int, str]:
    """Return the units, keyed by the lines of both maps of each transaction.

    One of the maps suffices: those of a process that does one thing at a time belong together.
    """
    units: dict[int, str] = {}
    invoked: dict[str, int] = {}  # by process: the line of the open invocation
    for number, line in enumerate(lines, 1):
        event = _event(line, f"{name}:{number}")
        if event.unit:
            units[number] = event.unit
        if event.type == "invoke":
            invoked[event.process] = number
        elif event.type and (first := invoked.pop(event.process, 0)):
            unit = units.get(number) or units.get(first, "")
            if unit and units.setdefault(first, unit) != units.setdefault(number, unit):
                raise HistoryError(
                    f"{name}:{number}: the unit differs from the one of the invocation in line "
                    f"{first} (got {unit!r}, expected {units[first]!r})"
                )
    return units


class _Event(Struct):
    """The fields of an operation's map, as text; empty if they are missing."""

    type: str = ""
    process: str = ""
    unit: str = ""


def _event(line: bytes, where: str) -> _Event:
    """Return the type, the process and the unit of the operation in a line.

    A key in a row or a predicate, such as ``{:unit "kg"}``, is not a field of the map.
    """
    event = _Event()
    brackets: list[bytes] = []
    for token in _TOKEN.finditer(line):
        text = token[0]
        if text in _OPENS:
            brackets.append(text)
        elif text in _OPENS.values():
            if brackets:
                brackets.pop()
        elif text in _FIELDS and brackets.count(b"{") == 1 and brackets[-1] == b"{":
            if text == _FIELD and event.unit:
                raise HistoryError(
                    f"{where}: several units in a line; write each operation's map on a line of "
                    "its own"
                )
            setattr(event, text[1:].decode(), _value(line, token.end(), where))
    return event if event.type or _JSON_TYPE not in line else _event_in_json(line, where)


def _value(line: bytes, at: int, where: str) -> str:
    form = _VALUE.match(line, at)
    if form is None:
        got = line[at : at + 20].decode(errors="replace").strip()
        raise HistoryError(f"{where}: not a unit (got {got!r}, expected a name or a number)")
    if form[1] is not None:
        try:
            return json.decode(form[1], type=str)
        except DecodeError:  # it contains an escape that is invalid in JSON
            return form[1][1:-1].decode(errors="replace")
    name = form[2].decode()
    return "" if name == "nil" else name


def _event_in_json(line: bytes, where: str) -> _Event:
    try:
        event = json.decode(line.strip().lstrip(b"[ ").rstrip(b",] "))
    except DecodeError:
        return _Event()
    if not isinstance(event, dict):
        return _Event()
    unit = event.get("unit")
    if isinstance(unit, bool) or not isinstance(unit, str | int | None):
        raise HistoryError(f"{where}: not a unit (got {unit!r}, expected a name or a number)")
    shown = "" if unit is None else str(unit)
    return _Event(str(event.get("type", "")), str(event.get("process", "")), shown)
