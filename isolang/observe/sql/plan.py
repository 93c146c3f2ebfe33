"""Plans how a statement can also return the versions of the rows it reads or writes.

A plan states which columns to add to a statement, and where. If no plan is certain to be right, the
statement remains unchanged, and is counted under the kind of its unseen reads or writes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from isolang.history.statements import LOCKS, Lock
from isolang.observe.sql.lexer import Token, called_functions, catalogue_name, is_natural
from isolang.observe.sql.predicates import conjuncts
from isolang.observe.unseen import (
    CATALOGUE,
    COPIED,
    COPY,
    CURSORS,
    PROCEDURES,
    SHAPES,
    SUBQUERIES,
    TWO_PHASES,
)

StatementKind: TypeAlias = Literal[
    "select", "insert", "update", "delete", "merge", "compound", "begin", "commit", "rollback",
    "savepoint", "release", "back", "level", "quiet", "forget", "ddl", "routine", "truncate",
    "other",
]  # fmt: skip
"""The effect of a statement.

``compound`` reads and writes in several queries; ``forget`` may change the meaning of names;
``back`` is ROLLBACK TO; ``routine`` defines a function or procedure, which changes no table.
"""

DEFINE: Final = frozenset({"ddl", "routine"})
"""The kinds of statements that may change what names and conditions mean."""

JoinKind: TypeAlias = Literal["", "left", "inner", "comma", "other"]
JOINS: Final = "joins"
OF_OTHER_SHAPE: Final = frozenset({
    SHAPES, SUBQUERIES, "GROUPING SETS", "SELECT DISTINCT", "UNION, INTERSECT and EXCEPT", "WITH",
    "subqueries in FROM",
})  # fmt: skip
"""The kinds of SELECT that may be split into query blocks (:mod:`isolang.observe.sql.blocks`)."""
LEAVES_OUT_ROWS: Final = frozenset({"HAVING", "DISTINCT ON", "functions"})
"""The kinds of SELECT whose result does not have all rows that satisfy their condition."""

CLAUSES: Final = frozenset({
    "where", "group", "having", "order", "limit", "offset", "fetch", "for", "window", "union",
    "intersect", "except", "returning", "on",
})  # fmt: skip
_NOT_ALIASES: Final = CLAUSES | {
    "join",
    "inner",
    "left",
    "right",
    "full",
    "cross",
    "natural",
    "using",
    "set",
    "values",
    "default",
    "select",
    "overriding",
    "tablesample",
    "as",
    "when",
    "do",
    "with",
}
_QUIET: Final = frozenset({
    "show", "listen", "unlisten", "notify", "deallocate", "explain", "vacuum", "analyze",
    "checkpoint", "lock", "values", "move", "close",
})  # fmt: skip
_DDL: Final = frozenset({
    "create", "alter", "drop", "grant", "revoke", "comment", "reindex", "cluster", "refresh",
    "security", "import",
})  # fmt: skip
_CATALOGUE_SCHEMAS: Final = frozenset({"pg_catalog", "information_schema", "pg_toast"})
_QUERIES: Final = frozenset({"select", "delete", "update"})
_ROUTINES: Final = frozenset({"function", "procedure", "routine"})
_OTHERS: Final = {
    "with": "WITH", "copy": COPY, "declare": CURSORS, "fetch": CURSORS,
    "prepare": "PREPARE and EXECUTE in SQL", "execute": "PREPARE and EXECUTE in SQL",
    "call": PROCEDURES, "do": PROCEDURES, "table": "TABLE",
}  # fmt: skip
_LEVEL: Final = re.compile(
    r"isolation level (serializable|repeatable read|read committed|read uncommitted)"
)
_INCOMPLETE: Final = frozenset({
    "set", "where", "and", "or", "not", "in", "values", "between", "like", "is", "from", "into",
    "update", "by", "returning", "on", "as", "using", "limit", "offset", "when", "then", "else",
    "case", "select", "distinct", "having", "join",
})  # fmt: skip


class StatementTable(Struct, frozen=True, kw_only=True):
    """A table in a statement that returns the table's row versions in an additional column.

    Attributes:
        how: ``row`` if each result row contains one row of the table, ``all`` if the rows are
            collected in an array, ``write`` or ``delete``.
        join: ``left`` or ``inner`` if JOIN … ON joins the table to the tables before it; ``comma``
            if only WHERE does; ``other`` for other joins; empty for the first table.
        on: the token range of the join condition.
        text: the token range of a subquery's FROM and WHERE, if the column needs them.
        cut: the position of the LIMIT that may leave out rows of a query block; 0 if there is none,
            and -1 if it is not certain which rows a LIMIT leaves out.
    """

    name: str
    alias: str
    how: Literal["row", "all", "write", "delete"]
    where: tuple[int, int] = (0, 0)
    text: tuple[int, int] = (0, 0)
    join: JoinKind = ""
    on: tuple[int, int] = (0, 0)
    cut: int = 0


class StatementPlan(Struct, frozen=True, kw_only=True):
    """The effect of a statement, and how to make it return row versions.

    Attributes:
        sources: the tables whose row versions are returned by the statement.
        place: the position of the token that columns are added before.
        silent: whether the statement returns no rows of its own, so added columns need a RETURNING
            clause.
        partial: why the condition alone does not determine the rows returned; empty if it does.
        limit: the position of LIMIT's token; 0 if there is none.
        offset: the position of OFFSET's token; 0 if there is none.
        body: for a SELECT, the token range of FROM and WHERE.
        order: the token range of ORDER BY.
        lock: how the statement locks the rows of its only table against writers.
        locked: the aliases of the tables whose rows a SELECT locks, as the catalogue stores them;
            ``None`` if it locks no rows, or some of them FOR KEY SHARE.
        single: whether a SELECT always returns one row.
        claims: the column that a subquery with SKIP LOCKED uses to name the rows of an UPDATE or
            DELETE; empty for other statements.
        chosen: the columns by which a write finds its rows in those of another query, such as
            ``id`` in UPDATE job … FROM next WHERE job.id = next.id.
        keeps_chosen: whether that query has locked the rows of the same table.
        computes: whether an UPDATE uses columns in the expressions of SET.
        assigned: the columns assigned by SET.
        returned: the columns that RETURNING uses; ``*`` stands for all columns, and ``old.`` for
            those of the row that is replaced.
        upserts: whether an INSERT may update rows.
        proposed: for an INSERT or MERGE of VALUES, the number of rows; 0 if unknown.
        may_skip: whether an INSERT may leave out proposed rows, because of ON CONFLICT.
        name: the name of a savepoint, an isolation level, or a function that is defined.
        wrapped: the tables of query blocks; their row versions are returned by an enclosing
            statement.
    """

    kind: StatementKind
    sources: tuple[StatementTable, ...] = ()
    place: int = 0
    silent: bool = False
    unseen: tuple[str, ...] = ()
    partial: str = ""
    limit: int = 0
    offset: int = 0
    body: tuple[int, int] = (0, 0)
    order: tuple[int, int] = (0, 0)
    locks: bool = False
    lock: Lock = ""
    locked: frozenset[str] | None = None
    single: bool = False
    skips: bool = False
    claims: str = ""
    chosen: frozenset[str] = frozenset()
    keeps_chosen: bool = False
    computes: bool = False
    assigned: frozenset[str] = frozenset()
    returned: frozenset[str] = frozenset()
    upserts: bool = False
    proposed: int = 0
    may_skip: bool = False
    name: str = ""
    names: frozenset[str] = frozenset()
    tables: tuple[str, ...] = field(default=())
    wrapped: tuple[StatementTable, ...] = ()


class RefusedError(Exception):
    """Raised when a statement must remain unchanged; the message is the kind of unseen activity."""


def plan(part: Sequence[Token], aggregates: Collection[str]) -> StatementPlan:
    """Return the plan of a statement."""
    try:
        found = _plan_of(part, aggregates)
    except RefusedError as refused:
        found = StatementPlan(kind="other", unseen=(str(refused),))
    if found.sources and not _is_complete(part, found):
        found = StatementPlan(kind="other", unseen=(SHAPES,))
    return StatementPlan(
        **{
            name: getattr(found, name)
            for name in StatementPlan.__struct_fields__
            if name != "names"
        },
        names=called_functions(part),
    )


def _is_complete(part: Sequence[Token], found: StatementPlan) -> bool:
    """Return whether the server's message about any syntax error is the same despite added text."""
    last = part[found.place - 1]
    if last.kind == "operator":
        return last.text == "*"
    if last.kind == "word":
        return last.text not in _INCOMPLETE
    return last.text not in (",", ".", "(")


