"""The rows that a statement of an application reads or writes, asked of PostgreSQL itself.

Everything here is a query, and what its answer means; a watch sends it where the application's own
statement goes, in the same transaction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from isolang.testing.changes import LONGEST, Seen, value_text
from isolang.testing.observed import key_of
from isolang.testing.statements import Statement

# SOUND BECAUSE: with rules, row security, children or without the right to select, what RETURNING
# and a second SELECT answer could differ from what the application's statement did, or fail.
TABLE: Final = """
SELECT n.nspname, c.relname,
  array_agg(quote_ident(a.attname) ORDER BY a.attnum) FILTER (WHERE a.attnum = ANY (i.indkey)),
  array_agg(quote_ident(a.attname) ORDER BY a.attnum) FILTER (WHERE a.attnum <> ALL (i.indkey))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = to_regclass(%s) AND c.relkind = 'r' AND c.relpersistence <> 't'
  AND NOT (c.relhassubclass OR c.relhasrules OR c.relrowsecurity)
  AND has_table_privilege(c.oid, 'SELECT')
GROUP BY 1, 2"""

_SYSTEM: Final = frozenset({"pg_catalog", "information_schema"})
_PLAIN: Final = re.compile(r"[a-z_]\w*", re.ASCII)


class Table(Struct, frozen=True, kw_only=True):
    """A table whose rows can be named.

    Attributes:
        name: in the history; of the schema ``public`` without it.
        columns: of the primary key, as they are written.
        others: the other columns, likewise.
    """

    name: str
    columns: tuple[str, ...]
    others: tuple[str, ...] = ()

    def key(self, values: Sequence[str]) -> str:
        """The name of a row in the history."""
        return key_of(self.name, values)

    def selected(self, alias: str, *, row: bool = False) -> str:
        """``xmin`` and the primary key, as text; with ``row`` the beginnings of the others, too."""
        named = [f"{alias}.{one}::text" for one in ("xmin", *self.columns)]
        others = self.others if row else ()
        return ", ".join([*named, *(f"left({alias}.{one}::text, {LONGEST})" for one in others)])


class Version(Struct, frozen=True):
    """The version of a row.

    Attributes:
        number: of the transaction that wrote it.
        seen: its columns, where they were asked for.
    """

    number: int
    seen: Seen


def table_of(row: Sequence[Any] | None, names: Mapping[str, str]) -> Table | None:
    """What :data:`TABLE` answered; ``None`` if rows of the table cannot be named.

    Args:
        row: the answer, if there is one.
        names: of tables that have another one in the history.
    """
    if row is None or row[0] in _SYSTEM or any("%" in column for column in row[2]):
        return None
    schema, name, columns, others = row
    name = name if schema == "public" else f"{schema}.{name}"
    return Table(
        name=names.get(name, name),
        columns=tuple(columns),
        others=tuple(one for one in others or () if "%" not in one),
    )


def matching(statement: Statement, table: Table, *, row: bool = False) -> str:
    """The query of the rows that match the condition of a SELECT."""
    return f"SELECT {table.selected(statement.alias, row=row)} FROM {statement.source}"


def versions(rows: Sequence[Sequence[Any]], table: Table) -> dict[str, Version | None]:
    """The version of each row, by its key, of rows of :meth:`Table.selected`.

    SOUND BECAUSE: a key that has two rows has no version here. In a snapshot that is kept there can
    be two: one that others have deleted since, and one that was inserted after it.
    """
    found: dict[str, Version | None] = {}
    for xmin, *values in rows:
        key = table.key(values[: len(table.columns)])
        others = map(value_text, values[len(table.columns) :])
        seen = Seen(row=dict(zip(table.others, others, strict=False)))
        found[key] = None if key in found else Version(int(xmin), seen)
    return found


def returned_keys(statement: Statement, table: Table, rows: Sequence[Sequence[Any]]) -> str | None:
    """The query of the rows that a write returned, some; ``None`` if it returned no whole key."""
    places = []
    for column in table.columns:
        written = {column, f"{statement.alias}.{column}"}
        if _PLAIN.fullmatch(column):
            written |= {f'"{column}"', f'{statement.alias}."{column}"'}
        found = [n for n, one in enumerate(statement.returned) if one in written]
        if not found or len(rows[0]) != len(statement.returned):
            return None
        places.append(found[0])
    if any(row[n] is None for row in rows for n in places):
        return None
    return (
        f"SELECT {table.selected(statement.table, row=True)} FROM {statement.table} WHERE "
        + f"({', '.join(f'{statement.table}.{one}' for one in table.columns)}) IN ("
        + ", ".join(f"({', '.join(_quoted(row[n]) for n in places)})" for row in rows)
        + ")"
    )


def _quoted(value: Any) -> str:
    text = value.decode() if isinstance(value, bytes) else str(value)
    return "'" + text.replace("'", "''") + "'"
