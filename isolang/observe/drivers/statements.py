"""Parses the kinds of SQL statements for which a watch can identify the accessed rows.

A statement is recognised only if it accesses one table and if its condition depends only on the
row. If it is not certain what a statement means, it is not recognised, and the watch counts it as
unseen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.history.statements import Lock
from isolang.observe.drivers.conditions import NAME, column_of, conjuncts, sought, split
from isolang.observe.lexer import Token, UnclearTextError, tokens
from isolang.observe.plan import lock_of

MARK: Final = re.compile(r"'isolang:parameter:(\d+)'", re.ASCII)
"""A text that stands for a value which only the database knows."""

_REFUSED: Final = re.compile(r"--|/\*|\\|\$|;|[^\x00-\x7f]\w*\(")
_SKIPS: Final = re.compile(r"\bskip\s+locked\b", re.IGNORECASE)
_ENDS: Final = frozenset({"group", "having", "order", "limit", "offset", "fetch", "for", "window"})
_COMPLEX: Final = frozenset(
    {"join", "union", "intersect", "except", "with", "tablesample", "lateral", "only", "exists"}
)
# The words that may precede a parenthesis: keywords, and functions that depend only on their
# arguments.
_PLAIN: Final = frozenset({"in", "any", "all", "and", "or", "not", "where", "between", "like"}) | {
    "upper", "lower", "length", "abs", "coalesce", "cast", "varchar", "char", "numeric", "decimal",
}  # fmt: skip
_SUMS: Final = frozenset({"avg", "bool_and", "bool_or", "count", "every", "max", "min", "sum"})
_WRITES: Final = {"insert": "into", "update": "", "delete": "from"}
_NOT_ALIASES: Final = _ENDS | {
    "where", "set", "values", "default", "select", "overriding", "using", "on", "join", "left",
    "inner", "right", "full", "cross", "natural",
}  # fmt: skip


class Statement(Struct, frozen=True, kw_only=True):
    """A recognised statement, which accesses one table.

    Attributes:
        kind: the command of the statement.
        table: the name of the table, as written in the statement.
        alias: the alias of the table in the statement, or else the name of the table.
        source: for a SELECT, the text after FROM, with the table, the alias and the condition.
        equal: the columns that must be equal to one literal in every matching row.
        among: for each column that must be one of several literals, the number of these literals.
        cut: whether the result may lack matching rows, because of LIMIT, OFFSET, FETCH or SKIP
            LOCKED.
        skips: whether the result may lack rows that other transactions have locked, because of SKIP
            LOCKED.
        sums: whether the result is one row that is computed from all matching rows.
        lock: how a SELECT locks rows against writers.
        returned: the expressions that the application receives for each row, as they are written.
        sets: for an UPDATE, the columns that it sets.
        where: the tokens of the condition, in which a mark is a parameter.
        upserts: whether an INSERT may update a row (ON CONFLICT).
    """

    kind: Literal["select", "insert", "update", "delete"]
    table: str
    alias: str
    source: str = ""
    equal: frozenset[str] = frozenset()
    among: Mapping[str, int] = field(default_factory=dict)
    cut: bool = False
    skips: bool = False
    sums: bool = False
    lock: Lock = ""
    returned: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    where: tuple[Token, ...] = ()
    upserts: bool = False

    def looked_up(self, keys: Collection[frozenset[str]]) -> int | None:
        """Return the largest number of rows that can match, if it follows from a unique key.

        Return ``None`` if the condition does not restrict all columns of a unique key to literals.

        SOUND BECAUSE: no two rows have the same key. If a statement finds this number of rows, no
        further row can match, whatever the rest of the condition is.

        Args:
            keys: the unique keys of the table, each as the names of its columns.
        """
        if any(key <= self.equal for key in keys):
            return 1
        alone = [
            self.among[name] for (name,) in (k for k in keys if len(k) == 1) if name in self.among
        ]
        return min(alone, default=None)


class _Text:
    """A statement, split into tokens whose positions in the text are known."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = list(tokens(text))
        self.tokens = [text[one.start : one.end] for one in self._parts]
        self.words = [one.lower() for one in self.tokens]

    def between(self, begin: int, end: int) -> str:
        """Return the text of a range of tokens, as it is written."""
        return self.text[self._parts[begin].start : self._parts[end - 1].end]

    def condition(self, begin: int, end: int) -> tuple[Token, ...]:
        """Return a range of tokens, in which a mark is a parameter."""
        return tuple(map(_unmarked, self._parts[begin:end]))

    def table(self, at: int) -> tuple[str, str, int] | None:
        """Parse the name of a table and its alias, from the token at a position on.

        Return the name, the alias and the position of the token after them; ``None`` if no name
        begins at the position. If the table has no alias, its name is returned as the alias.
        """
        begin, tokens = at, self.tokens
        if at >= len(tokens) or not NAME.fullmatch(tokens[at]):
            return None
        at += 1
        if tokens[at : at + 1] == ["."]:
            if at + 1 >= len(tokens) or not NAME.fullmatch(tokens[at + 1]):
                return None
            at += 2
        table = alias = self.between(begin, at)
        if self.words[at : at + 1] == ["as"]:
            at += 1
        after = self.words[at] if at < len(tokens) else ""
        if NAME.fullmatch(after) and after not in _NOT_ALIASES:
            alias, at = tokens[at], at + 1
        return table, alias, at


