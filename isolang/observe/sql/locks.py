"""Reads the locks that a statement takes besides those of rows: advisory locks, and LOCK TABLE.

Predictions need them: transactions that hold the same lock do not overlap. A lock that is not
recognised excludes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, Literal

from msgspec import Struct

from isolang.observe.sql.lexer import Token, catalogue_name
from isolang.observe.sql.predicates import Parameters

_ADVISORY: Final = re.compile(r"pg_(?:try_)?advisory_(xact_)?(un)?lock(_shared)?")
_UNLOCK_ALL: Final = "pg_advisory_unlock_all"
# What the numbers of a lock may be computed with: each gives the same result in every session.
_CONSTANT_WORDS: Final = frozenset({
    "hashtext", "hashtextextended", "md5", "sha224", "sha256", "encode", "decode",
    "current_database",
    "int", "int4", "int8", "integer", "bigint", "bit", "text", "bytea", "varchar", "abs", "mod",
})  # fmt: skip
_MODES: Final = {
    "share update exclusive": False, "share": True, "share row exclusive": False,
    "exclusive": False, "access exclusive": False,
}  # fmt: skip
"""The modes that conflict with each other, except two that are shared."""
_PLAIN: Final = re.compile(r"[\w.,/+-]{1,60}")


class LockCall(Struct, frozen=True):
    """A part of a statement that takes or releases a lock.

    Attributes:
        until: when the lock is released; ``now`` if the call releases it.
        table: the name of a table; empty for an advisory lock.
        arguments: the token range of the numbers of an advisory lock; empty for all of them.
    """

    until: Literal["transaction", "session", "now"]
    shared: bool = False
    table: str = ""
    arguments: tuple[int, int] = (0, 0)


def lock_calls(part: Sequence[Token]) -> tuple[LockCall, ...]:
    """Return what a statement locks and releases; nothing if it does anything else.

    >>> from isolang.observe.sql.lexer import tokens
    >>> [call.until for call in lock_calls([*tokens("SELECT pg_advisory_xact_lock(1, 2) AS l")])]
    ['transaction']
    >>> lock_calls([*tokens("LOCK TABLE a IN SHARE MODE")])
    (LockCall(until='transaction', shared=True, table='a', arguments=(0, 0)),)
    """
    word = part[0].text if part and part[0].kind == "word" else ""
    if word == "lock":
        return tuple(_locked_tables(part))
    if word != "select" or not any("advisory" in one.text for one in part[1:4]):
        return ()
    return tuple(_advisory_calls(part))


def _locked_tables(part: Sequence[Token]) -> Iterator[LockCall]:
    words = [one.text for one in part]
    if words[-1] == "nowait":
        words.pop()
    mode = "access exclusive"
    if words[-1] == "mode" and "in" in words:
        begin = len(words) - 1 - words[::-1].index("in")
        mode, words = " ".join(words[begin + 1 : -1]), words[:begin]
    if mode not in _MODES:
        return
    listed = " ".join(words[1 + (words[1:2] == ["table"]) :])
    for name in listed.split(" , "):
        last = name.removeprefix("only ").removesuffix(" *").split(" . ")[-1]
        yield LockCall("transaction", _MODES[mode], catalogue_name(last))


def _advisory_calls(part: Sequence[Token]) -> list[LockCall]:
    calls: list[LockCall] = []
    at = 1
    while at < len(part):
        if [one.text for one in part[at : at + 2]] == ["pg_catalog", "."]:
            at += 2
        name = part[at].text if at + 2 < len(part) else ""
        kind = _ADVISORY.fullmatch(name)
        if (kind is None and name != _UNLOCK_ALL) or part[at + 1].text != "(":
            return []
        begin = end = at + 2
        depth = 1
        while end < len(part) and depth:
            depth += (part[end].text == "(") - (part[end].text == ")")
            end += 1
        if kind is None:
            calls.append(LockCall("now"))
        else:
            until: Literal["transaction", "session", "now"] = (
                "now" if kind[2] else "transaction" if kind[1] else "session"
            )
            calls.append(LockCall(until, kind[3] is not None, arguments=(begin, end - 1)))
        at = end
        if at < len(part) and part[at].text == "as":
            at += 1
        if at < len(part) and part[at].kind in ("word", "quoted"):
            at += 1
        if at < len(part) and part[at].text != ",":
            return []
        at += 1
    return calls


def lock_name(call: LockCall, part: Sequence[Token], parameters: Parameters) -> str:
    """Return the name of a lock; empty if its numbers may differ from what the statement says."""
    if call.table:
        return _shortened(f"table/{call.table}")
    begin, end = call.arguments
    texts = [_argument(one, parameters) for one in part[begin:end]]
    return "" if not texts or None in texts else _shortened(f"advisory/{''.join(map(str, texts))}")


def _argument(token: Token, parameters: Parameters) -> str | None:
    """Return a token of a lock's numbers as text; ``None`` if its value is not known."""
    if token.kind == "parameter":
        return parameters.text(int(token.text[1:]))
    if token.kind == "word" and token.text not in _CONSTANT_WORDS:
        return None
    return None if token.kind == "quoted" else token.text


def _shortened(name: str) -> str:
    """Return the name to use in a history."""
    if _PLAIN.fullmatch(name):
        return name
    kind, _, rest = name.partition("/")
    return f"{kind}/{blake2b(rest.encode(), digest_size=6).hexdigest()}"
