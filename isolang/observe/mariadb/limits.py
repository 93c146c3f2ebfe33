"""Decides which rows the LIMIT of a statement may have left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from isolang.observe.mariadb.compared import ComparedColumn
from isolang.observe.mariadb.plan import SourceTable
from isolang.observe.mariadb.recording import RecordedStatement
from isolang.observe.mariadb.statements import Statement
from isolang.observe.sql.evaluated import is_name_of_another
from isolang.observe.sql.lexer import catalogue_name


class CutRows(Struct, frozen=True):
    """The rows that satisfy a condition and are not in the answer.

    Attributes:
        which: ``none`` if LIMIT has left out no row; ``any`` if the server was free to choose the
            rows of the answer; ``last`` if it has left out only rows behind, or equal to, the last
            one in an order; ``unknown`` for others.
        order: for ``last``, the column, and whether the order is descending.
    """

    which: Literal["none", "any", "last", "unknown"]
    order: tuple[str, bool] | None = None


def rows_cut_off(
    event: RecordedStatement, columns: Mapping[str, ComparedColumn], rows: int
) -> CutRows:
    """Return which rows of a statement's first table LIMIT has left out.

    Args:
        columns: the columns of the table.
        rows: how many of its rows were read.
    """
    statement, plan = event.statement, event.statement.plan
    if plan.limit is None:
        return CutRows("none")
    most = number_at(statement, plan.limit.count) if plan.limit.count else None
    skipped = number_at(statement, plan.limit.offset) if plan.limit.offset else 0
    if most == 0:
        return CutRows("any")
    if most is None or skipped != 0:
        return CutRows("unknown")
    if plan.aggregates and not plan.groups:  # the answer is one row
        return CutRows("none")
    answered = event.count if plan.kind == "select" else event.matched
    if 0 <= answered < most:
        return CutRows("none")
    if plan.groups:
        return CutRows("unknown")
    if not (plan.order[1] and rows):
        return CutRows("any")
    order = _first_order(statement, plan.sources[0], columns)
    return CutRows("unknown") if order is None else CutRows("last", order)


def number_at(statement: Statement, at: int) -> int | None:
    """Return the number that a token stands for; ``None`` if it is not certain."""
    token = statement.part[at]
    text: str | None = token.text
    if token.kind == "parameter":
        text = statement.parameters.text(int(token.text[1:]))
    return int(text) if text is not None and text.isdigit() else None


def _first_order(
    statement: Statement, source: SourceTable, columns: Mapping[str, ComparedColumn]
) -> tuple[str, bool] | None:
    """Return the column that ORDER BY names first, and whether its order is descending.

    SOUND BECAUSE: a name without table first refers to a column of the answer, so it must not be
    the name of another expression there. In a join, it may be a column of another table.
    """
    plan, part = statement.plan, statement.part
    begin, end = plan.order
    texts = [token.text for token in part[begin:end]]
    first = texts[: texts.index(",")] if "," in texts else texts
    descends = first[-1:] == ["desc"]
    if first[-1:] in (["asc"], ["desc"]):
        first.pop()
    named = [catalogue_name(text) for text in first]
    alias = source.alias.replace("`", "").lower().rpartition(".")[2]
    if len(first) == 1:
        alone = len(plan.sources) == 1
        is_plain = plan.kind != "select" or not is_name_of_another(part[: plan.place], named[0])
        is_certain = alone and is_plain
    else:
        is_certain = len(first) == 3 and first[1] == "." and named[0] == alias
    column = columns.get(named[-1]) if is_certain and named else None
    if column is None or not (column.ordered or column.type == "timestamp"):
        return None
    column.was_compared = True
    return column.name, descends