def _unmarked(token: Token) -> Token:
    found = MARK.fullmatch(token.text)
    return token if found is None else replace(token, kind="parameter", text=f"${found[1]}")


def shown_text(statement: str) -> str:
    """Return a statement as it is shown, with ``$1`` for a value that only the database knows.

    >>> shown_text("SELECT 1 WHERE a = 'isolang:parameter:2'")
    'SELECT 1 WHERE a = $2'
    """
    return MARK.sub(r"$\1", statement)


def _cut(text: str) -> _Text | None:
    """Return the tokens of a text; ``None`` if it may mean something else."""
    text = text.strip().removesuffix(";")
    if _REFUSED.search(text):
        return None
    try:
        return _Text(text)
    except UnclearTextError:
        return None


def parse(text: str) -> Statement | None:
    """Return the parsed statement, whose values are literals; ``None`` if it is not recognised."""
    cut = _cut(text)
    if cut is None or not cut.words or _COMPLEX & set(cut.words) or cut.words.count("select") > 1:
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
        # SOUND BECAUSE: no functions are used except those in ``_PLAIN``, so it depends only on the
        # version of a row whether the row matches. If a row matches before and after the statement,
        # it therefore also matches in the snapshot of the statement.
        if after == "(" and NAME.fullmatch(word) and word not in _PLAIN:
            return None
    rest = words[end:]
    strengths = {after for word, after in pairwise(rest) if word == "for"}
    equal, among = sought(cut.tokens[at + 1 : end], alias)
    return Statement(
        kind="select",
        table=table,
        alias=alias,
        source=cut.between(begin, end),
        equal=equal,
        among=among,
        cut=bool({"limit", "offset", "fetch", "skip"} & set(rest)),
        skips="skip" in rest,
        # SOUND BECAUSE: if the list begins with an aggregate, its value is computed from all rows.
        # If the list had other expressions with columns, the statement would need GROUP BY.
        sums=words[1] in _SUMS and words[2] == "(" and not {"over", "group"} & set(words),
        lock=lock_of(strengths),
        returned=tuple(_listed(cut, 1, begin - 1)),
        where=cut.condition(at + 1, end),
    )


def lookup(text: str, keys: Callable[[str], Collection[frozenset[str]]]) -> tuple[int | None, bool]:
    """Parse the condition of a SELECT, which may join other tables by their unique keys.

    Args:
        text: the text of the SELECT, in which values are literals.
        keys: a function that returns the unique keys of a table, whose name is written as in the
            SELECT.

    Returns:
        The result of :meth:`Statement.looked_up` for the first table, or ``None`` if the SELECT is
        not recognised; and whether the SELECT skips locked rows.
    """
    skips = _SKIPS.search(text) is not None
    cut = _cut(text)
    if cut is None:
        return None, skips
    words = cut.words
    if (_COMPLEX - {"join"}) & set(words) or words.count("select") != 1 or words.count("from") != 1:
        return None, skips
    begin = words.index("from") + 1
    end = next((n for n in range(begin, len(words)) if words[n] in _ENDS), len(words))
    where = words.index("where", begin, end) if "where" in words[begin:end] else end
    named = cut.table(begin)
    at = named[2] if named is not None else end
    if named is None or not all(
        _joins(cut, first, last, keys) for first, last in _on(cut, at, where)
    ):
        return None, skips
    equal, among = sought(cut.tokens[where + 1 : end], named[1])
    found = Statement(kind="select", table=named[0], alias=named[1], equal=equal, among=among)
    return found.looked_up(keys(named[0])), skips