class Reader:
    """The tokens of one statement, with the number of parentheses around each token."""

    def __init__(self, part: Sequence[Token]) -> None:
        self.part = part
        self.depth: list[int] = []
        depth = 0
        for one in part:
            depth -= one.text == ")"
            self.depth.append(depth)
            depth += one.text == "("

    def word(self, at: int) -> str:
        """Return a word in lower case; empty if the token is not a word."""
        return (
            self.part[at].text if 0 <= at < len(self.part) and self.part[at].kind == "word" else ""
        )

    def text(self, at: int) -> str:
        """Return the text of a token; empty after the last token."""
        return self.part[at].text if at < len(self.part) else ""

    def is_name(self, at: int) -> bool:
        """Return whether a token can be a name."""
        return at < len(self.part) and self.part[at].kind in ("word", "quoted")

    def find(self, words: Collection[str], begin: int, end: int, depth: int = 0) -> int:
        """Return the first position of any of the words at a depth; ``end`` if there is none."""
        for at in range(begin, end):
            if self.depth[at] == depth and self.word(at) in words:
                return at
        return end

    def find_text(self, text: str, begin: int, depth: int) -> int:
        """Return the first position of a text at a depth; the statement's end if there is none."""
        places = range(begin, len(self.part))
        return next(
            (n for n in places if self.depth[n] == depth and self.part[n].text == text),
            len(self.part),
        )

    def close(self, at: int) -> int:
        """Return the position after the parenthesis closing the one at a position."""
        depth = self.depth[at]
        behind = at + 1
        while behind < len(self.part) and not (
            self.depth[behind] == depth and self.part[behind].text == ")"
        ):
            behind += 1
        return behind + 1

    def find_from(self, begin: int, end: int, depth: int = 0) -> int:
        """Return the position of FROM; ``end`` if there is none. IS DISTINCT FROM is none."""
        at = self.find({"from"}, begin, end, depth)
        while at < end and self.word(at - 1) == "distinct":
            at = self.find({"from"}, at + 1, end, depth)
        return at

    def name(self, at: int) -> str:
        """Return the qualified name at a position; empty if there is none."""
        if not self.is_name(at):
            return ""
        name = self.text(at)
        while self.text(at + 1) == "." and self.is_name(at + 2):
            name += "." + self.text(at + 2)
            at += 2
        return name

    def table(self, at: int) -> tuple[str, str, int]:
        """Return a table's name, its alias, and the position after both.

        The name is empty if a function is called instead.
        """
        if self.word(at) == "only":
            at += 1
        if not self.is_name(at):
            raise RefusedError("FROM of another shape")
        name = self.part[at].text
        at += 1
        while self.text(at) == "." and self.is_name(at + 1):
            name += "." + self.part[at + 1].text
            at += 2
        if self.text(at) == "(":
            return "", "", self._alias(self.close(at), "")[1]
        if self.text(at) == "*":
            at += 1
        alias, at = self._alias(at, name)
        return name, alias, at

    def _alias(self, at: int, name: str) -> tuple[str, int]:
        if self.word(at) == "with":
            at += 2
        if self.word(at) == "as":
            at += 1
        elif not (self.is_name(at) and self.word(at) not in _NOT_ALIASES):
            return name, at
        if not self.is_name(at):
            raise RefusedError("FROM of another shape")
        alias = self.part[at].text
        at += 1
        if self.text(at) == "(":
            if name:
                raise RefusedError("columns that are renamed")
            at = self.close(at)
        return alias, at


