"""Builds the SQL statements for the operations on a table, in the dialect of a database."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from isolang.run.operation import Condition, bounds_in, condition_in, keys_in
from isolang.run.settings import Access, Update

ON_CONFLICT: Final = (
    "INSERT INTO {table} (k, j, v) VALUES ({marks}) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
)
ON_DUPLICATE_KEY: Final = (
    "INSERT INTO {table} (k, j, v) VALUES ({marks}) ON DUPLICATE KEY UPDATE v = VALUES(v)"
)

MERGE: Final = (
    "MERGE INTO {table} t USING (SELECT {mark} AS k, {mark} AS j, {value} AS v) s ON t.k = s.k "
    "WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT (k, j, v) VALUES (s.k, s.j, s.v)"
)

INDEXES: Final = (
    "CREATE UNIQUE INDEX {name}_by_j ON {table} (j)",
    "CREATE INDEX {name}_by_v ON {table} (v)",
    "CREATE INDEX {name}_by_v_and_k ON {table} (v, k)",
)
"""The indexes of a table whose reads take several access paths: unique, secondary, composite.

``{name}`` is the prefix of the index's name, which has no schema."""

PARTIAL: Final = "CREATE INDEX {name}_with_v ON {table} (v) WHERE v IS NOT NULL"
"""An index on the rows whose value is not NULL."""

_READ_CONDITIONS: Final = (
    "k = {low}", "j = {low}", "COALESCE(k, '') = {low}", "k = {low} AND j = {low}",
    "k IN ({low}, {low}) OR j = {low}",
)  # fmt: skip
_SCAN_CONDITIONS: Final = (
    "k BETWEEN {low} AND {high}", "j >= {low} AND j <= {high}",
    "NOT (k < {low} OR k > {high})", "COALESCE(k, '') BETWEEN {low} AND {high}",
    "k = {low} OR (j > {low} AND j <= {high})",
)  # fmt: skip
_SELECT_CONDITIONS: Final = (
    "v BETWEEN {low} AND {high}", "v >= {low} AND v <= {high} ORDER BY v DESC, k",
    "NOT (v < {low} OR v > {high})", "v + 0 BETWEEN {low} AND {high}",
    "v = {low} OR (v > {low} AND v <= {high})", "v BETWEEN {low} AND {high} AND k > ''",
)  # fmt: skip
"""Conditions that select the same rows, but make databases take different access paths.

The paths use the primary key; the unique, the secondary or the composite index; or no index,
because no index covers the expression. Conditions with OR and NOT may combine indexes, and must not
return a row whose value is NULL.
"""

_CONDITIONS: Final[Mapping[Condition, tuple[str, ...]]] = {
    "null": ("v IS NULL", "NOT (v IS NOT NULL)", "COALESCE(v, -1) = -1"),
    "not null": ("v IS NOT NULL", "NOT (v IS NULL)", "v > -1"),
    "outside": ("NOT (v BETWEEN {mark} AND {mark})", "(v < {mark} OR v > {mark})",
                "v NOT BETWEEN {mark} AND {mark}"),
}  # fmt: skip
"""For each condition on values, several equivalent forms. No written value is negative."""

_UNINDEXED: Final = re.compile(r"COALESCE|v \+ 0")
"""Matches the conditions that no index can support."""


class Query(Struct, frozen=True):
    """A query with two bounds, each of which may occur several times.

    Attributes:
        bounds: for each placeholder in order, whether it stands for the lower bound (0) or the
            upper bound (1).
    """

    sql: str
    bounds: tuple[int, ...]

    def values(self, low: Any, high: Any) -> tuple[Any, ...]:
        """Return the parameters of the query for these two bounds."""
        return tuple((low, high)[bound] for bound in self.bounds)


class Paths(Struct, frozen=True, kw_only=True):
    """The access paths for reads of a table; each statement takes one of them.

    Attributes:
        reads: queries for one key, which is both the lower and the upper bound.
        deletes: statements that delete the row with one key, which is both the lower and the upper
            bound.
    """

    reads: tuple[Query, ...]
    scans: tuple[Query, ...]
    selects: tuple[Query, ...]
    deletes: tuple[Query, ...]