def _on(cut: _Text, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the positions at which each JOIN clause begins and ends.

    The words before the next JOIN, such as LEFT, are included in the range of the previous clause.
    """
    joins = [n for n in range(begin, end) if cut.words[n] == "join"]
    starts = [begin, *joins[1:]]
    for n, start in enumerate(starts):
        last = end if n + 1 == len(starts) else starts[n + 1]
        if start < last:
            yield start, last


def _joins(
    cut: _Text, begin: int, end: int, keys: Callable[[str], Collection[frozenset[str]]]
) -> bool:
    """Return whether a JOIN clause finds at most one row, because it equates a whole unique key.

    Args:
        cut: the statement.
        begin: the position of the first token of the clause.
        end: the position after the last token of the clause.
        keys: a function that returns the unique keys of a table.
    """
    words = cut.words
    while end > begin and words[end - 1] in ("left", "inner", "outer"):
        end -= 1  # these words belong to the next JOIN clause
    at = next((n for n in range(begin, end) if words[n] == "join"), end)
    if set(words[begin:at]) - {"left", "inner", "outer"}:
        return False
    named = cut.table(at + 1)
    if named is None or words[named[2] : named[2] + 1] != ["on"]:
        return False
    table, alias, on = named
    found = set()
    for part in conjuncts(cut.tokens[on + 1 : end]):
        place = part.index("=") if part.count("=") == 1 else 0
        for column, other in ((part[:place], part[place + 1 :]), (part[place + 1 :], part[:place])):
            name = column_of(column, alias)
            if name and len(column) > 1 and len(other) > 1 and not column_of(other, alias):
                found.add(name)
    return any(key <= found for key in keys(table))


def _write(cut: _Text) -> Statement | None:
    words = cut.words
    at = 2 if _WRITES[words[0]] else 1
    if at == 2 and words[1:2] != [_WRITES[words[0]]]:
        return None
    named = cut.table(at)
    # SOUND BECAUSE: the server reports only the rows that were written. Statements with a subquery,
    # which also read rows, are therefore not recognised.
    if named is None or {"select", "using"} & set(words) or words[1:].count("from") > at - 1:
        return None
    returned: tuple[str, ...] = ()
    if "returning" in words:
        begin = words.index("returning") + 1
        returned = tuple(_listed(cut, begin, len(words)))
    end = words.index("returning") if returned else len(words)
    begin = words.index("where") + 1 if "where" in words else end
    equal, among = sought(cut.tokens[begin:end], named[1])
    return Statement(
        kind=words[0],  # type: ignore[arg-type]
        table=named[0],
        alias=named[1],
        equal=equal,
        among=among,
        returned=returned,
        sets=tuple(_set(cut)) if words[0] == "update" else (),
        where=cut.condition(begin, end),
        upserts="conflict" in words,
    )


def _set(cut: _Text) -> Iterator[str]:
    """Yield the columns that an UPDATE sets, either alone or in a list in parentheses."""
    begin = cut.words.index("set") + 1 if "set" in cut.words else len(cut.words)
    end = cut.words.index("where") if "where" in cut.words else len(cut.words)
    for first, last in split(cut.tokens, begin, end):
        equals = next((n for n in range(first, last) if cut.tokens[n] == "="), first)
        for name in cut.tokens[first:equals]:
            if NAME.fullmatch(name):
                yield name if name.startswith('"') else name.lower()


def _listed(cut: _Text, begin: int, end: int) -> Iterator[str]:
    """Yield the members of a list that commas separate, as written."""
    for first, last in split(cut.tokens, begin, end):
        yield cut.between(first, last)
