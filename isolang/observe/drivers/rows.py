"""Builds the queries by which a watch finds the rows that an application's statement accesses.

Other functions of this module interpret the results. A watch sends these queries to PostgreSQL over
the application's connection, in the same transaction as the application's statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from isolang.observe.catalogue import described, exact_json, recorded_row, whole_row
from isolang.observe.drivers.changes import LONGEST, SeenRow, value_text
from isolang.observe.drivers.observed import key_of
from isolang.observe.drivers.statements import Statement
from isolang.observe.lexer import raw
from isolang.observe.unseen import KEY_TYPE
from isolang.observe.values import RecordedColumn

_OUTPUT_COLUMN: Final = re.compile(
    r"""(?:(?P<alias>.+)\.)?(?P<name>\w+|"(?:[^"]|"")*")(?:\s+as\s+(?:\w+|"(?:[^"]|"")*"))?""",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)


class WatchedTable(Struct, frozen=True, kw_only=True):
    """A table whose rows a watch can identify by their primary key.

    Attributes:
        name: the name of the table in the history, without the schema if that is ``public``.
        columns: the columns of the primary key, as they are written in SQL.
        others: the other columns, as they are written in SQL.
        keys: the columns of each unique index; each set of values belongs to one row at most.
        qualified: the name with its schema, as it is written in SQL.
        cells: the columns whose values isolang can compare, by name.
        quoted: the names of these columns, as they are written in SQL.
    """

    name: str
    columns: tuple[str, ...]
    others: tuple[str, ...] = ()
    keys: tuple[frozenset[str], ...] = ()
    qualified: str = ""
    cells: Mapping[str, RecordedColumn] = {}
    quoted: tuple[str, ...] = ()

    def key(self, values: Sequence[str]) -> str:
        """Return the key in the history of the row with these primary key values."""
        return key_of(self.name, values)

    def selected(self, alias: str, *, row: bool = False, old: bool = False) -> str:
        """Return the SQL expressions for the transaction number, ``xmin`` and the primary key.

        SOUND BECAUSE: if a row was written after a savepoint, its ``xmin`` is not the number of the
        transaction, so the number is selected separately.

        Args:
            alias: the name of the table in the statement.
            row: whether to add the beginnings of the other columns, and the comparable cells.
            old: whether to add ``xmin`` and the comparable cells of the row that a write replaced.
        """
        named = [f"{alias}.{one}::text" for one in ("xmin", *self.columns)]
        columns = [f"left({alias}.{one}::text, {LONGEST})" for one in self.others if row]
        if row:
            columns.append(self._whole(alias))
        if old:
            columns += ["old.xmin::text", self._whole("old")]
        return ", ".join(["pg_current_xact_id_if_assigned()::text", *named, *columns])

    def _whole(self, alias: str) -> str:
        """Return the expression of the cells, as text."""
        return f"{whole_row(f'{alias}.{one}' for one in self.quoted)}::text"


class Version(Struct, frozen=True):
    """A version of a row, as a query of :meth:`WatchedTable.selected` returns it.

    Attributes:
        number: the number of the transaction that wrote the version, or of the subtransaction if
            the write came after a savepoint.
        seen: the columns of the row that were selected.
        cells: the values that isolang can compare, by column.
        old: the number of the version that the write replaced; ``None`` if it is not known or the
            write replaced no version.
        old_cells: the comparable values of the replaced version, by column.
    """

    number: int
    seen: SeenRow
    cells: Mapping[str, Any] = {}
    old: int | None = None
    old_cells: Mapping[str, Any] = {}


def table_of(answer: Sequence[Sequence[Any]], names: Mapping[str, str]) -> WatchedTable | None:
    """Return the table in the answer to a lookup; ``None`` if its rows cannot be identified.

    SOUND BECAUSE: with rules, row security, child tables or without the right to select, the
    results of RETURNING and of a second SELECT could differ from what the application's statement
    did, or the queries could fail.

    Args:
        answer: the rows of the answer to :func:`isolang.observe.catalogue.lookup` of one name.
        names: the names of tables in the history, if they differ from those in the database.
    """
    table = described(answer[0][0])[1] if answer else None
    if table is None or table.why not in ("", KEY_TYPE) or table.partitioned:
        return None
    columns = tuple(table.quoted[one] for one in table.key)
    if any("%" in column for column in columns):
        return None
    cells = {
        name: column for name, column in table.columns.items() if "%" not in table.quoted[name]
    }
    return WatchedTable(
        name=names.get(table.name, table.name),
        columns=columns,
        others=tuple(one for one in table.others if "%" not in one),
        keys=table.unique,
        qualified=table.where,
        cells=cells,
        quoted=tuple(table.quoted[name] for name in cells),
    )


def matching(statement: Statement, table: WatchedTable, *, row: bool = False) -> str:
    """Return the query for the rows of a table that match the condition of a SELECT.

    Args:
        statement: the SELECT.
        table: the table that it reads.
        row: whether to select the other columns too, as in :meth:`WatchedTable.selected`.
    """
    return f"SELECT {table.selected(statement.alias, row=row)} FROM {statement.source}"


def versions(rows: Sequence[Sequence[Any]], table: WatchedTable) -> dict[str, Version | None]:
    """Return the version of each row in a result of :meth:`WatchedTable.selected`, by its key.

    SOUND BECAUSE: if two rows have the same key, the version of the key is ``None``. A snapshot of
    a whole transaction can contain two such rows: one that other transactions have deleted since,
    and one that this transaction inserted afterwards.
    """
    found: dict[str, Version | None] = {}
    for _, xmin, *values in rows:
        first, second = len(table.columns), len(table.columns) + len(table.others)
        key = table.key(values[:first])
        others = map(value_text, values[first:second])
        seen = SeenRow(row=dict(zip(table.others, others, strict=False)))
        cells, old, old_cells = [*values[second:], None, None, None][:3]
        version = Version(
            number=int(xmin),
            seen=seen,
            cells=_cells(table, cells),
            old=None if old is None else int(old),
            old_cells=_cells(table, None if old is None else old_cells),
        )
        found[key] = None if key in found else version
    return found


def _cells(table: WatchedTable, text: str | None) -> dict[str, Any]:
    return {} if text is None else recorded_row(table.cells, exact_json(text))


def transaction_of(rows: Sequence[Sequence[Any]]) -> int | None:
    """Return the transaction number in a result of :meth:`WatchedTable.selected`.

    Return ``None`` if the result is empty, or if the transaction has no number yet because it has
    written nothing.
    """
    return None if not rows or rows[0][0] is None else int(rows[0][0]) % 2**32


def returned_keys(
    statement: Statement,
    table: WatchedTable,
    rows: Sequence[Sequence[Any]],
    names: Sequence[str] = (),
) -> str | None:
    """Return a query for the rows that the application received, selected by their primary keys.

    Args:
        statement: the statement that returned the rows.
        table: the table of the statement.
        rows: the received rows, at least one. Each value is written as the server reads it;
            ``None`` stands for an unknown value.
        names: the names of the columns of the rows, if the statement returns all columns.

    Returns:
        The query; ``None`` if the rows do not contain all columns of the primary key.
    """
    output = [_output_column(one, statement.alias) for one in statement.returned]
    if output == ["*"]:
        output = list(names)
    if len(rows[0]) != len(output):
        return None
    columns = [raw(one) for one in table.columns]
    if not set(columns) <= set(output):
        return None
    places = [output.index(one) for one in columns]
    if any(row[n] is None for row in rows for n in places):
        return None
    return (
        f"SELECT {table.selected(statement.table, row=True)} FROM {statement.table} WHERE "
        + f"({', '.join(f'{statement.table}.{one}' for one in table.columns)}) IN ("
        + ", ".join(f"({', '.join(_quoted(row[n]) for n in places)})" for row in rows)
        + ")"
    )


def _output_column(text: str, alias: str) -> str:
    """Return the column of the table that an output expression names, without quotes.

    Return ``*`` for all columns, and an empty string for every other expression.
    """
    if text in ("*", f"{alias}.*"):
        return "*"
    found = _OUTPUT_COLUMN.fullmatch(text)
    if found is None or found["name"].isdigit():
        return ""
    qualified = found["alias"]
    own = qualified is None or raw(qualified) == raw(alias)
    return raw(found["name"]) if own else ""


def _quoted(value: Any) -> str:
    text = value.decode() if isinstance(value, bytes) else str(value)
    return "'" + text.replace("'", "''") + "'"
