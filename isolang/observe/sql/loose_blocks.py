"""Finds the rows of a query block whose condition only the server can evaluate.

The condition cannot be repeated in an additional column. It may fail on rows that the block never
reads, because the server need not execute the block, or stops at its first row; and a function in
it may act twice. So the column repeats only the parts that compare columns with constants. Which of
the rows that it returns the block found is evaluated later, on the images of their versions
(:mod:`isolang.observe.versions.evaluation`).

SOUND BECAUSE: all parts are connected by AND, so each row of the block satisfies the repeated ones,
and is among the rows that are returned, in the version of the statement's snapshot. If the server
cannot evaluate the whole condition, the repeated parts are what may have decided the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from isolang.observe.sql.evaluated import ServerExpression
from isolang.observe.sql.lexer import Token
from isolang.observe.sql.plan import StatementTable, name_parts
from isolang.observe.sql.predicates import (
    CannotEvaluateError,
    ParsedCondition,
    conjuncts,
    parse_condition,
)

MOST_ROWS: Final = 1000
"""The largest number of rows to return for such a block."""

_HARMLESS: Final = frozenset({
    "abs", "btrim", "char_length", "concat", "date", "date_part", "date_trunc",
    "left", "length", "lower", "ltrim", "md5", "mod", "now", "replace", "right", "round", "rtrim",
    "strpos", "substr", "substring", "timezone", "to_char", "to_date", "upper",
})  # fmt: skip
"""Functions of PostgreSQL that change nothing."""


class LooseCondition(Struct, frozen=True):
    """The parts of a block's condition that are repeated.

    Attributes:
        ranges: their token ranges.
        condition: the condition that all of them hold.
    """

    ranges: tuple[tuple[int, int], ...]
    condition: ParsedCondition


def acts_once(expression: ServerExpression) -> bool:
    """Return whether nothing happens if the server evaluates an expression another time.

    It must call no functions of the database.
    """
    return expression.functions <= _HARMLESS


def loose_condition(
    part: Sequence[Token], source: StatementTable, columns: Collection[str]
) -> LooseCondition:
    """Return the parts of a block's condition that are repeated.

    Args:
        columns: the columns whose comparisons isolang knows.
    """
    alias = name_parts(source.alias)

    def column(names: Sequence[str]) -> str | None:
        qualifiers = tuple(names[:-1])
        return names[-1] if not qualifiers or qualifiers == alias[-len(qualifiers) :] else None

    ranges, nodes = [], []
    for begin, end in conjuncts(part, *source.where):
        try:
            condition = parse_condition(part, begin, end, column)
        except CannotEvaluateError:
            continue
        if begin < end and condition.columns <= {*columns}:
            ranges.append((begin, end))
            nodes.append(condition.node)
    node = nodes[0] if len(nodes) == 1 else ("and", *nodes) if nodes else ("true",)
    return LooseCondition(tuple(ranges), ParsedCondition(node=node))


def loose_query(
    source: StatementTable,
    loose: LooseCondition,
    identity: str,
    part: Sequence[Token],
    text: str,
) -> str:
    """Return the query for the rows among which are those of a query block.

    Args:
        identity: the SQL expression for a row's version and key.
    """

    def written(begin: int, end: int) -> str:
        return text[part[begin].start : part[end - 1].end]

    where = " AND ".join(f"({written(*each)})" for each in loose.ranges)
    tables = written(source.text[0], source.where[0] - 1)
    return f"SELECT {identity} {tables} {where and f'WHERE {where} '}LIMIT {MOST_ROWS + 1}"