def _plan_of(part: Sequence[Token], aggregates: Collection[str]) -> StatementPlan:
    word = part[0].text if part and part[0].kind == "word" else ""
    text = " ".join(t.text for t in part[:14])
    if word in ("begin", "start"):
        return StatementPlan(kind="begin", name=_level(text))
    if word in ("commit", "end", "rollback", "abort", "savepoint", "release", "prepare"):
        found = _control_plan(part, word, text)
        if found is not None:
            return found
    if word == "set":
        scoped = len(part) > 1 and part[1].text in ("transaction", "session")
        if scoped and "isolation" in text:
            return StatementPlan(kind="level", name=_level(text))
        return StatementPlan(kind="forget")
    if word in ("reset", "discard"):
        return StatementPlan(kind="forget")
    if word == "explain" and "analyze" in text:
        return StatementPlan(kind="other", unseen=("EXPLAIN ANALYZE",))
    if word == "with":
        names = _catalogue_tables(Reader(part), with_query_names(part))
        if names is not None:
            return StatementPlan(kind="quiet", unseen=(CATALOGUE,) if names else ())
    if word == "values" and any(t.kind == "word" and t.text == "select" for t in part):
        return StatementPlan(kind="other", unseen=(SUBQUERIES,))
    if word in _QUIET:
        return StatementPlan(kind="quiet")
    if word in _DDL:
        defined = _defined_routine(Reader(part))
        if defined is not None:
            return StatementPlan(kind="routine", name=defined)
        return StatementPlan(
            kind="ddl", unseen=(COPIED,) if _copies([t.text for t in part]) else ()
        )
    if word == "select":
        return _select_plan(Reader(part), aggregates)
    if word in ("insert", "update", "delete"):
        return _write_plan(Reader(part), word)
    if word == "merge":
        return _merge_plan(Reader(part))
    if word == "truncate":
        return StatementPlan(kind="truncate", tables=tuple(_truncated_tables(Reader(part))))
    return StatementPlan(kind="other", unseen=(_OTHERS.get(word, SHAPES),))


def _level(text: str) -> str:
    found = _LEVEL.search(text)
    return found[1] if found else ""


def _control_plan(part: Sequence[Token], word: str, text: str) -> StatementPlan | None:
    """Return the plan of a statement that ends a transaction or changes its savepoints."""
    second = part[1].text if len(part) > 1 else ""
    if second in ("prepared", "transaction") and (word == "prepare" or second == "prepared"):
        return StatementPlan(kind="other", unseen=(TWO_PHASES,))
    if word in ("commit", "end"):
        return StatementPlan(kind="commit", name="chain" if text.endswith("and chain") else "")
    if word in ("rollback", "abort"):
        if any(one.kind == "word" and one.text == "to" for one in part):
            return StatementPlan(kind="back", name=catalogue_name(part[-1].text))
        return StatementPlan(kind="rollback", name="chain" if text.endswith("and chain") else "")
    if word == "savepoint":
        return StatementPlan(kind="savepoint", name=catalogue_name(second))
    if word == "release":
        return StatementPlan(kind="release", name=catalogue_name(part[-1].text))
    return None


def _defined_routine(reader: Reader) -> str | None:
    """Return the new name of a function or procedure that a statement creates, alters or drops.

    The name is empty if none is new. Return ``None`` for other statements, and for CASCADE,
    which may drop columns and constraints that use the function.
    """
    word, end = reader.word(0), len(reader.part)
    at = 3 if (word, reader.word(1)) == ("create", "or") else 1
    if word not in ("create", "alter", "drop") or reader.word(at) not in _ROUTINES:
        return None
    if word == "create":
        at += 1
        while reader.text(at + 1) == ".":
            at += 2
        return catalogue_name(reader.text(at))
    if reader.word(end - 1) == "cascade":
        return None
    renamed = word == "alter" and (reader.word(end - 3), reader.word(end - 2)) == ("rename", "to")
    return catalogue_name(reader.text(end - 1)) if renamed else ""


