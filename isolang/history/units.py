"""Reads each transaction's unit, such as the request that it belongs to, from a recording.

A completion may have ``:unit "4bf92f…"``. Transactions with the same unit are the work of one
request. No verdict about transactions depends on units; ``--unit request`` asks about requests, too
(:mod:`isolang.history.carried`).
"""

from __future__ import annotations

import io
import mmap
import re
import stat
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import DecodeError, json

from isolang.errors import HistoryError

_FIELD: Final = b":unit"
_JSON_FIELD: Final = b'"unit"'
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN: Final = re.compile(rb"%s|;[^\n]*|[\[\](){}]|:unit(?![\w.*+!?$%%&=<>/'#:-])" % _STRING)
_VALUE: Final = re.compile(rb"[\s,]*(?:(%s)|:?([\w./*+!?$%%&=<>-]+))" % _STRING)
_OPENS: Final = {b"(": b")", b"[": b"]", b"{": b"}"}


def read_units(path: str) -> Mapping[int, str]:
    """Return the units in a recording, keyed by the line of the completion.

    Raises:
        HistoryError: a ``:unit`` field is malformed.
    """
    try:
        about = Path(path).stat()
        # a pipe cannot be read a second time
        regular = stat.S_ISREG(about.st_mode) and about.st_size
        return _read(path, about.st_mtime_ns, about.st_size) if regular else {}
    except OSError:
        return {}


@lru_cache(maxsize=4)
def _read(path: str, changed: int, size: int) -> Mapping[int, str]:
    with Path(path).open("rb") as file:
        # Most files have no such field, and reading a large file line by line is slow.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            if all(text.find(field) < 0 for field in (_FIELD, _JSON_FIELD)):
                return {}
        return _units_by_line(file, path)


def units_in(text: bytes, name: str) -> Mapping[int, str]:
    """Return the units in the text of a recording, as :func:`read_units` does.

    Raises:
        HistoryError: a ``:unit`` field is malformed.
    """
    if _FIELD not in text and _JSON_FIELD not in text:
        return {}
    return _units_by_line(io.BytesIO(text), name)


def _units_by_line(lines: Iterable[bytes], name: str) -> Mapping[int, str]:
    units: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        if _FIELD not in line and _JSON_FIELD not in line:
            continue
        unit = _unit_in(line, f"{name}:{number}")
        if unit:
            units[number] = unit
    return units


def _unit_in(line: bytes, where: str) -> str:
    """Return the unit that an operation's map names; empty if it names none.

    A key ``:unit`` in a row or a predicate is not a field of the map.
    """
    brackets: list[bytes] = []
    units: list[str] = []
    for token in _TOKEN.finditer(line):
        text = token[0]
        if text in _OPENS:
            brackets.append(text)
        elif text in _OPENS.values():
            if brackets:
                brackets.pop()
        elif text == _FIELD and brackets.count(b"{") == 1 and brackets[-1] == b"{":
            units.append(_value(line, token.end(), where))
    if len(units) > 1:
        raise HistoryError(
            f"{where}: several units (got {len(units)}, expected one for each line); write each "
            "operation's map on a line of its own"
        )
    return units[0] if units else _unit_in_json(line, where)


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


def _unit_in_json(line: bytes, where: str) -> str:
    if _JSON_FIELD not in line:
        return ""
    try:
        event = json.decode(line.strip().lstrip(b"[ ").rstrip(b",] "))
    except DecodeError:
        return ""
    unit = event.get("unit") if isinstance(event, dict) else None
    if unit is None:
        return ""
    if isinstance(unit, bool) or not isinstance(unit, str | int):
        raise HistoryError(f"{where}: not a unit (got {unit!r}, expected a name or a number)")
    return str(unit)
