"""Finds the query blocks of a SELECT that does not return their rows one by one.

DISTINCT, HAVING, UNION, WITH and subqueries hide which rows a statement read. A query block is one
SELECT with its FROM and WHERE, at any depth. If the statement repeats a block's condition in an
additional column, this column returns the rows that the block read, because the whole statement has
one snapshot.

SOUND BECAUSE: a block's condition is repeated only if it compares columns of the block's only table
with constants. Therefore, the repeated condition reads no other row, calls no function, and raises
no error that the block does not raise.

A LIMIT inside the statement may leave out rows of the blocks inside it. What these would have read
without it still decides the answer, or may have decided it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from isolang.observe.sql.lexer import Token
from isolang.observe.sql.plan import (
    CLAUSES,
    LEAVES_OUT_ROWS,
    OF_OTHER_SHAPE,
    Reader,
    RefusedError,
    StatementPlan,
    StatementTable,
    aggregates_all,
    from_tables,
    is_in_catalogue,
    limits_to_some,
)
from isolang.observe.unseen import SHAPES, SUBQUERIES

_SET_OPERATORS: Final = frozenset({"union", "intersect", "except"})
_JOIN_WORDS: Final = frozenset({"join", "natural", "cross", "tablesample", "lateral"})
_UNSUPPORTED_WORDS: Final = frozenset({
    "insert", "update", "delete", "merge", "table", "tablesample", "lateral", "recursive", "into",
    "for", "offset", "fetch", "ordinality",
})  # fmt: skip
# Words after which a statement is incomplete, so a syntax error refers to its end.
_INCOMPLETE_ENDINGS: Final = frozenset({
    "all", "and", "any", "as", "between", "by", "case", "cross", "distinct", "else", "except",
    "exists", "from", "full", "group", "having", "in", "inner", "intersect", "is", "join", "left",
    "like", "limit", "materialized", "natural", "not", "nulls", "on", "or", "order", "outer",
    "right", "select", "then", "union", "using", "values", "when", "where", "with", "over",
    "partition", "window", "collate", "escape", "ilike", "similar", "to", "some", "array",
})  # fmt: skip


def plan_with_blocks(
    part: Sequence[Token], made: StatementPlan, aggregates: Collection[str]
) -> StatementPlan | None:
    """Return a plan that also reports the query blocks' rows; ``None`` if that is impossible."""
    leaves_out = made.partial in LEAVES_OUT_ROWS
    if made.locks or made.kind not in ("other", "select"):
        return None
    if not (leaves_out or OF_OTHER_SHAPE & {*made.unseen}):
        return None
    if not part or part[0].text not in ("select", "with", "values", "("):
        return None
    reader = Reader(part)
    try:
        found = _BlockReader(reader, own=bool(made.sources) and not leaves_out).found()
    except RefusedError:
        return None
    top = reader.find({"limit"}, 0, len(part))
    if top == len(part) or (limits_to_some(reader, top) and _has_one_row(reader)):
        top = 0  # the blocks are in expressions, which LIMIT does not cut off
    return replace(
        made,
        kind="select",
        sources=() if leaves_out else made.sources,
        unseen=tuple(one for one in made.unseen if one not in OF_OTHER_SHAPE),
        limit=made.limit if made.sources else top,
        tables=(*made.tables, *(one.name for one in found)),
        wrapped=found,
        single=made.single or _is_single(reader, aggregates),
    )


def _is_single(reader: Reader, aggregates: Collection[str]) -> bool:
    """Return whether the last SELECT outside parentheses aggregates all rows into one."""
    outer = [
        n for n in range(len(reader.part)) if reader.word(n) == "select" and not reader.depth[n]
    ]
    return len(outer) == 1 and aggregates_all(reader, outer[0], aggregates)