def _copies(words: list[str]) -> bool:
    """Return whether a definition, given its words, stores the rows of a query."""
    if words[0] == "refresh":
        return True
    if "table" not in words[:4] and "materialized" not in words[:4]:
        return False
    return bool({"select", "execute"}.intersection(words)) or ("as", "table") in pairwise(words)


def _truncated_tables(reader: Reader) -> Iterator[str]:
    """Yield the tables of a TRUNCATE."""
    at = 1 + (reader.word(1) == "table")
    while at < len(reader.part) and reader.is_name(at):
        if reader.word(at) == "only":
            at += 1
        name = reader.text(at)
        at += 1
        while reader.text(at) == "." and reader.is_name(at + 1):
            name += "." + reader.text(at + 1)
            at += 2
        yield name
        at += reader.text(at) == "*"
        if reader.text(at) != ",":
            break
        at += 1


class FromTables(Struct):
    """The tables of a FROM clause, the unseen kinds, and whether joins affect the rows returned."""

    tables: list[tuple[str, str]] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    joined: bool = False
    mixed: bool = False
    joins: list[tuple[JoinKind, tuple[int, int]]] = field(default_factory=list)


_STRENGTHS: Final = (("update",), ("no", "key", "update"), ("share",))
_LOCKS: Final[Mapping[str, Lock]] = {
    "update": "update", "no": "no key update", "share": "share", "key": "key share",
}  # fmt: skip
_JOINS: Final = frozenset({"join", "left", "right", "inner", "full", "cross", "natural"})


def _join(reader: Reader, before: int, at: int, end: int) -> tuple[JoinKind, tuple[int, int]]:
    """Return the kind of a join, and the token range of its condition."""
    words = [reader.word(n) for n in range(max(before - 2, 0), before)]
    words = words[1:] if words[-1:] != ["outer"] else words[:1]
    if reader.text(before) == ",":
        return "comma", (0, 0)
    if reader.word(before) != "join" or reader.word(at) != "on":
        return "other", (0, 0)
    if words[-1:] in (["right"], ["full"], ["cross"], ["natural"]):
        return "other", (0, 0)
    stop = reader.find(_JOINS, at + 1, end, reader.depth[at])
    commas = [
        n for n in range(at, stop) if reader.text(n) == "," and reader.depth[n] == reader.depth[at]
    ]
    return "left" if words[-1:] == ["left"] else "inner", (at + 1, commas[0] if commas else stop)


def from_tables(reader: Reader, at: int, end: int) -> FromTables:
    """Return the tables between two positions of a FROM clause, and how they are joined."""
    found = FromTables()
    expected = True
    before = -1
    depth = reader.depth[at] if at < end else 0
    while at < end:
        word = reader.word(at)
        if expected:
            if word == "lateral":
                at += 1
                continue
            if reader.text(at) == "(":
                if reader.word(at + 1) not in ("select", "with", "values"):
                    raise RefusedError("joins in parentheses")
                found.unseen.append("subqueries in FROM")
                _, at = reader._alias(reader.close(at), "")
            else:
                name, alias, at = reader.table(at)
                if name:
                    found.tables.append((name, alias))
                    first = before < 0
                    found.joins.append(("", (0, 0)) if first else _join(reader, before, at, end))
                else:
                    found.joined = found.mixed = True
            expected = False
            continue
        if reader.depth[at] == depth and (reader.text(at) == "," or word == "join"):
            expected = found.joined = True
            before = at
        elif word == "tablesample":
            raise RefusedError("TABLESAMPLE")
        at += 1
    return found


