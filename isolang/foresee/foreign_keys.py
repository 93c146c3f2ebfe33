"""Reads the primary keys that are also foreign keys from a database's catalogue.

SOUND BECAUSE: only foreign keys in the catalogue are used. If a primary key column refers to a
column of another primary key, both columns contain the same values. Therefore, equal values of
these columns within a transaction are the same parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from isolang.errors import UnsupportedError, message_in_one_line
from isolang.run.adapter import import_package

if TYPE_CHECKING:
    from isolang.history.history import History

KeyColumn: TypeAlias = tuple[str, int | str]
"""A column: the name of its table in a history, and its position in the primary key, or its name if
it is in none."""

_NAME: Final = (
    "CASE WHEN {0}n.nspname = 'public' THEN {0}c.relname "
    "ELSE {0}n.nspname || '.' || {0}c.relname END::text"
)
_TABLES: Final = f"""SELECT {_NAME.format("")}, array_agg(a.attname::text ORDER BY k.place)
 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary
 CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(att, place)
 JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.att GROUP BY 1"""
_KEYS: Final = f"""SELECT {_NAME.format("")}, k.place - 1, {_NAME.format("r")}, rk.place - 1
 FROM pg_catalog.pg_constraint f
 JOIN pg_catalog.pg_class c ON c.oid = f.conrelid
 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 JOIN pg_catalog.pg_class rc ON rc.oid = f.confrelid
 JOIN pg_catalog.pg_namespace rn ON rn.oid = rc.relnamespace
 JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary
 JOIN pg_catalog.pg_index ri ON ri.indrelid = rc.oid AND ri.indisprimary
 CROSS JOIN LATERAL unnest(f.conkey, f.confkey) AS p(own, other)
 JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(att, place) ON k.att = p.own
 JOIN LATERAL unnest(ri.indkey::int2[]) WITH ORDINALITY AS rk(att, place) ON rk.att = p.other
 WHERE f.contype = 'f' AND f.convalidated ORDER BY 1, 2, 3, 4"""


class ForeignKeys(Struct, frozen=True, kw_only=True):
    """The primary key columns that are foreign keys to other primary keys.

    Attributes:
        refers: pairs of such columns; the first column refers to the second.
    """

    columns: Mapping[str, tuple[str, ...]]
    refers: tuple[tuple[KeyColumn, KeyColumn], ...]

    def column_name(self, one: KeyColumn) -> str:
        """Return a column as text: ``savings.customer``."""
        table, place = one
        return f"{table}.{self.columns[table][place] if isinstance(place, int) else place}"

    def sentences(self, tables: Collection[str]) -> list[str]:
        """Return sentences naming the foreign keys of these tables."""
        return [
            f"{self.column_name(column)} is {self.column_name(referred)}, by a foreign key of the "
            "database"
            for column, referred in self.refers
            if column[0] in tables
        ]


def foreign_keys(url: str) -> ForeignKeys:
    """Read the foreign keys from a PostgreSQL database's catalogue.

    Raises:
        UnsupportedError: the database cannot be reached.
    """
    psycopg: Any = import_package("psycopg", "postgres")
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            tables = connection.execute(_TABLES).fetchall()
            keys = connection.execute(_KEYS).fetchall()
    except psycopg.Error as error:
        raise UnsupportedError(
            f"--foreign-keys: the catalogue cannot be read (got {message_in_one_line(error)}, "
            "expected the URL of a PostgreSQL database)"
        ) from None
    return ForeignKeys(
        columns={name: tuple(columns) for name, columns in tables},
        refers=tuple(((a, int(m)), (b, int(n))) for a, m, b, n in keys if (a, m) != (b, n)),
    )


def domains(
    same_keys: Iterable[Collection[str]],
    found: ForeignKeys | None,
    recorded: Iterable[tuple[KeyColumn, KeyColumn]] = (),
) -> Mapping[KeyColumn, KeyColumn]:
    """Return the domain of each column that shares its values with another column.

    >>> two = ForeignKeys(columns={}, refers=((("savings", 0), ("customer", 0)),))
    >>> domains([], two)[("savings", 0)]
    ('customer', 0)
    """
    group: dict[KeyColumn, KeyColumn] = {}

    def root(one: KeyColumn) -> KeyColumn:
        while group.setdefault(one, one) != one:
            one = group[one]
        return one

    for own, other in (*(found.refers if found is not None else ()), *recorded):
        if root(own) != root(other):
            group[root(own)] = root(other)
    for tables in same_keys:
        first = min(tables)
        for table in tables:
            for place in range(_MOST_COLUMNS):
                if root((table, place)) != root((first, place)):
                    group[root((table, place))] = root((first, place))
    return {one: root(one) for one in group}


_MOST_COLUMNS: Final = 32  # the largest number of columns in a PostgreSQL primary key


def require_tables(history: History, tables: Collection[str], found: ForeignKeys) -> None:
    """Require that the catalogue has some tables of a run.

    Raises:
        UnsupportedError: the catalogue has none of them, so it belongs to another database.
    """
    if not any(table in found.columns for table in tables):
        raise UnsupportedError(
            f"{history.name}: the catalogue contains none of the run's tables "
            f"(got {', '.join(sorted(tables)) or 'no table in any key'}, "
            "expected some of "
            f"{', '.join(sorted(found.columns)) or 'no table with a primary key'}); "
            "hint: --foreign-keys takes the URL of the database that the run "
            "used"
        )