def build_paths(d: Dialect, table: str) -> Paths:
    """Return all access paths for reads of a table with the dialect's indexes."""
    reads = f"SELECT v{d.version} FROM {table} WHERE "
    pairs = f"SELECT k, v FROM {table} WHERE "
    locking = tuple(f"{_READ_CONDITIONS[0]}{lock}" for lock in d.locks)

    def queries(select: str, conditions: Sequence[str], end: str = "") -> tuple[Query, ...]:
        by_place = (
            f"{one} AND {d.place}" for one in conditions if d.place and _UNINDEXED.match(one)
        )
        return tuple(_query(d, select + one + end) for one in (*conditions, *by_place))

    return Paths(
        reads=queries(reads, (*_READ_CONDITIONS, *locking)),
        scans=queries(pairs, _SCAN_CONDITIONS),
        selects=queries(pairs, _SELECT_CONDITIONS),
        deletes=queries(f"DELETE FROM {table} WHERE ", _READ_CONDITIONS, d.returning),
    )


def _query(d: Dialect, text: str) -> Query:
    bounds = tuple(int(name == "{high}") for name in re.findall(r"\{low\}|\{high\}", text))
    return Query(text.format(low=d.mark, high=d.mark), bounds)


class Dialect(Struct, frozen=True, kw_only=True):
    """The SQL dialect of a database.

    Attributes:
        mark: the placeholder for a parameter.
        upsert: the statement that inserts or updates a row, with the table and the placeholders for
            k, j and v still to be filled in; empty if the database has none.
        concat: the expression that concatenates the column v and a parameter.
        key: the column type for keys.
        text: the column type for long texts, used for lists.
        changed: the clause that makes an UPDATE return the keys of all changed rows; empty if the
            database has no such clause, in which case a SELECT must find the rows by their new
            value.
        version: a comma and the columns that identify the version of a row, also selected by reads;
            empty if rows have no such columns.
        returning: the RETURNING clause of writes, beginning with a space.
        by_index: the statement that makes a connection use indexes even for a table of one page.
        tables: the text that follows ``CREATE TABLE (…)``.
        batch: the number of rows per INSERT when a table is loaded.
        indexes: the statements that create the indexes of a table whose reads take several access
            paths.
        merge: the MERGE that inserts or updates a row, with the table and the placeholders for k, j
            and v still to be filled in; empty if the database has none.
        place: a condition on the physical positions of rows (such as ``rowid``) that every row
            satisfies, used to scan all rows by position; empty if the database does not expose
            positions.
        locks: the SELECT clauses that lock the rows read, for update and for share; empty unless
            the database has both.
        skip: the SELECT clause that locks rows and skips rows locked by others; empty if the
            database has none.
        cascades: whether a foreign key can delete child rows with the row that they refer to.
        explain: the prefix that makes the database return a query's plan, in the last column of the
            result.
    """

    mark: str
    upsert: str = ON_CONFLICT
    concat: str = "v || {mark}"
    key: str = "VARCHAR(64)"
    text: str = "TEXT"
    changed: str = " RETURNING k"
    version: str = ""
    returning: str = ""
    by_index: str = ""
    tables: str = ""
    batch: int = 500
    indexes: tuple[str, ...] = INDEXES
    merge: str = ""
    place: str = ""
    locks: tuple[str, ...] = ()
    skip: str = ""
    cascades: bool = False
    explain: str = "EXPLAIN "


class Statements(Struct, frozen=True, kw_only=True):
    """The statements for the operations on a table; the attributes list their parameters in order.

    Attributes:
        change: the new value, and the smallest and the largest old value.
        changed: a value; the statement returns the keys of the rows with that value.
        put: the key, the key again, and the value; empty if the database has no upsert.
        merge: the parameters of ``put``; empty if the database has no MERGE.
        insert_rows: the beginning of an INSERT of several rows, without the rows.
        returning: the clause at the end of an INSERT.
        within: the smallest and the largest value, and the first and the last key.
        take: the smallest and the largest value; empty if the database cannot skip locked rows.
        remove_row: the smallest and the largest value, and the key.
        where: for each condition, several equivalent statements, with the smallest and the largest
            value (if the condition has a range), and the first and the last key.
    """

    read: str
    write: str
    append: str
    insert: str
    delete: str
    scan: str
    select: str
    change: str
    changed: str
    update: Update
    put: str
    merge: str
    insert_rows: str
    returning: str
    within: str
    take: str
    remove: str
    remove_row: str
    clear: str
    where: Mapping[Condition, tuple[str, ...]]

    def write_parameters(self, key: Any, value: Any) -> tuple[Any, ...]:
        """Return the parameters of ``write``."""
        if self.update == "row":
            return key, key, value, key
        return (key, key, value) if self.update == "upsert" else (value, key)