def _select_plan(reader: Reader, aggregates: Collection[str]) -> StatementPlan:
    part, end = reader.part, len(reader.part)
    begin = reader.find_from(0, end)
    if reader.find({"into"}, 0, end) < end:
        return StatementPlan(kind="ddl", unseen=(COPIED,))
    if not any(reader.word(n) in ("from", "table") for n in range(end)):
        return StatementPlan(kind="quiet")
    if begin < end and _catalogue_tables(reader):
        return StatementPlan(kind="quiet", unseen=(CATALOGUE,))
    if reader.find({"union", "intersect", "except"}, 0, end) < end:
        raise RefusedError("UNION, INTERSECT and EXCEPT")
    if begin == end:
        return _plan_of_subqueries(reader)
    stop = reader.find(CLAUSES - {"on"}, begin + 1, end)
    found = from_tables(reader, begin + 1, stop)
    unseen = list(found.unseen)
    if any(reader.word(n) == "select" and not begin < n < stop for n in range(1, end)):
        unseen.append(SUBQUERIES)
    if found.tables and all(is_in_catalogue(name) for name, _ in found.tables):
        raise RefusedError(SUBQUERIES)
    distinct = reader.word(1) == "distinct"
    if distinct and reader.word(2) != "on":
        raise RefusedError("SELECT DISTINCT")
    grouped = reader.find({"group"}, stop, end) < end
    having = reader.find({"having"}, stop, end)
    aggregated = grouped or _calls_aggregate(
        reader, aggregates, [*range(1, begin), *range(having, end)]
    )
    if aggregated and distinct:
        raise RefusedError("SELECT DISTINCT")
    if grouped and any(t.text in ("rollup", "cube", "grouping") for t in part[stop:]):
        raise RefusedError("GROUPING SETS")
    if begin == 1:
        raise RefusedError("SELECT of no column")
    where = (0, 0)
    if reader.word(stop) == "where":
        where = (stop + 1, reader.find(CLAUSES - {"where", "on"}, stop + 1, end))
    partial = (
        "DISTINCT ON" if distinct
        else "HAVING" if having < end
        else "subqueries" if unseen
        else "functions" if found.mixed
        else JOINS if found.joined
        else ""
    )  # fmt: skip
    order = reader.find({"order"}, stop, end)
    order_end = reader.find({"limit", "offset", "fetch", "for"}, order, end)
    locks = reader.find({"for"}, stop, end)
    strengths = {reader.word(n + 1) for n in range(locks, end) if reader.word(n) == "for"}
    return StatementPlan(
        kind="select",
        sources=tuple(
            StatementTable(
                name=name,
                alias=alias,
                how="all" if aggregated else "row",
                where=where,
                join=join,
                on=on,
            )
            for (name, alias), (join, on) in zip(found.tables, found.joins, strict=True)
        ),
        place=begin,
        unseen=tuple(unseen),
        partial=partial,
        limit=_clause_position(
            reader, {"limit", "fetch"}, stop, aggregated=aggregated and not grouped
        ),
        offset=_clause_position(reader, {"offset"}, stop, aggregated=False),
        body=(begin, where[1] or stop),
        order=(order + 2, order_end) if order < end else (0, 0),
        locks=locks < end,
        single=aggregated and not grouped and having == end,
        lock=lock_of(strengths) if len(found.tables) == 1 else "",
        locked=_locked_aliases(reader, locks, [alias for _, alias in found.tables]),
        skips=any(reader.word(n) == "skip" for n in range(locks, end)),
        tables=tuple(name for name, _ in found.tables),
    )


def _locked_aliases(reader: Reader, at: int, aliases: Sequence[str]) -> frozenset[str] | None:
    """Return the aliases of the tables whose rows the clause at a position locks."""
    rest = [reader.text(n) for n in range(at + 1, len(reader.part))]
    strength = next((one for one in _STRENGTHS if tuple(rest[: len(one)]) == one), None)
    if strength is None:
        return None
    rest = rest[len(strength) :]
    if rest[-1:] == ["nowait"]:
        rest.pop()
    names = rest[1:] if rest[:1] == ["of"] else aliases
    is_list = "," not in rest[1::2] and {*rest[2::2]} <= {","} and len(rest) % 2 == 0
    if rest[:1] not in ([], ["of"]) or not is_list:
        return None
    return frozenset(name_parts(name)[-1] for name in names if name != ",")


def lock_of(strengths: Collection[str]) -> Lock:
    """Return how a SELECT locks the rows of its only table, given the words after FOR."""
    locks = {_LOCKS[one] for one in strengths if one in _LOCKS}
    return next((lock for lock in LOCKS[1:] if lock in locks), "")  # the strongest counts


def is_in_catalogue(name: str) -> bool:
    """Return whether a table belongs to the catalogue."""
    schema, *rest = name_parts(name)
    return schema in _CATALOGUE_SCHEMAS if rest else schema.startswith("pg_")


def with_query_names(part: Sequence[Token]) -> list[tuple[str, int, int]]:
    """Return the names of WITH queries at any depth, with the token ranges of their scopes."""
    reader = Reader(part)
    found = []
    for at in range(1, len(part)):
        if reader.word(at) == "as" and reader.text(at + 1) in ("(", "not", "materialized"):
            depth = reader.depth[at]
            before = at - 1
            if reader.text(before) == ")":  # the names of the query's columns
                opened = (
                    n for n in range(before) if reader.text(n) == "(" and reader.depth[n] == depth
                )
                before = max(opened) - 1
            if reader.text(before - 1) not in ("with", "recursive", ","):
                continue
            body = reader.find_text("(", at, depth)
            end = at
            while end < len(part) and reader.depth[end] >= depth:
                end += 1
            begins = [n for n in range(before) if reader.word(n) == "with"]
            inner = [n for n in begins if reader.depth[n] == depth]
            recursive = inner and reader.word(inner[-1] + 1) == "recursive"
            found.append((reader.text(before), before if recursive else reader.close(body), end))
    return found


def _catalogue_tables(
    reader: Reader, queries: Sequence[tuple[str, int, int]] = ()
) -> list[str] | None:
    """Return the tables of the catalogue that a statement reads; ``None`` if it may read others."""
    tables: list[str] = []
    for at in range(len(reader.part)):
        word, before = reader.word(at), reader.text(at - 1) if at else ""
        if word in ("insert", "update", "delete", "merge") or (word == "table" and before == "("):
            return None
        if word == "with" and before == "(" and not queries:
            return None
        if word == "from" and is_clause(reader, at):
            end = reader.find(CLAUSES - {"on"}, at + 1, end_of_block(reader, at), reader.depth[at])
            known = {name for name, begin, stop in queries if begin <= at < stop}
            try:
                names = [name for name, _ in from_tables(reader, at + 1, end).tables]
            except RefusedError:
                return None
            tables += [name for name in names if name not in known]
    return tables if all(map(is_in_catalogue, tables)) else None


