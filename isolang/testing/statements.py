"""The few shapes of SQL whose rows a watch of psycopg can name; everything else is unseen.

Only statements on one table are recognised, with a condition that depends on nothing but the row:
what is not certain is not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct

_TOKEN: Final = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[A-Za-z_]\w*|\d[\w.]*|[^\w\s'\"]", re.ASCII
)
_REFUSED: Final = re.compile(r"--|/\*|\\|\$|;|[^\x00-\x7f]\w*\(")
_NAME: Final = re.compile(r'[A-Za-z_]\w*|"(?:[^"]|"")*"', re.ASCII)
_ENDS: Final = frozenset({"group", "having", "order", "limit", "offset", "fetch", "for", "window"})
_COMPLEX: Final = frozenset(
    {"join", "union", "intersect", "except", "with", "tablesample", "lateral", "only", "exists"}
)
# What may stand before a parenthesis: words of the language, and functions of values alone.
_PLAIN: Final = frozenset({"in", "any", "all", "and", "or", "not", "where", "between", "like"}) | {
    "upper", "lower", "length", "abs", "coalesce", "cast", "varchar", "char", "numeric", "decimal",
}  # fmt: skip
_SUMS: Final = frozenset({"avg", "bool_and", "bool_or", "count", "every", "max", "min", "sum"})
_WRITES: Final = {"insert": "into", "update": "", "delete": "from"}
_NOT_ALIASES: Final = _ENDS | {"where", "set", "values", "default", "select", "overriding", "using"}


class Statement(Struct, frozen=True, kw_only=True):
    """A statement on one table.

    Attributes:
        kind: what it does.
        table: as it is written.
        alias: the name of the table in the statement.
        source: of a SELECT, table, alias and condition, as they are written.
        cut: whether matching rows may be left out: LIMIT, OFFSET, FETCH, SKIP LOCKED.
        sums: whether one row stands for all that match.
        locks: whether rows are locked against writers.
        returned: of a write, what it returns to the application.
        sets: of an UPDATE, the columns that it sets one by one.
    """

    kind: Literal["select", "insert", "update", "delete"]
    table: str
    alias: str
    source: str = ""
    cut: bool = False
    sums: bool = False
    locks: bool = False
    returned: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()


class _Text:
    """A statement, cut into tokens."""

    def __init__(self, text: str) -> None:
        found = list(_TOKEN.finditer(text))
        self.text = text
        self.tokens = [one.group() for one in found]
        self.words = [one.lower() for one in self.tokens]
        self.spans = [one.span() for one in found]

    def between(self, begin: int, end: int) -> str:
        """Tokens as they are written."""
        return self.text[self.spans[begin][0] : self.spans[end - 1][1]]

    def table(self, at: int) -> tuple[str, str, int] | None:
        """The name of a table, its alias, and the place behind them."""
        begin, tokens = at, self.tokens
        if at >= len(tokens) or not _NAME.fullmatch(tokens[at]):
            return None
        at += 1
        if tokens[at : at + 1] == ["."]:
            if at + 1 >= len(tokens) or not _NAME.fullmatch(tokens[at + 1]):
                return None
            at += 2
        table = alias = self.between(begin, at)
        if self.words[at : at + 1] == ["as"]:
            at += 1
        after = self.words[at] if at < len(tokens) else ""
        if _NAME.fullmatch(after) and after not in _NOT_ALIASES:
            alias, at = tokens[at], at + 1
        return table, alias, at


def parse(text: str) -> Statement | None:
    """Recognise a statement whose values are literals; ``None`` if it is of another shape."""
    text = text.strip().removesuffix(";")
    if _REFUSED.search(text):
        return None
    cut = _Text(text)
    if not cut.words or _COMPLEX & set(cut.words) or cut.words.count("select") > 1:
        return None
    if cut.words[0] == "select" and "into" not in cut.words:
        return _select(cut)
    return _write(cut) if cut.words[0] in _WRITES else None


def _select(cut: _Text) -> Statement | None:
    words = cut.words
    if words.count("from") != 1:
        return None
    begin = words.index("from") + 1
    named = cut.table(begin)
    if named is None:
        return None
    table, alias, at = named
    end = next((n for n in range(at, len(words)) if words[n] in _ENDS), len(words))
    if at < end and words[at] != "where":
        return None
    for word, after in pairwise(words[at:end]):
        # SOUND BECAUSE: without other functions whether a row matches depends on its version alone,
        # so that one that matches before and after the statement matches in its snapshot, too.
        if after == "(" and _NAME.fullmatch(word) and word not in _PLAIN:
            return None
    rest = words[end:]
    strengths = {after for word, after in pairwise(rest) if word == "for"}
    return Statement(
        kind="select",
        table=table,
        alias=alias,
        source=cut.between(begin, end),
        cut=bool({"limit", "offset", "fetch", "skip"} & set(rest)),
        # SOUND BECAUSE: a list that begins with an aggregate is computed of all rows; others in it,
        # as what the rows are grouped by, would need GROUP BY.
        sums=words[1] in _SUMS and words[2] == "(" and not {"over", "group"} & set(words),
        locks=bool(strengths) and "key" not in strengths,
    )


def _write(cut: _Text) -> Statement | None:
    words = cut.words
    at = 2 if _WRITES[words[0]] else 1
    if at == 2 and words[1:2] != [_WRITES[words[0]]]:
        return None
    named = cut.table(at)
    # SOUND BECAUSE: what is written is asked of the server. A subquery would only be read.
    if named is None or {"select", "using"} & set(words) or words[1:].count("from") > at - 1:
        return None
    returned: tuple[str, ...] = ()
    if "returning" in words:
        begin = words.index("returning") + 1
        returned = tuple(one.strip() for one in cut.text[cut.spans[begin - 1][1] :].split(","))
    return Statement(
        kind=words[0],  # type: ignore[arg-type]
        table=named[0],
        alias=named[1],
        returned=returned,
        sets=tuple(_set(cut)) if words[0] == "update" else (),
    )


def _set(cut: _Text) -> Iterator[str]:
    """The columns before the ``=`` of an UPDATE, outside of parentheses."""
    depth = 0
    begin = cut.words.index("set") if "set" in cut.words else len(cut.words)
    for before, name, after in zip(*(cut.tokens[begin + n :] for n in range(3)), strict=False):
        depth += (before == "(") - (before == ")")
        if not depth and after == "=" and before.lower() in ("set", ","):
            yield name if name.startswith('"') else name.lower()
