"""Says what a condition with IN or EXISTS has certainly read of the outer or the inner table.

A query block whose condition has a subquery only may have decided the answer by all rows of its
cover. But a row that was there before the observation, and that no transaction has replaced, is
visible in every order of the transactions. So it makes certain

* for IN and EXISTS, that the outer table has no other rows that it would select;
* for NOT IN and NOT EXISTS, if it is a row of the outer table that no row excludes, that the inner
  table has no row that excludes it.

SOUND BECAUSE: all other parts of both conditions compare columns of one table with constants, and
are connected by AND. NULL in the inner column of NOT IN would exclude all rows, so it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from isolang.observe.log.tables import LoggedColumn
from isolang.observe.mariadb.compared import ComparedColumn
from isolang.observe.mariadb.plan import is_connected_by_and
from isolang.observe.sql.lexer import Token, catalogue_name
from isolang.observe.sql.plan import Reader, StatementTable, name_parts
from isolang.observe.sql.predicates import (
    CannotEvaluateError,
    Node,
    ParsedCondition,
    conjuncts,
    parse_condition,
)

_OTHER_WORDS: Final = frozenset({
    "group", "having", "union", "intersect", "except", "limit", "offset", "with", "or", "xor",
    "case",
})  # fmt: skip
_NAMES: Final = frozenset({"word", "quoted"})


class SemiJoin(Struct, frozen=True):
    """A comparison of two query blocks by IN or EXISTS.

    Attributes:
        outer: the number of the outer block.
        inner: that of the subquery.
        columns: the outer and the inner column that are compared.
        is_negated: whether the inner rows exclude the outer ones.
        outer_condition: all other parts of the outer condition.
        inner_condition: all other parts of the inner condition.
    """

    outer: int
    inner: int
    columns: tuple[str, str]
    is_negated: bool
    outer_condition: ParsedCondition
    inner_condition: ParsedCondition


class BlockSource(Struct, frozen=True):
    """A query block with one table."""

    source: StatementTable
    columns: Mapping[str, LoggedColumn]

    def column(self, names: Sequence[str]) -> str | None:
        """Return the column that a name refers to; ``None`` if it is another table's."""
        alias, qualifiers = name_parts(self.source.alias), tuple(names[:-1])
        is_its = not qualifiers or qualifiers == alias[-len(qualifiers) :]
        return names[-1] if is_its and names[-1] in self.columns else None


def semi_joins(part: Sequence[Token], blocks: Mapping[int, BlockSource]) -> Iterator[SemiJoin]:
    """Yield the comparisons of query blocks, given those with one table that nothing cuts off."""
    reader = Reader(part)
    for number, block in blocks.items():
        begin, end = block.source.where
        if not is_connected_by_and(part, begin, end):
            continue
        parts = [*conjuncts(part, begin, end)]
        chosen = [each for each in parts if _has_subquery(reader, *each)]
        if len(chosen) != 1:
            continue
        rest = _condition(part, [each for each in parts if each not in chosen], block.column)
        (at,) = chosen
        inner = [
            n for n, other in blocks.items()
            if n != number and at[0] < other.source.text[0] < at[1]
        ]  # fmt: skip
        if rest is None or len(inner) != 1:
            continue
        compared = _read(reader, at, block, blocks[inner[0]])
        if compared is not None:
            (own, other), is_negated, condition = compared
            yield SemiJoin(number, inner[0], (own, other), is_negated, rest, condition)


def _has_subquery(reader: Reader, begin: int, end: int) -> bool:
    return any(reader.word(n) == "select" for n in range(begin, end))


def _condition(
    part: Sequence[Token],
    ranges: Sequence[tuple[int, int]],
    column: Callable[[Sequence[str]], str | None],
) -> ParsedCondition | None:
    """Return the condition that all of some parts hold; ``None`` if one is not understood."""
    nodes: list[Node] = []
    for begin, end in ranges:
        try:
            nodes.append(parse_condition(part, begin, end, column).node)
        except CannotEvaluateError:
            return None
    return ParsedCondition(node=("and", ("true",), *nodes) if nodes else ("true",))