def is_clause(reader: Reader, at: int) -> bool:
    """Return whether a FROM is the clause of a query: not ``extract(day FROM a)``."""
    if reader.word(at - 1) == "distinct":
        return False
    before = at - 1
    while before >= 0 and reader.depth[before] >= reader.depth[at]:
        if reader.depth[before] == reader.depth[at] and reader.word(before) in _QUERIES:
            return True
        before -= 1
    return False


def end_of_block(reader: Reader, at: int) -> int:
    """Return the position after the innermost parentheses around a position."""
    end = at
    while end < len(reader.part) and reader.depth[end] >= reader.depth[at]:
        end += 1
    return end


def _clause_position(reader: Reader, words: set[str], begin: int, *, aggregated: bool) -> int:
    """Return the position of a clause; 0 if it is missing or the result is a single aggregate."""
    at = reader.find(words, begin, len(reader.part))
    return 0 if at == len(reader.part) or aggregated else at


def limits_to_some(reader: Reader, at: int) -> bool:
    """Return whether the LIMIT at a position is a number other than 0."""
    rest = reader.part[at + 1 :]
    ends = not rest[1:] or rest[1].text == ")" or rest[1].text in CLAUSES
    return bool(rest) and is_natural(rest[0]) and ends


def aggregates_all(reader: Reader, begin: int, names: Collection[str]) -> bool:
    """Return whether the SELECT at a position aggregates all its rows into one."""
    depth, end = reader.depth[begin], end_of_block(reader, begin)
    stop = reader.find({"from"}, begin, end, depth)
    rest = {"group", "having", "union", "intersect", "except"}
    return reader.find(rest, begin, end, depth) == end and _calls_aggregate(
        reader, names, range(begin + 1, stop)
    )


def _calls_aggregate(reader: Reader, names: Collection[str], places: Sequence[int]) -> bool:
    """Return whether an aggregate function is called, except as a window function."""
    inside = 0
    for at in places:
        if at < inside:
            continue
        if reader.text(at) == "(" and reader.word(at + 1) in ("select", "with", "values"):
            inside = reader.close(at)
            continue
        if reader.word(at) in names and reader.text(at + 1) == "(":
            behind = reader.close(at + 1)
            if reader.word(behind) == "within":
                behind = reader.close(behind + 2)
            if reader.word(behind) == "filter":
                behind = reader.close(behind + 1)
            if reader.word(behind) != "over":
                return True
    return False


def _plan_of_subqueries(reader: Reader) -> StatementPlan:
    """Return the plan of a SELECT with a table only in a subquery: SELECT EXISTS (SELECT …)."""
    opened = [
        n for n in range(1, len(reader.part))
        if reader.text(n - 1) == "(" and reader.word(n) in ("select", "with", "values")
    ]  # fmt: skip
    clauses = reader.find(CLAUSES, 1, len(reader.part)) < len(reader.part)
    if len(opened) != 1 or clauses:
        raise RefusedError(SUBQUERIES)
    (begin,) = opened
    end = reader.close(begin - 1) - 1
    depth = reader.depth[begin]
    place = reader.find({"from"}, begin, end, depth)
    cutting = {"having", "limit", "offset", "fetch", "for", "union", "intersect", "except"}
    cut = reader.find(cutting, begin, end, depth)
    single = reader.word(cut) == "limit" and cut + 2 == end and limits_to_some(reader, cut)
    exists = reader.word(begin - 2) == "exists"
    if place == end or (cut < end and not (single and exists)):
        raise RefusedError(SUBQUERIES)
    stop = reader.find(CLAUSES - {"on"}, place + 1, end, depth)
    found = from_tables(reader, place + 1, stop)
    if found.joined or found.unseen or len(found.tables) != 1:
        raise RefusedError(SUBQUERIES)
    behind = stop
    if reader.word(stop) == "where":
        behind = reader.find(CLAUSES - {"where", "on"}, stop + 1, end, depth)
    ((name, alias),) = found.tables
    source = StatementTable(
        name=name,
        alias=alias,
        how="all",
        where=(stop + 1, behind) if behind > stop else (0, 0),
        text=(place, behind),
    )
    return StatementPlan(
        kind="select", sources=(source,), place=len(reader.part), single=True, tables=(name,)
    )


