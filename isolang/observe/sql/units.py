"""Finds the request and the program of a statement in the comments before and after it.

``/*unit='7'*/`` names it. ``/*traceparent='00-4bf9…-00f0…-01'*/``, as sqlcommenter and
OpenTelemetry write it, names the trace, which is unique for each request. A ``route``, or a
``controller`` with its ``action``, names the program, and so no request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

# SOUND BECAUSE: a comment that is the first or the last part of a statement is not inside a string.
_COMMENT: Final = r"/\*(?:[^*]|\*(?!/))*+\*/"
_FIRST: Final = re.compile(rf"\s*(?:{_COMMENT}\s*)+")
_LAST: Final = re.compile(rf"(?:{_COMMENT}\s*)+(?:;\s*)?\Z")
_FIELD: Final = re.compile(r"\b(unit|traceparent)\s*=\s*'((?:[^'\\]|\\.)*)'")
_PROGRAM: Final = re.compile(
    r"\b(route|controller|action)(?:\s*=\s*'((?:[^'\\]|\\.)*)'|:([\w.:/-]+))"
)
_TRACE: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}", re.IGNORECASE)
_NO_TRACE: Final = "0" * 32

SOURCES: Final = ("unit", "call", "traceparent", "application_name")
"""What may name a transaction's unit; the first one that does so counts."""


def units_of_statement(text: str) -> Mapping[str, str]:
    """Return the units that a statement's comments name, by what names them.

    >>> dict(units_of_statement("/*unit='a%20b'*/ SELECT 1 /*route='/pay'*/"))
    {'unit': 'a b'}
    >>> trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    >>> named = units_of_statement(f"SELECT 1 /*traceparent='00-{trace}-00f067aa0ba902b7-01'*/;")
    >>> dict(named) == {"traceparent": trace}
    True
    """
    if "*/" not in text or ("unit" not in text and "traceparent" not in text):
        return {}
    units: dict[str, str] = {}
    for comment in (_FIRST.match(text), _last_comment(text)):
        for field in _FIELD.finditer(comment[0] if comment else ""):
            name, value = field[1], unquote(re.sub(r"\\(.)", r"\1", field[2]))
            if name == "traceparent":
                trace = _TRACE.fullmatch(value)
                value = trace[1].lower() if trace and trace[1] != _NO_TRACE else ""
            if value:
                units.setdefault(name, value)
    return units


def program_of_statement(text: str) -> str:
    """Return the name of the program that a statement's comments name; empty if they name none.

    >>> program_of_statement("SELECT 1 /*action='create',controller='orders'*/")
    'orders#create'
    >>> program_of_statement("SELECT 1 /*controller='orders',route='%2Fbuy'*/")
    '/buy'
    """
    if "*/" not in text or ("route" not in text and "controller" not in text):
        return ""
    fields: dict[str, str] = {}
    for comment in (_FIRST.match(text), _last_comment(text)):
        for field in _PROGRAM.finditer(comment[0] if comment else ""):
            value = unquote(re.sub(r"\\(.)", r"\1", field[2])) if field[2] else field[3] or ""
            fields.setdefault(field[1], value)
    controller = "#".join(filter(None, (fields.get("controller"), fields.get("action"))))
    return fields.get("route") or controller


def _last_comment(text: str) -> re.Match[str] | None:
    """Return the match of the comments at the end of a statement."""
    end = text.rstrip("; \t\r\n")
    return _LAST.search(end, end.rfind("/*")) if end.endswith("*/") else None


def unit_named(units: Mapping[str, str]) -> str:
    """Return the name of a transaction's unit; empty if nothing names it, or two names differ."""
    for source in SOURCES:
        if source in units:
            return units[source]
    return ""
