"""Reads the statements of cursors in SQL: DECLARE, FETCH, MOVE and CLOSE.

PostgreSQL's grammar::

    DECLARE name [BINARY] [ASENSITIVE | INSENSITIVE] [[NO] SCROLL]
        CURSOR [{WITH | WITHOUT} HOLD] FOR query
    {FETCH | MOVE} [direction] [FROM | IN] name
    CLOSE {name | ALL}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from isolang.observe.sql.lexer import Token, catalogue_name

_LONGEST_NAME: Final = 63  # the bytes of a name that the server keeps
_OPTIONS: Final = frozenset({"binary", "asensitive", "insensitive", "no", "scroll"})
ALL: Final = 1 << 62
"""The number of rows that FETCH ALL requests."""


class Declaration(Struct, frozen=True):
    """A statement that declares a cursor.

    Attributes:
        query: the position of the first token of its query.
        holds: whether the cursor outlives its transaction (WITH HOLD).
        only_forward: whether the cursor says NO SCROLL.
    """

    name: str
    query: int
    holds: bool
    only_forward: bool


class CursorRequest(Struct, frozen=True):
    """A statement that uses a cursor.

    Attributes:
        name: the cursor; empty for all cursors.
        forward: the number of rows requested, counted from the cursor's position; 0 for other
            directions, and for MOVE and CLOSE.
    """

    what: Literal["fetch", "move", "close"]
    name: str
    forward: int = 0


def cursor_name(text: str) -> str:
    """Return a cursor's name as the server keeps it.

    >>> cursor_name("Page"), cursor_name('"Page"'), len(cursor_name("p" * 80))
    ('page', 'Page', 63)
    """
    return catalogue_name(text).encode()[:_LONGEST_NAME].decode(errors="ignore")


def declaration(part: Sequence[Token]) -> Declaration | None:
    """Return what a statement declares; ``None`` if it declares no cursor for a query.

    >>> from isolang.observe.sql.lexer import tokens
    >>> declaration([*tokens('DECLARE "C" NO SCROLL CURSOR WITH HOLD FOR SELECT 1')])
    Declaration(name='C', query=8, holds=True, only_forward=True)
    """
    words = [one.text if one.kind == "word" else "" for one in part[:12]]
    if words[:1] != ["declare"] or len(part) < 5 or part[1].kind not in ("word", "quoted"):
        return None
    at = 2
    while at < len(words) and words[at] in _OPTIONS:
        at += 1
    options = words[2:at]
    if words[at : at + 1] != ["cursor"]:
        return None
    at += 1
    holds = words[at : at + 2] == ["with", "hold"]
    if holds or words[at : at + 2] == ["without", "hold"]:
        at += 2
    if words[at : at + 1] != ["for"] or at + 1 >= len(part):
        return None
    return Declaration(cursor_name(part[1].text), at + 1, holds, "no" in options)


def cursor_request(part: Sequence[Token]) -> CursorRequest | None:
    """Return what a statement requests of a cursor; ``None`` for other statements.

    >>> from isolang.observe.sql.lexer import tokens
    >>> cursor_request([*tokens("FETCH FORWARD 2 FROM c")])
    CursorRequest(what='fetch', name='c', forward=2)
    >>> cursor_request([*tokens("FETCH PRIOR c")]).forward, cursor_request([*tokens("CLOSE ALL")])
    (0, CursorRequest(what='close', name='', forward=0))
    """
    what = part[0].text if part and part[0].kind == "word" else ""
    if what not in ("fetch", "move", "close") or len(part) < 2:
        return None
    last = part[-1]
    if last.kind not in ("word", "quoted"):
        return None
    if what == "close":
        closes_all = last.kind == "word" and last.text == "all"
        return CursorRequest("close", "" if closes_all else cursor_name(last.text))
    words = [one.text for one in part[1:-1]]
    if words[-1:] in (["from"], ["in"]):
        words.pop()
    forward = _rows_forward(words) if what == "fetch" else 0
    return CursorRequest(what, cursor_name(last.text), forward)  # type: ignore[arg-type]


def _rows_forward(direction: Sequence[str]) -> int:
    """Return the number of rows that a direction requests from the position on; 0 for others."""
    if not direction or direction == ["next"]:
        return 1
    words = direction[1:] if direction[0] == "forward" else direction
    if not words:
        return 1
    if words == ["all"]:
        return ALL
    return int(words[0]) if len(words) == 1 and words[0].isdecimal() else 0