def _read(
    reader: Reader, at: tuple[int, int], outer: BlockSource, inner: BlockSource
) -> tuple[tuple[str, str], bool, ParsedCondition] | None:
    """Return what IN or EXISTS compares, whether NOT is in front, and the rest of the subquery."""
    begin, end = at
    words = [reader.word(n) for n in range(begin, end)]
    if words.count("select") != 1 or reader.text(end - 1) != ")":
        return None
    select = begin + words.index("select")
    # The LIMIT of EXISTS does not count: a block that another LIMIT cuts off is not among them.
    allowed = {"limit"} if reader.word(select - 2) == "exists" else set()
    if _OTHER_WORDS & {*words} - allowed:
        return None
    if reader.text(select - 1) != "(" or reader.close(select - 1) != end:
        return None
    is_negated = "not" in words[: select - begin]
    operator = reader.word(select - 2)
    named, opened = [n for n in range(begin, select - 2) if reader.word(n) != "not"], select + 1
    listed = range(opened, inner.source.text[0])
    if any(reader.text(n) == "(" for n in listed):  # an aggregate has a row in any case
        return None
    if operator == "exists" and not named:
        return _read_exists(reader, outer, inner, is_negated=is_negated)
    if operator != "in":
        return None
    listed = listed[reader.word(opened) == "distinct" :]
    own, other = _column(reader, named, outer), _column(reader, listed, inner)
    first, last = inner.source.where
    if own is None or other is None or not is_connected_by_and(reader.part, first, last):
        return None
    if is_negated and not inner.columns[other].required:
        return None
    rest = _condition(reader.part, [*conjuncts(reader.part, first, last)], inner.column)
    return None if rest is None else ((own, other), is_negated, rest)


def _read_exists(
    reader: Reader, outer: BlockSource, inner: BlockSource, *, is_negated: bool
) -> tuple[tuple[str, str], bool, ParsedCondition] | None:
    """Return what EXISTS compares: one column of each table, by one equation."""
    first, last = inner.source.where
    if not is_connected_by_and(reader.part, first, last):
        return None
    equations, others = [], []
    for begin, end in conjuncts(reader.part, first, last):
        signs = [n for n in range(begin, end) if reader.text(n) == "="]
        pair = None
        if len(signs) == 1:
            left, right = range(begin, signs[0]), range(signs[0] + 1, end)
            for own, other in ((left, right), (right, left)):
                is_qualified = len(own) == 3  # a name alone is first a column of the subquery
                if is_qualified and _column(reader, own, inner) is None:
                    two = _column(reader, own, outer), _column(reader, other, inner)
                    pair = two if None not in two else pair
        if pair is None:
            others.append((begin, end))
        else:
            equations.append(pair)
    rest = _condition(reader.part, others, inner.column)
    if len(equations) != 1 or rest is None:
        return None
    ((own_name, other_name),) = equations
    assert own_name is not None
    assert other_name is not None
    return (own_name, other_name), is_negated, rest


def _column(reader: Reader, places: Sequence[int], block: BlockSource) -> str | None:
    """Return the column of a block whose name is at some places; ``None`` for others."""
    tokens = [reader.part[n] for n in places]
    is_name = len(tokens) in (1, 3) and all(token.kind in _NAMES for token in tokens[::2])
    if not is_name or any(token.text != "." for token in tokens[1::2]):
        return None
    return block.column([catalogue_name(token.text) for token in tokens[::2]])


def are_alike(left: ComparedColumn, right: ComparedColumn) -> bool:
    """Return whether two columns have the same value in a history if ``=`` takes them for equal."""
    return (
        bool(left.oid) and left.oid == right.oid and left.collation == right.collation
        and left.comparable and right.comparable
    )  # fmt: skip