def build_statements(d: Dialect, table: str, access: Access, update: Update) -> Statements:
    """Build the statements for a table, for one access path and one write form."""
    m, r = d.mark, d.returning
    column = "k" if access == "index" else "j"
    insert = f"INSERT INTO {table} (k, j, v) VALUES ({m}, {m}, {m})"
    upsert = d.upsert.format(table=table, marks=f"{m}, {m}, {m}")
    merge = d.merge.format(table=table, mark=m, value=f"CAST({m} AS BIGINT)")
    select = f"SELECT k, v FROM {table} WHERE v BETWEEN {m} AND {m}"
    pairs, ends = f"SELECT k, v FROM {table} WHERE", f"{column} BETWEEN {m} AND {m}"
    columns = f"k = {m}, j = {m}, v = {m}" if update == "row" else f"v = {m}"
    change = f"UPDATE {table} SET {columns} WHERE {column} = {m}"
    return Statements(
        read=f"SELECT v{d.version} FROM {table} WHERE {column} = {m}",
        write=(upsert if update == "upsert" else change) + r,
        append=f"UPDATE {table} SET v = {d.concat.format(mark=m)} WHERE {column} = {m}{r}",
        insert=insert + r,
        delete=f"DELETE FROM {table} WHERE {column} = {m}{r}",
        scan=f"SELECT k, v FROM {table} WHERE {column} BETWEEN {m} AND {m}",
        select=select,
        change=f"UPDATE {table} SET v = {m} WHERE v BETWEEN {m} AND {m}{d.changed}",
        changed=f"SELECT k FROM {table} WHERE v = {m}",
        update=update,
        put=upsert and upsert + r,
        merge=merge,
        insert_rows=f"INSERT INTO {table} (k, j, v) VALUES ",
        returning=r,
        within=f"{select} AND {column} BETWEEN {m} AND {m}",
        take=f"{select} ORDER BY k LIMIT 1{d.skip}" if d.skip else "",
        remove=f"DELETE FROM {table} WHERE v BETWEEN {m} AND {m}{d.changed}",
        remove_row=f"DELETE FROM {table} WHERE v BETWEEN {m} AND {m} AND k = {m}",
        clear=f"UPDATE {table} SET v = NULL WHERE {column} = {m}{r}",
        where={
            condition: tuple(f"{pairs} {one.format(mark=m)} AND {ends}" for one in forms)
            for condition, forms in _CONDITIONS.items()
        },
    )


def insert_of_child(d: Dialect, table: str) -> str:
    """Return the INSERT of a child row; it takes its key twice, its value, and its parent's key."""
    marks = ", ".join([d.mark] * 4)
    return f"INSERT INTO {table} (k, j, v, p) VALUES ({marks}){d.returning}"


def offered_features(d: Dialect, *, cascading: bool) -> frozenset[str]:
    """Return the features of a dialect, as listed in a target's ``offers``."""
    able = {
        "row locks": bool(d.locks),
        "skip locked": bool(d.skip),
        "upsert": bool(d.upsert),
        "merge": bool(d.merge),
        "rows at once": d.batch > 1,
        "two ranges": True,
        "nulls": True,
        "cascades": cascading,
    }
    return frozenset(name for name, has in able.items() if has)


def query_sent(s: Statements, mark: str, predicate: str) -> str:
    """Return the query sent by a client for a recorded predicate, for explanations."""
    keys, condition = keys_in(predicate), condition_in(predicate)
    if condition in ("null", "not null"):
        return fill_in(
            s.where[condition][0], mark, (quote_literal(keys[0]), quote_literal(keys[-1]))
        )
    bounds = tuple(map(str, bounds_in(predicate)))
    if condition == "outside":
        ends = (quote_literal(keys[0]), quote_literal(keys[-1]))
        return fill_in(s.where[condition][0], mark, (*bounds, *ends))
    if not keys:
        return fill_in(s.select, mark, bounds)
    return fill_in(s.within, mark, (*bounds, quote_literal(keys[0]), quote_literal(keys[-1])))


def fill_in(sql: str, mark: str, values: Sequence[str]) -> str:
    """Return a statement with its parameters filled in, for explanations."""
    parts = sql.split(mark)
    return "".join(part + value for part, value in zip(parts, [*values, ""], strict=True))


def quote_literal(text: str) -> str:
    """Quote a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