def _has_one_row(reader: Reader) -> bool:
    """Return whether FROM of a SELECT, if it has one, is one row of constants."""
    end = len(reader.part)
    begins = [n for n in range(end) if reader.word(n) == "select" and not reader.depth[n]]
    if len(begins) != 1:
        return False
    place = reader.find_from(begins[0], end)
    if place == end:
        return True
    # FROM (SELECT 1 AS a) b WHERE …, as TypeORM writes it
    behind = reader.close(place + 1)
    opened, begin, *row = [reader.text(n) for n in range(place + 1, min(behind, end))]
    kind = reader.part[place + 3].kind if row else ""
    return (
        (opened, begin) == ("(", "select")
        and kind in ("text", "number", "parameter")
        and (row[1:] == [")"] or (row[1:2] == ["as"] and row[3:] == [")"]))
        and reader.is_name(behind)
        and reader.word(behind + 1) in ("where", "limit")
    )


def limit_around(reader: Reader, at: int, lowest: int = 1) -> int:
    """Return where LIMIT or FETCH is that may leave out rows of the SELECT at a position.

    Return 0 if there is none, and -1 if it is not certain which rows a LIMIT leaves out. The LIMIT
    of EXISTS does not count, and none in fewer parentheses than ``lowest``.
    """
    limits = []
    begin = end = at
    for depth in range(reader.depth[at], lowest - 1, -1):
        while begin and reader.depth[begin - 1] >= depth:
            begin -= 1
        while end < len(reader.part) and reader.depth[end] >= depth:
            end += 1
        place = reader.find({"limit", "fetch"}, begin, end, depth)
        # SOUND BECAUSE: EXISTS counts as a read of all rows that its query selects.
        exists = depth and reader.word(begin - 2) == "exists" and limits_to_some(reader, place)
        if place < end and not exists:
            is_its = depth == reader.depth[at] and begin in (0, at)
            is_its = is_its and reader.find(_SET_OPERATORS, begin, end, depth) == end
            limits.append(place if is_its else -1)
    return limits[0] if len(limits) == 1 else -1 if limits else 0


def is_complete(part: Sequence[Token]) -> bool:
    """Return whether the server's message about any syntax error is the same despite added text."""
    last = part[-1]
    depth = lowest = 0
    for token in part:
        depth += (token.text == "(") - (token.text == ")")
        lowest = min(lowest, depth)
    if depth or lowest < 0 or (last.kind == "word" and last.text in _INCOMPLETE_ENDINGS):
        return False
    return last.kind != "operator" and last.text not in (",", ".")


def block_at(
    reader: Reader, begin: int, end: int, queries: Mapping[str, tuple[int, int]]
) -> tuple[StatementTable, ...]:
    """Return the tables of the query block at a position of a statement that ends before ``end``.

    The tables are several only if the block joins nothing else.

    Args:
        queries: for each WITH query, the range of its body.

    Raises:
        RefusedError: the rows of the block cannot be found by its FROM and WHERE.
    """
    return _BlockReader(reader, own=False, end=end, queries=queries, lowest=0).read_block(begin)


