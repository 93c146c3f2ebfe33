"""Builds the queries that a watch uses to find the rows accessed by an application's statement.

Other functions in this module interpret the results. A watch sends these queries to PostgreSQL over
the application's connection, in the same transaction as the application's statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from isolang.history.row_text import LONGEST, SeenRow, value_text
from isolang.observe.drivers.statements import FromClause, Statement
from isolang.observe.sql.catalogue import Table, exact_json, key_text, parse_description
from isolang.observe.sql.lexer import catalogue_name
from isolang.observe.unseen import KEY_TYPE, PARTITIONED, UNKNOWN_TABLES

_OUTPUT_COLUMN: Final = re.compile(
    r"""(?:(?P<alias>.+)\.)?(?P<name>\w+|"(?:[^"]|"")*")(?:\s+as\s+(?:\w+|"(?:[^"]|"")*"))?""",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)


class Version(Struct, frozen=True, kw_only=True):
    """A row's version, as returned by a query with the expressions of :func:`selected`.

    Attributes:
        number: the number of the transaction that wrote the version, or of the subtransaction if
            the write followed a savepoint.
        seen: the selected columns of the row.
        cells: the comparable values of the version, by column.
        old: the number of the version replaced by the write; ``None`` if it is unknown or no
            version was replaced.
        old_cells: the comparable values of the replaced version, by column.
    """

    number: int
    seen: SeenRow
    cells: Mapping[str, Any] = {}
    old: int | None = None
    old_cells: Mapping[str, Any] = {}


Versions: TypeAlias = dict[str, Version | None]
"""The version of each row by key; ``None`` if several rows have the same key."""


def key_of(table: str, values: Sequence[object]) -> str:
    """Return the key of a row in the history: its table and the values of its primary key."""
    return f"{table}/{key_text(values)}"


def table_of(answer: Sequence[Sequence[Any]], names: Mapping[str, str]) -> Table | str:
    """Return the table in a lookup's result, or the reason why its rows cannot be identified.

    SOUND BECAUSE: with rules, row security, child tables or without the right to select, the
    results of RETURNING and of a second SELECT could differ from what the application's statement
    did, or the queries could fail.

    Args:
        answer: the rows for one name in the result of
            :func:`isolang.observe.sql.catalogue.lookup_query`.
        names: the names of tables in the history, where they differ from those in the database.
    """
    table = parse_description(answer[0][0])[1] if answer else None
    if table is None:
        return UNKNOWN_TABLES
    if table.why not in ("", KEY_TYPE) or table.partitioned:
        return table.why or PARTITIONED
    table.name = names.get(table.name, table.name)
    return table


def selected(tables: Sequence[tuple[str, Table]], *, row: bool = False, old: bool = False) -> str:
    """Return the SQL expressions for the transaction number and the version of each row.

    SOUND BECAUSE: if a row was written after a savepoint, its ``xmin`` is not the number of the
    transaction, so the number is selected separately.

    Args:
        tables: the tables, each with its name in the statement.
        row: whether to add the comparable cells, and the other columns' values, shortened.
        old: whether to add ``xmin`` and the comparable cells of the row replaced by a write.
    """
    columns = ["pg_current_xact_id_if_assigned()::text"]
    for alias, table in tables:
        columns += [f"{alias}.{one}::text" for one in ("xmin", *_key(table))]
        if row:
            columns += [f"left({alias}.{one}::text, {LONGEST})" for one in table.others]
            columns.append(f"{table.row_sql(alias)}::text")
        if old:
            columns += ["old.xmin::text", f"{table.row_sql('old')}::text"]
    return ", ".join(columns)


def _key(table: Table) -> list[str]:
    return [table.quoted[one] for one in table.key]


def matching_rows_query(clause: FromClause, *, row: bool = False) -> str:
    """Return the query for the rows that match the condition of a SELECT, in each of its tables.

    Args:
        clause: the FROM and WHERE of the SELECT.
        row: whether to also select the other columns, as in :func:`selected`.
    """
    tables = [(source.alias, table) for source, table in clause.tables]
    return f"SELECT {selected(tables, row=row)} {clause.text}"


def versions(
    rows: Sequence[Sequence[Any]], tables: Sequence[Table], *, row: bool = True, old: bool = False
) -> list[Versions]:
    """Return, for each table, the version of each row in a result of :func:`selected`, by key.

    SOUND BECAUSE: if two rows have the same key, the version of the key is ``None``. A snapshot of
    a whole transaction can contain two such rows: one that another transaction has since deleted,
    and one that this transaction inserted afterwards.
    """
    found: list[Versions] = [{} for _ in tables]
    for _, *values in rows:
        at = 0
        for table, into in zip(tables, found, strict=True):
            part = values[at : at + _width(table, row=row, old=old)]
            at += len(part)
            if part[0] is None:
                continue  # an outer join that found no row
            key, version = _version(table, part, row=row, old=old)
            same = key not in into or (
                (other := into[key]) is not None and other.number == version.number
            )
            into[key] = version if same else None
    return found


def lacks_row(rows: Sequence[Sequence[Any]], clause: FromClause, *, row: bool) -> bool:
    """Return whether a row of some table is missing in a :func:`matching_rows_query` result."""
    at = 1
    for _, table in clause.tables:
        if any(one[at] is None for one in rows):
            return True
        at += _width(table, row=row, old=False)
    return False


def _width(table: Table, *, row: bool, old: bool) -> int:
    """Return the number of columns selected for a table by :func:`selected`."""
    return 1 + len(table.key) + (len(table.others) + 1 if row else 0) + 2 * old


def _version(table: Table, part: Sequence[Any], *, row: bool, old: bool) -> tuple[str, Version]:
    xmin, *values = part
    first = len(table.key)
    key = key_of(table.name, values[:first])
    if not row:
        return key, Version(number=int(xmin), seen=SeenRow(row={}))
    second = first + len(table.others)
    others = map(value_text, values[first:second])
    replaced, cells = values[second + 1 :] if old else (None, "")
    return key, Version(
        number=int(xmin),
        seen=SeenRow(row=dict(zip(table.others, others, strict=True))),
        cells=table.row(exact_json(values[second])),
        old=None if replaced is None else int(replaced),
        old_cells={} if replaced is None else table.row(exact_json(cells)),
    )


def transaction_of(rows: Sequence[Sequence[Any]]) -> int | None:
    """Return the transaction number in a result of :func:`selected`.

    Return ``None`` if the result is empty, or if the transaction has no number because it has not
    written anything yet.
    """
    return None if not rows or rows[0][0] is None else int(rows[0][0]) % 2**32


def returned_rows_query(
    statement: Statement,
    table: Table,
    rows: Sequence[Sequence[Any]],
    names: Sequence[str] = (),
) -> str | None:
    """Return a query for the rows received by the application, selected by primary key.

    Args:
        statement: the statement that returned the rows.
        table: the only table of the statement.
        rows: the received rows, at least one. Each value is in the form that the server reads;
            ``None`` represents an unknown value.
        names: the column names of the rows, if the statement returns all columns.

    Returns:
        The query; ``None`` if the rows do not contain all columns of the primary key.
    """
    (source,) = statement.plan.sources
    output = [_named_column(one, source.alias) for one in statement.output_expressions()]
    if output == ["*"]:
        output = list(names)
    if len(rows[0]) != len(output) or not set(table.key) <= set(output):
        return None
    places = [output.index(one) for one in table.key]
    if any(row[n] is None for row in rows for n in places):
        return None
    columns = ", ".join(f"{source.name}.{one}" for one in _key(table))
    keys = ", ".join(f"({', '.join(_quoted(row[n]) for n in places)})" for row in rows)
    return (
        f"SELECT {selected([(source.name, table)], row=True)} FROM {source.name} "
        f"WHERE ({columns}) IN ({keys})"
    )


def _named_column(text: str, alias: str) -> str:
    """Return the table's column named by an output expression, without quotes.

    Return ``*`` for all columns, and an empty string for any other expression.
    """
    if text == "*" or (text.endswith(".*") and catalogue_name(text[:-2]) == catalogue_name(alias)):
        return "*"
    found = _OUTPUT_COLUMN.fullmatch(text)
    if found is None or found["name"].isdigit():
        return ""
    qualified = found["alias"]
    own = qualified is None or catalogue_name(qualified) == catalogue_name(alias)
    return catalogue_name(found["name"]) if own else ""


def _quoted(value: Any) -> str:
    text = value.decode() if isinstance(value, bytes) else str(value)
    return "'" + text.replace("'", "''") + "'"
