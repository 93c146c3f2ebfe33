"""Finds out what a statement does, and where a SELECT takes further columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.observe.sql.lexer import Token
from isolang.observe.unseen import (
    CONDITIONS,
    COPIED,
    LOADED,
    PROCEDURES,
    SHAPES,
    SUBQUERIES,
    TWO_PHASES,
)

Kind: TypeAlias = Literal[
    "select", "insert", "update", "delete", "begin", "commit", "rollback", "savepoint", "release",
    "back", "level", "set", "use", "definition", "call", "quiet", "other",
]  # fmt: skip

AGGREGATES: Final = frozenset({
    "count", "sum", "min", "max", "avg", "bit_and", "bit_or", "bit_xor", "std", "stddev",
    "variance", "group_concat", "json_arrayagg", "json_objectagg", "stddev_pop", "stddev_samp",
    "var_pop", "var_samp", "median",
})  # fmt: skip
_JOINS: Final = frozenset({"join", "inner", "left", "right", "cross", "straight_join"})
_JOIN_KINDS: Final[dict[str, Literal["left", "inner", "comma"]]] = {
    "left": "left", "join": "inner", "inner": "inner", "cross": "comma",
}  # fmt: skip
_CLAUSES: Final = frozenset({
    "where", "group", "having", "order", "limit", "offset", "fetch", "for", "lock", "window",
    "union", "intersect", "except", "minus", "into", "procedure",
})  # fmt: skip
_NO_ALIASES: Final = (
    _CLAUSES | _JOINS | frozenset({
        "on", "using", "as", "force", "use", "ignore", "partition", "natural", "set", "values",
        "value", "select", "returning",
    })
)  # fmt: skip
_QUIET: Final = frozenset({"show", "help", "kill", "check", "optimize", "repair", "binlog",
                           "deallocate", "prepare", "flush", "reset", "purge", "cache", "signal",
                           "resignal", "get", "shutdown", "backup", "change", "stop",
                           "slave", "describe", "desc"})  # fmt: skip
_DEFINITIONS: Final = frozenset({
    "create", "alter", "drop", "rename", "truncate", "grant", "revoke", "install", "uninstall",
    "lock", "unlock",
})  # fmt: skip
_CONSTANTS: Final = frozenset({"null", "default", "true", "false", "current_timestamp"})
_CONNECTORS: Final = frozenset({"xor", "||"})  # what binds less tightly than AND, besides OR


class SourceTable(Struct, frozen=True):
    """A table in FROM.

    Attributes:
        schema: the name of its schema; empty if the statement does not name one.
        alias: how SQL names its columns.
        join: how it is joined with the tables before it; empty for the first one.
        on: the begin and end of the condition by which it is joined.
    """

    schema: str
    name: str
    alias: str
    join: Literal["", "inner", "left", "comma", "other"] = ""
    on: tuple[int, int] = (0, 0)


class RowLimit(Struct, frozen=True):
    """LIMIT of a statement.

    Attributes:
        count: the position of the token with the largest number of rows; 0 for other forms.
        offset: the position of the token with the number of rows to skip; 0 if there is none.
    """

    count: int = 0
    offset: int = 0


class SentPlan(Struct, frozen=True):
    """The effects of a statement.

    Attributes:
        sources: the tables that it reads, or the one that it changes.
        place: for a SELECT, the number of the token in front of which it takes further columns.
        aggregates: whether a row of its answer stands for many rows.
        where: the begin and end of its condition.
        limit: how many rows it takes at most; ``None`` without LIMIT.
        locks: how it locks what it reads; empty if it does not.
        skips: whether it leaves out rows that are locked.
        unseen: the kind or detail that it counts as, besides what is seen.
        partial: why its condition does not say which rows it found; empty if it does.
        name: the savepoint, level or way of an INSERT.
        computes: whether an UPDATE depends on values of the row besides its condition.
        functions: the names of the functions that it calls.
        restarts: whether it ends its transaction, although another one may be open behind it.
        order: the begin and end of the expressions of ORDER BY.
        groups: whether its rows are those of GROUP BY.
        temporary: the schemas and names of tables that it creates as temporary ones, drops or
            alters.
        renames: whether it alters them, and so may rename them.
    """

    kind: Kind
    sources: tuple[SourceTable, ...] = ()
    place: int = 0
    aggregates: bool = False
    where: tuple[int, int] = (0, 0)
    limit: RowLimit | None = None
    locks: Literal["", "update", "share"] = ""
    skips: bool = False
    unseen: str = ""
    partial: str = ""
    name: str = ""
    computes: bool = False
    functions: tuple[str, ...] = ()
    restarts: bool = False
    order: tuple[int, int] = (0, 0)
    groups: bool = False
    temporary: tuple[tuple[str, str], ...] = ()
    renames: bool = False


class _OtherFormError(Exception):
    """Raised for a statement of another form; the message is what it counts as."""


def plan_of(part: Sequence[Token], text: str) -> SentPlan:
    """Return what a statement does.

    Args:
        text: the text in which the positions of the tokens are.
    """
    reader = _Reader(part, text)
    functions = tuple(
        token.text.strip('"')
        for token, following in pairwise(part)
        if following.text == "(" and token.kind in ("word", "quoted")
    )
    try:
        made = _plan(reader)
    except _OtherFormError as error:
        kind: Kind = "select" if reader.word(0) == "select" else "other"
        if reader.word(0) in ("update", "delete"):
            kind = "update" if reader.word(0) == "update" else "delete"
        made = SentPlan(kind, unseen=str(error))
    return replace(made, functions=functions)


class _Reader:
    """The tokens of a statement, and how deep each is in parentheses."""

    def __init__(self, part: Sequence[Token], text: str) -> None:
        self.part, self._text = part, text
        self.depth: list[int] = []
        depth = 0
        for token in part:
            depth -= token.text == ")" and token.kind == "mark"
            self.depth.append(depth)
            depth += token.text == "(" and token.kind == "mark"

    def __len__(self) -> int:
        return len(self.part)

    def word(self, at: int) -> str:
        """Return the word at a position; empty if it is not a word."""
        known = 0 <= at < len(self.part) and self.part[at].kind == "word"
        return self.part[at].text if known else ""

    def mark(self, at: int) -> str:
        """Return the operator or punctuation at a position; empty if there is none."""
        known = 0 <= at < len(self.part) and self.part[at].kind in ("mark", "operator")
        return self.part[at].text if known else ""

    def is_name(self, at: int) -> bool:
        return at < len(self.part) and self.part[at].kind in ("word", "quoted")

    def name(self, at: int) -> str:
        """Return the name at a position as it is written, without its quotes."""
        raw = self.raw(at)
        if raw[:1] in ("`", '"'):
            return raw[1:-1].replace(raw[0] * 2, raw[0])
        return raw

    def raw(self, at: int) -> str:
        """Return the text of the token at a position."""
        return self._text[self.part[at].start : self.part[at].end]

    def has(self, *words: str) -> bool:
        """Return whether any of the words occurs."""
        return any(token.kind == "word" and token.text in words for token in self.part)

    def find(self, words: frozenset[str] | set[str], begin: int, end: int) -> int:
        """Return the position of the first of some words outside parentheses, or the end."""
        for at in range(begin, end):
            if not self.depth[at] and self.word(at) in words and self.mark(at - 1) != ".":
                return at
        return end

    def table(self, at: int) -> tuple[str, str, int]:
        """Return the schema and name of the table named at a position, and the position behind."""
        if self.mark(at + 1) == "." and self.is_name(at + 2):
            return self.name(at), self.name(at + 2), at + 3
        return "", self.name(at), at + 1

    def source(self, at: int) -> tuple[SourceTable, int]:
        """Return the table whose name begins at a position, and the position behind it."""
        if not self.is_name(at):
            raise _OtherFormError("FROM of another shape")
        schema, name, at = self.table(at)
        alias = f"{_quoted(schema)}.{_quoted(name)}" if schema else _quoted(name)
        is_old = self.word(at) == "for" and self.word(at + 1) in ("system_time", "portion")
        if self.mark(at) == "(" or self.word(at) == "partition" or is_old:
            raise _OtherFormError("FROM of another shape")
        if self.word(at) == "as" and self.is_name(at + 1):
            return SourceTable(schema, name, self.raw(at + 1)), self._behind_hints(at + 2)
        if self.is_name(at) and self.word(at) not in _NO_ALIASES:
            return SourceTable(schema, name, self.raw(at)), self._behind_hints(at + 1)
        return SourceTable(schema, name, alias), self._behind_hints(at)

    def _behind_hints(self, at: int) -> int:
        while self.word(at) in ("force", "use", "ignore") and self.word(at + 1) in ("index", "key"):
            at = next(
                (k + 1 for k in range(at, len(self)) if self.mark(k) == ")" and not self.depth[k]),
                len(self),
            )
        return at


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _plan(reader: _Reader) -> SentPlan:
    first, second = reader.word(0), reader.word(1)
    if first == "begin" and second == "not":
        return SentPlan("call", unseen=PROCEDURES)
    if first == "begin" or (first == "start" and second == "transaction"):
        return SentPlan("begin", restarts=True)
    if first in ("commit", "rollback"):
        if first == "rollback" and "to" in (second, reader.word(2)):
            return SentPlan("back", name=reader.name(len(reader) - 1).lower())
        return SentPlan("commit" if first == "commit" else "rollback")
    if first in ("savepoint", "release"):
        return SentPlan("savepoint" if first == "savepoint" else "release",
                    name=reader.name(len(reader) - 1).lower())  # fmt: skip
    if first == "set":
        return _setting(reader)
    if first == "use":
        return SentPlan("use", name=reader.name(1) if len(reader) > 1 else "")
    if first == "xa":
        return SentPlan("other", unseen=TWO_PHASES)
    if first in ("explain", "analyze", "do"):
        # ANALYZE SELECT runs the statement, and EXPLAIN may run its subqueries.
        words = [token.text for token in reader.part[1:] if token.kind == "word"]
        runs = first != "explain" or words.count("select") > 1 or "with" in words
        reads = runs and reader.has("select", "update", "insert", "replace", "delete", "with")
        return SentPlan("other" if reads else "quiet", unseen="EXPLAIN ANALYZE" if reads else "")
    if first in _QUIET:
        return SentPlan("quiet", unseen=SUBQUERIES if reader.has("select") else "")
    if first in _DEFINITIONS:
        return _definition(reader)
    if first == "call":
        return SentPlan("call", unseen=PROCEDURES)
    if first == "select":
        return _select(reader)
    if first in ("insert", "replace"):
        return _insert(reader)
    if first in ("update", "delete"):
        return _change(reader)
    if first == "load":
        return SentPlan("insert", unseen=LOADED)
    if first == "handler":
        return SentPlan("other", unseen="FROM of another shape")
    if first == "values":
        return SentPlan("other", unseen=SUBQUERIES) if reader.has("select") else SentPlan("quiet")
    details = {"with": "WITH", "table": "TABLE", "execute": "PREPARE and EXECUTE in SQL"}
    return SentPlan("other", unseen=details.get(first, SHAPES))


def _definition(reader: _Reader) -> SentPlan:
    """Return what a change of definitions does.

    Only a CREATE TEMPORARY TABLE has a name.
    """
    first, temporary = reader.word(0), list[tuple[str, str]]()
    copies = first == "create" and reader.has("select") and reader.has("table")
    name = ""
    at = next((k + 1 for k in range(1, 6) if reader.word(k) in ("table", "tables")), len(reader))
    at += 2 * (reader.word(at) == "if")
    at += reader.word(at) == "exists"
    if first == "create" and reader.has("temporary") and reader.is_name(at):
        schema, name, _ = reader.table(at)
        temporary.append((schema, name))
    while first in ("drop", "alter", "rename") and reader.is_name(at):
        schema, changed, at = reader.table(at)
        temporary.append((schema, changed))
        at += 1
    return SentPlan("definition", unseen=COPIED if copies else "", name=name,
                    restarts=first == "lock", temporary=tuple(temporary),
                    renames=first in ("alter", "rename"))  # fmt: skip


def _follows(reader: _Reader, word: str, other: str) -> bool:
    return any(reader.word(k) == word and reader.word(k + 1) == other for k in range(len(reader)))


def _setting(reader: _Reader) -> SentPlan:
    if reader.word(1) == "statement":
        at = reader.find({"for"}, 2, len(reader))
        return SentPlan("other", unseen=SHAPES if at < len(reader) else "")
    if reader.has("select"):
        return SentPlan("other", unseen=SUBQUERIES)
    scope = reader.word(1) if reader.word(1) in ("session", "local", "global") else ""
    if reader.word(1 + bool(scope)) == "transaction":
        words = [token.text for token in reader.part]
        level = ""
        if "level" in words:
            level = " ".join(words[words.index("level") + 1 :]).partition(",")[0].strip()
        return SentPlan("level", name=f"{scope or 'next'}:{level}")
    return SentPlan("set")


def _limit(reader: _Reader, at: int, end: int) -> RowLimit | None:
    """Return the LIMIT at a position; ``None`` at the end."""
    if at >= end:
        return None
    kinds = [reader.part[k].kind for k in range(at + 1, end)]
    if reader.word(at) == "limit" and {*kinds[::2]} <= {"number", "parameter"}:
        if len(kinds) == 1:
            return RowLimit(at + 1)
        if len(kinds) == 3 and reader.mark(at + 2) == ",":
            return RowLimit(at + 3, at + 1)
        if len(kinds) == 3 and reader.word(at + 2) == "offset":
            return RowLimit(at + 1, at + 3)
    return RowLimit()


def _select(reader: _Reader) -> SentPlan:
    end = len(reader)
    if any(reader.word(at) in ("select", "with") for at in range(1, end)):
        raise _OtherFormError(SUBQUERIES)
    if reader.word(1) in ("distinct", "distinctrow"):
        raise _OtherFormError("SELECT DISTINCT")
    if reader.has("over", "sql_calc_found_rows"):
        raise _OtherFormError(SHAPES)
    begin = reader.find({"from"}, 0, end)
    into = reader.find({"into", "procedure"}, 0, end)
    if into < end:
        raise _OtherFormError("FROM of another shape")
    if begin == end:
        return SentPlan("select")
    sources, at = _sources(reader, begin + 1)
    if len(sources) > 1 and "natural" in (reader.word(k) for k in range(begin, at)):
        raise _OtherFormError("FROM of another shape")
    names = ("where", "group", "having", "order", "limit", "offset", "fetch", "for", "lock")
    places = {name: reader.find({name}, at, end) for name in names}
    if min(places.values()) != at and at < end:
        raise _OtherFormError("FROM of another shape")
    ends = {name: min([p for p in places.values() if p > places[name]], default=end)
            for name in names}  # fmt: skip
    words = [reader.word(k) if reader.mark(k + 1) == "(" else "" for k in range(1, begin)]
    calls = {*words, *(reader.word(k) for k in range(begin, end) if reader.mark(k + 1) == "(")}
    aggregates = places["group"] < end or bool(calls & AGGREGATES)
    partial = CONDITIONS if places["having"] < end else ""
    cut = min(places["limit"], places["offset"], places["fetch"])
    locking = min(places["for"], places["lock"])
    tail = {reader.word(k) for k in range(locking, end)}
    return SentPlan(
        "select", sources, begin, aggregates,
        (places["where"] + 1, ends["where"]) if places["where"] < end else (0, 0),
        _limit(reader, cut, min(p for p in (locking, end) if p > cut) if cut < end else end),
        "" if locking == end else "update" if "update" in tail else "share",
        "skip" in tail,
        SHAPES if "group_concat" in calls or "rollup" in {reader.word(k) for k in range(end)}
        else "",
        partial,
        order=(places["order"] + 2, ends["order"]) if places["order"] < end else (0, 0),
        groups=places["group"] < end,
    )  # fmt: skip


def _sources(reader: _Reader, at: int) -> tuple[tuple[SourceTable, ...], int]:
    """Return the tables of FROM, and the position behind them."""
    source, at = reader.source(at)
    sources = [source]
    while True:
        word = reader.word(at)
        join: Literal["inner", "left", "comma", "other"] = "other"
        if reader.mark(at) == ",":
            join = "comma"
            at += 1
        elif word in _JOINS:
            join = _JOIN_KINDS.get(word, "other")
            while reader.word(at) in ("inner", "left", "right", "outer", "cross"):
                at += 1
            at += 1
        else:
            break
        source, at = reader.source(at)
        sources.append(replace(source, join=join))
        if reader.word(at) == "using":
            raise _OtherFormError("FROM of another shape")
        if reader.word(at) == "on":
            begin = at + 1
            at = min(
                reader.find(_CLAUSES | _JOINS, at + 1, len(reader)),
                next((k for k in range(at, len(reader))
                      if reader.mark(k) == "," and not reader.depth[k]), len(reader)),
            )  # fmt: skip
            sources[-1] = replace(sources[-1], on=(begin, at))
    if reader.word(at) == "natural":
        raise _OtherFormError("FROM of another shape")
    return tuple(sources), at


def _insert(reader: _Reader) -> SentPlan:
    head = [reader.word(k) for k in range(4)]
    way = "ignore" if "ignore" in head else ""
    if reader.has("duplicate") and _follows(reader, "duplicate", "key"):
        way = "update"
    elif head[0] == "replace":
        way = "replace"
    unseen = SUBQUERIES if reader.has("select", "with") else ""
    at = 1
    while reader.word(at) in ("low_priority", "delayed", "high_priority", "ignore", "into"):
        at += 1
    if not reader.is_name(at):
        raise _OtherFormError(SHAPES)
    schema, name, _ = reader.table(at)
    source = SourceTable(schema, name, _quoted(name))
    return SentPlan("insert", (source,), unseen=unseen, name=way)


def _change(reader: _Reader) -> SentPlan:
    """Return what an UPDATE or DELETE does."""
    kind: Kind = "update" if reader.word(0) == "update" else "delete"
    end, at = len(reader), 1
    while reader.word(at) in ("low_priority", "ignore", "quick"):
        at += 1
    at += reader.word(at) == "from" and kind == "delete"
    source, at = reader.source(at)
    expected = {"set"} if kind == "update" else {"where", "order", "limit", "returning"}
    if at < end and reader.word(at) not in expected:
        raise _OtherFormError("other tables of UPDATE and DELETE")
    where = reader.find({"where"}, at, end)
    returning = reader.find({"returning"}, at, end)
    limit = reader.find({"limit"}, at, returning)
    order = reader.find({"order"}, at, limit)
    cut = min(order, limit, returning)
    computes = kind == "update" and _computes(reader, at + 1, min(where, cut))
    return SentPlan(
        kind, (source,), computes=computes or reader.has("returning"),
        where=(where + 1, cut) if where < end else (0, 0),
        unseen=SUBQUERIES if reader.has("select", "with") else "",
        limit=_limit(reader, limit, returning),
        order=(order + 2, limit) if order < limit else (0, 0),
    )  # fmt: skip


def _computes(reader: _Reader, begin: int, end: int) -> bool:
    """Return whether SET uses values of the row."""
    is_value = False
    for at in range(begin, end):
        if not reader.depth[at] and reader.mark(at) in ("=", ","):
            is_value = reader.mark(at) == "="
        elif is_value and reader.is_name(at) and reader.mark(at + 1) != "(":
            is_column = reader.word(at) not in _CONSTANTS
            if is_column:
                return True
    return False


def is_connected_by_and(part: Sequence[Token], begin: int, end: int) -> bool:
    """Return whether each part of a condition between AND must hold.

    SOUND BECAUSE: XOR, and || unless it concatenates, bind less tightly than AND.
    """
    return not any(part[at].text in _CONNECTORS for at in range(begin, end))


def names_only_schemas(part: Sequence[Token], schemas: Collection[str]) -> bool:
    """Return whether each table that a SELECT reads, also in its subqueries, is in a schema."""
    for at, token in enumerate(part):
        if token.kind != "word" or token.text not in ("from", "join"):
            continue
        behind = [following.text.strip('"') for following in part[at + 1 : at + 6]]
        if behind[:1] == ["("]:
            continue
        if len(behind) < 3 or behind[1] != "." or behind[0] not in schemas or "," in behind[3:]:
            return False
    return True


def hidden_text(
    plan: SentPlan,
    part: Sequence[Token],
    text: str,
    images: Sequence[str],
    lists: tuple[int, str] | None = None,
) -> str:
    """Return the text of a SELECT with one more column for the rows of each of its tables.

    Args:
        lists: the number of the token in front of which the columns go, and one for the rows of
            query blocks.
    """
    columns = []
    for image in images:
        shown = image
        if plan.aggregates:
            shown = f"CONCAT(COUNT(*),0x3B,IFNULL(GROUP_CONCAT({image} SEPARATOR ';'),''))"
        columns.append(f"CAST({shown} AS BINARY)")
    place = plan.place
    if lists is not None:
        place = lists[0]
        columns.append(lists[1])
    at = part[place].start if place < len(part) else len(text)
    changed = f"{text[:at]},{','.join(columns)} {text[at:]}"
    if plan.aggregates or lists is not None:
        return with_long_lists(changed)
    return changed


def with_long_lists(text: str) -> str:
    """Return a statement whose lists of rows the server does not cut off."""
    return f"SET STATEMENT group_concat_max_len={_LONGEST_LIST} FOR {text}"


_LONGEST_LIST: Final = 67_108_864  # the longest list of rows, in bytes