class _BlockReader:
    """Reads the blocks of one statement."""

    def __init__(
        self,
        reader: Reader,
        *,
        own: bool,
        end: int = 0,
        queries: Mapping[str, tuple[int, int]] = MappingProxyType({}),
        lowest: int = 1,
    ) -> None:
        self._reader, self._own, self._lowest = reader, own, lowest
        self._end = end or len(reader.part)
        # For each WITH query, the range of its body.
        self._names: dict[str, tuple[int, int]] = {**queries}
        self._uses: list[tuple[int, str]] = []  # the positions of the names of WITH queries

    def found(self) -> tuple[StatementTable, ...]:
        """Return the tables of all blocks, each with the token range of its condition."""
        reader = self._reader
        self._check()
        if reader.word(0) == "with":
            self._read_with_clause()
        made = [
            (n, one)
            for n in range(self._end)
            if reader.word(n) == "select"
            for one in self.read_block(n)
        ]
        if {name for _, name in self._uses} != self._names.keys():
            raise RefusedError("WITH")  # the server does not run unused WITH queries
        cut = self._bodies_in_part()
        return tuple(
            replace(one, cut=-1) if any(a <= n < b for a, b in cut) else one for n, one in made
        )

    def _bodies_in_part(self) -> list[tuple[int, int]]:
        """Return the ranges of the WITH queries whose rows a LIMIT behind them may leave out."""
        cut: list[tuple[int, int]] = []
        for at, name in sorted(self._uses, reverse=True):  # a query is used behind its body
            if limit_around(self._reader, at) or any(a <= at < b for a, b in cut):
                cut.append(self._names[name])
        return cut

    def _check(self) -> None:
        """Reject statements with words that change rows, lock rows, or leave rows out."""
        reader = self._reader
        if not is_complete(reader.part):
            raise RefusedError(SHAPES)
        for n in range(self._end):
            word = reader.word(n)
            inner = word == "with" and n and reader.text(n - 1) == "("
            # A block with OFFSET also reads the rows that it leaves out.
            skipped = word == "offset" and reader.depth[n] > 0
            if inner or (word in _UNSUPPORTED_WORDS and not skipped):
                raise RefusedError(SHAPES)

    def _read_with_clause(self) -> None:
        reader = self._reader
        at = 1
        while True:
            if not reader.is_name(at):
                raise RefusedError("WITH")
            name = reader.text(at)
            at += 1
            if reader.text(at) == "(":
                at = reader.close(at)
            if reader.word(at) != "as":
                raise RefusedError("WITH")
            at += 1
            at += reader.word(at) == "not"
            at += reader.word(at) == "materialized"
            if reader.text(at) != "(" or name in self._names:
                raise RefusedError("WITH")
            behind = reader.close(at)
            self._names[name] = at, behind
            at = behind
            if reader.text(at) != ",":
                break
            at += 1
        if reader.word(at) not in ("select", "") or reader.text(at) not in ("select", "("):
            raise RefusedError("WITH")

    def read_block(self, begin: int) -> tuple[StatementTable, ...]:
        """Return the tables of a block, which are several only if it joins nothing else."""
        reader = self._reader
        depth = reader.depth[begin]
        end = begin + 1
        while end < self._end and reader.depth[end] >= depth:
            if reader.depth[end] == depth and reader.word(end) in _SET_OPERATORS:
                break
            end += 1
        if self._own and not begin:
            return ()  # each row of the result has a column for this block
        place = reader.find_from(begin, end, depth)
        stop = reader.find(CLAUSES - {"on"}, place + 1, end, depth) if place < end else end
        cut = limit_around(reader, begin, self._lowest)
        tables = []
        at = place + 1
        items = 0
        while at < stop:
            items += 1
            if reader.text(at) == "(":
                if reader.word(at + 1) not in ("select", "values"):
                    raise RefusedError("joins in parentheses")
                at = reader.close(at)
            else:
                name, alias, _ = reader.table(at)
                if name and not self._names_with_query(name, at):
                    tables.append((name, alias))
            at = self._after_next_source(at, stop, depth)
        if not tables:
            return ()
        if items > len(tables) or any(is_in_catalogue(name) for name, _ in tables):
            raise RefusedError(SUBQUERIES)
        behind = stop
        where = (0, 0)
        if reader.word(stop) == "where":
            behind = reader.find(CLAUSES - {"where", "on"}, stop + 1, end, depth)
            where = (stop + 1, behind)
        return tuple(
            StatementTable(
                name=name,
                alias=alias,
                how="all",
                where=where,
                text=(place, behind),
                join=join,
                on=on,
                cut=cut,
            )
            for (name, alias), (join, on) in zip(
                tables, from_tables(reader, place + 1, stop).joins, strict=True
            )
        )

    def _after_next_source(self, at: int, stop: int, depth: int) -> int:
        """Return the position after the next comma or JOIN in a FROM clause."""
        reader = self._reader
        while at < stop:
            if reader.depth[at] == depth and (
                reader.text(at) == "," or reader.word(at) in _JOIN_WORDS
            ):
                at += 1
                while reader.word(at) in ("join", "left", "right", "inner", "full", "outer"):
                    at += 1
                return at
            at += 1
        return at

    def _names_with_query(self, name: str, at: int) -> bool:
        """Return whether the name at a position refers to a WITH query, and note the use."""
        if name not in self._names:
            return False
        if at < self._names[name][1]:  # the name refers to a table, or to a query of an outer WITH
            raise RefusedError("WITH")
        self._uses.append((at, name))
        return True