def _write_plan(reader: Reader, word: str) -> StatementPlan:
    part, end = reader.part, len(reader.part)
    at = 1 if word == "update" else 2
    if word == "insert":
        if reader.word(1) != "into":
            raise RefusedError(SHAPES)
        name, alias, at = insert_target(reader, at)
    else:
        name, alias, at = reader.table(at)
    if not name:
        raise RefusedError(SHAPES)
    unseen = []
    partial = ""
    if any(reader.word(n) == "select" for n in range(1, end)):
        partial = "subqueries"
        if word != "insert" or _reads_tables(reader, at):
            unseen.append(SUBQUERIES)
    others = reader.find_from(at, end) if word == "update" else reader.find({"using"}, at, end)
    if word != "insert" and others < end:
        unseen.append("other tables of UPDATE and DELETE")
        partial = "other tables"
    returning = reader.find({"returning"}, at, end)
    where = (0, 0)
    if word != "insert":
        place = reader.find({"where"}, at, returning)
        if place < returning:
            where = (place + 1, returning)
            if reader.word(place + 1) == "current" and reader.word(place + 2) == "of":
                unseen.append(CURSORS)
                partial = "cursors"
    claims = ""
    if partial == "subqueries" and where[1]:
        claims, where = _skip_locked_claim(reader, (name, alias), where)
        if claims:
            unseen, partial = [], ""
    proposed = 0
    may_skip = upserts = computes = False
    if word == "insert":
        conflict = reader.find({"conflict"}, at, end)
        upserts = reader.find({"set"}, conflict, end) < end
        may_skip = conflict < end and (not upserts or reader.find({"where"}, conflict, end) < end)
        proposed = _proposed_rows(reader, at, conflict)
    set_at = reader.find({"set"}, at, end) + 1
    stop = reader.find({"where", "returning", "from"}, set_at, end)
    if word == "update":
        computes = _uses_columns(part, reader, set_at, stop)
    return StatementPlan(
        kind=word,  # type: ignore[arg-type]
        sources=(
            StatementTable(
                name=name, alias=alias, where=where,
                how="delete" if word == "delete" else "write",
            ),
        ),
        place=end,
        silent=returning == end,
        unseen=tuple(unseen),
        partial=partial,
        skips=bool(claims),
        claims=claims,
        computes=computes,
        assigned=_assigned_columns(reader, set_at, stop),
        returned=_returned_columns(reader, returning, end),
        upserts=upserts,
        proposed=proposed,
        may_skip=may_skip,
        tables=(name,),
    )  # fmt: skip


def _merge_plan(reader: Reader) -> StatementPlan:
    """Return the plan of a MERGE.

    Each row of the source has at most one effect. If all of them had one, and ON names a whole key
    of the table, then MERGE has found no other row.
    """
    end = len(reader.part)
    if reader.word(1) != "into":
        raise RefusedError("MERGE")
    name, alias, at = reader.table(2)
    on = reader.find({"on"}, at, end)
    when = reader.find({"when"}, on, end)
    if not name or reader.word(at) != "using" or when == end:
        raise RefusedError("MERGE")
    if any(reader.word(n) == "by" and reader.word(n + 1) == "source" for n in range(when, end)):
        raise RefusedError("MERGE")
    returning = reader.find({"returning"}, when, end)
    source, rows = at + 1, 0
    if (reader.text(source), reader.word(source + 1)) == ("(", "values"):
        rows = _proposed_rows(reader, source + 1, on, 1)
        source_alias = reader._alias(reader.close(source), "")[0]
    elif reader.text(source) == "(":
        source_alias = reader._alias(reader.close(source), "")[0]
    else:
        source_alias = reader.table(source)[1]
    chosen, _ = chosen_columns(reader, (on + 1, when), alias, {source_alias})
    reads = not rows or any(reader.word(n) == "select" for n in range(at, end))
    return StatementPlan(
        kind="merge",
        sources=(StatementTable(name=name, alias=alias, how="write"),),
        place=end,
        silent=returning == end,
        unseen=("MERGE",) if reads else (),
        partial="MERGE",
        chosen=chosen,
        computes=True,
        assigned=frozenset().union(*(
            _assigned_columns(reader, n + 1, reader.find({"when", "returning"}, n, end))
            for n in range(when, end)
            if reader.word(n) == "set" and not reader.depth[n]
        )),
        returned=_returned_columns(reader, returning, end),
        proposed=rows,
        tables=(name,),
    )  # fmt: skip


def chosen_columns(
    reader: Reader, where: tuple[int, int], alias: str, others: Collection[str]
) -> tuple[frozenset[str], list[tuple[int, int]]]:
    """Return the columns that a condition compares with those of other queries.

    Args:
        others: the aliases of the other queries.

    Returns:
        The columns of the table with the alias, and the rest of the condition, whose parts are
        connected by AND.
    """
    part = reader.part
    target, known = name_parts(alias)[-1], {name_parts(other)[-1] for other in others}
    chosen: set[str] = set()
    rest = []
    for begin, end in conjuncts(part, *where):
        texts = [catalogue_name(token.text) for token in part[begin:end]]
        sides: tuple[tuple[str, str, str], ...] = ()
        if len(texts) == 7 and [texts[1], texts[3], texts[5]] == [".", "=", "."]:
            sides = ((texts[0], texts[2], texts[4]), (texts[4], texts[6], texts[0]))
        named = [column for of, column, other in sides if of == target and other in known]
        if len(named) == 1 and target not in known:
            chosen.add(named[0])
        else:
            rest.append((begin, end))
    return frozenset(chosen), rest


