"""Formats values, rows and predicates of observed histories as EDN."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_SIMPLE: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def edn(value: Any) -> str:
    r"""Return a value in EDN, on one line.

    >>> edn({"a": [1, None, "x\ty"]})
    '{"a" [1 nil "x\\ty"]}'
    """
    if value is None:
        return "nil"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        return '"' + text.replace("\n", "\\n").replace("\r", "\\r") + '"'
    if isinstance(value, Mapping):
        return "{" + " ".join(f"{edn(k)} {edn(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + " ".join(map(edn, value)) + "]"
    return repr(value)


def column_edn(name: str) -> str:
    """Return a column name as written in an EDN predicate: ``:room`` or a string."""
    return f":{name}" if _SIMPLE.fullmatch(name) else edn(name)


def predicate_edn(predicate: Any) -> str:
    """Return a predicate in EDN, in the form that isolang uses to look up remarks on its read.

    >>> predicate_edn(("and", ("in", "room", (1, 2)), ("not", ("null", "odd name"))))
    '[:and [:or [:= :room 1] [:= :room 2]] [:not [:null "odd name"]]]'
    """
    if predicate == "true":
        return ":true"
    name, *rest = predicate
    if name in ("and", "or", "not"):
        return f"[:{name} {' '.join(map(predicate_edn, rest))}]"
    column = column_edn(rest[0])
    if name == "in" and rest[1]:
        return f"[:or {' '.join(f'[:= {column} {edn(one)}]' for one in rest[1])}]"
    return f"[:{' '.join([name, column, *map(edn, rest[1:])])}]"


def end_of_bracket(text: str, begin: int) -> int:
    r"""Return the position after the bracket closing the one at a position.

    >>> end_of_bracket('[1 "]\\"" [2]] 3', 0)
    13
    """
    depth, at, quoted = 0, begin, False
    while True:
        one = text[at]
        if one == "\\" and quoted:
            at += 1
        elif one == '"':
            quoted = not quoted
        elif not quoted:
            depth += (one in "[{(") - (one in ")}]")
        at += 1
        if not depth:
            return at