def _skip_locked_claim(
    reader: Reader, written: tuple[str, str], where: tuple[int, int]
) -> tuple[str, tuple[int, int]]:
    """Recognise ``WHERE id = (SELECT id FROM … FOR UPDATE SKIP LOCKED)``, as used by job queues.

    Returns:
        The column, and the condition in the subquery; for other conditions, an empty string and
        ``where``. The subquery must read the same table under the same alias, both as in
        ``written``, and must be the statement's only subquery.
    """
    part, (begin, end) = reader.part, where
    qualified = reader.text(begin + 1) == "."
    sign = begin + (3 if qualified else 1)
    column = [catalogue_name(reader.text(n)) for n in range(begin, sign)]
    opened = sign + 1
    table = opened + len(column) + 3
    is_other = (
        not reader.is_name(sign - 1)
        or (qualified and column[0] != catalogue_name(written[1]))
        or reader.text(sign) not in ("=", "in")
        or reader.text(opened) != "("
        or reader.close(opened) != end
        or [catalogue_name(reader.text(n)) for n in range(opened + 2, table - 1)] != column
        or (reader.word(opened + 1), reader.word(table - 1)) != ("select", "from")
        or sum(reader.word(n) == "select" for n in range(1, len(part))) > 1
    )
    if is_other:
        return "", where
    depth, close = reader.depth[opened + 1], end - 1
    *inner, stop = reader.table(table)
    locks = reader.find({"for"}, stop, close, depth)
    behind = [reader.text(n) for n in range(close - 2, close)]
    same = [*map(catalogue_name, inner)] == [*map(catalogue_name, written)]
    if not same or reader.word(stop) not in ("where", "order", "limit", "for"):
        return "", where
    if reader.word(locks + 1) not in ("update", "no") or behind != ["skip", "locked"]:
        return "", where
    if reader.word(stop) != "where":
        return column[-1], (0, 0)
    last = reader.find(CLAUSES - {"where", "on"}, stop + 1, close, depth)
    if reader.word(last) not in ("order", "limit", "for"):
        return "", where
    return column[-1], (stop + 1, last)


def _reads_tables(reader: Reader, begin: int) -> bool:
    """Return whether any FROM after a position names anything except functions and VALUES."""
    places = [n for n in range(begin, len(reader.part)) if reader.word(n) == "from"]
    places = [n for n in places if (reader.text(n + 1), reader.word(n + 2)) != ("(", "values")]
    try:
        return any(reader.table(n + 1)[0] for n in places)
    except RefusedError:
        return True


def insert_target(reader: Reader, at: int) -> tuple[str, str, int]:
    """Return the table of an INSERT, its alias, and the position after both."""
    if not reader.is_name(at):
        return "", "", at
    name = reader.text(at)
    at += 1
    while reader.text(at) == "." and reader.is_name(at + 1):
        name += "." + reader.text(at + 1)
        at += 2
    if reader.word(at) == "as":
        return name, reader.text(at + 1), at + 2
    return name, name, at


def _proposed_rows(reader: Reader, at: int, end: int, depth: int = 0) -> int:
    """Return the number of rows in VALUES; 0 if unknown."""
    values = reader.find({"values"}, at, end, depth)
    if reader.word(values - 1) == "default":
        return 1
    rows = 0
    behind = values + 1
    while values < end and reader.text(behind) == "(":
        rows += 1
        behind = reader.close(behind)
        if reader.text(behind) != ",":
            break
        behind += 1
    # Behind UNION are more rows, and LIMIT leaves some out.
    is_whole = reader.word(behind) in ("on", "returning") or reader.text(behind) in (")", "")
    return rows if is_whole else 0


_CONSTANT_WORDS: Final = frozenset({
    "null", "default", "true", "false", "current_timestamp", "current_date", "case", "when", "then",
    "else", "end", "array",
})  # fmt: skip
# These words may also be names of columns, unless a string follows.
_TYPE_WORDS: Final = frozenset({"interval", "date", "timestamp"})


def _uses_columns(part: Sequence[Token], reader: Reader, begin: int, end: int) -> bool:
    """Return whether the expressions assigned by SET use columns."""
    right = False
    for at in range(begin, end):
        one = part[at]
        if reader.depth[at] == 0 and one.text == "=":
            right = True
        elif reader.depth[at] == 0 and one.text == ",":
            right = False
        elif right and _is_column(part, reader, at):
            return True
    return False


def _is_column(part: Sequence[Token], reader: Reader, at: int) -> bool:
    """Return whether a token in an expression may be part of a column's name."""
    one = part[at]
    if one.kind not in ("word", "quoted") or one.text in _CONSTANT_WORDS:
        return False
    typed = one.text in _TYPE_WORDS and at + 1 < len(part) and part[at + 1].kind == "text"
    called = reader.text(at + 1) == "("
    return not typed and not called and part[at - 1].text not in ("::", "as")


def _returned_columns(reader: Reader, begin: int, end: int) -> frozenset[str]:
    """Return the columns that RETURNING uses, with ``*`` and ``old.`` where it has these."""
    found = set()
    for at in range(begin + 1, end):
        word, qualifies = reader.word(at), reader.text(at + 1) == "."
        if reader.text(at) == "*" or (word == "old" and qualifies):
            found.add("*" if word != "old" else "old.")
        elif word != "as" and not qualifies and _is_column(reader.part, reader, at):
            found.add(catalogue_name(reader.text(at)))
    return frozenset(found)


def _assigned_columns(reader: Reader, begin: int, end: int) -> frozenset[str]:
    """Return the columns assigned by SET."""
    found = set()
    left = True
    for at in range(begin, end):
        if reader.depth[at] == 0 and reader.text(at) in ("=", ","):
            left = reader.text(at) == ","
        elif left and reader.is_name(at):
            found.add(catalogue_name(reader.text(at)))
    return frozenset(found)


@lru_cache(maxsize=4096)
@lru_cache(5000)
def name_parts(alias: str) -> tuple[str, ...]:
    """Return the parts of a name as the catalogue stores them."""
    return tuple(catalogue_name(one) for one in re.findall(r'"(?:[^"]|"")+"|[^.]+', alias))
