"""Builds the SQL statement for each operation on a table, in the dialect of a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from isolang.run.settings import Access, Update

ON_CONFLICT: Final = (
    "INSERT INTO {table} (k, j, v) VALUES ({marks}) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
)
ON_DUPLICATE_KEY: Final = (
    "INSERT INTO {table} (k, j, v) VALUES ({marks}) ON DUPLICATE KEY UPDATE v = VALUES(v)"
)


class Dialect(Struct, frozen=True, kw_only=True):
    """The SQL dialect of a database.

    Attributes:
        mark: the placeholder for a parameter.
        upsert: the statement that inserts or updates a row, in which the table and the placeholders
            for k, j and v must be filled in.
        concat: the expression that concatenates the column v and a parameter.
        key: the column type for keys.
        text: the column type for long texts, in which lists are stored.
        changed: the clause that makes an UPDATE return the keys of all changed rows; empty if the
            database does not have it, so that a SELECT must lock the rows first.
        version: a comma and the columns that identify the version of a row, which reads also
            select; empty if rows do not have such columns.
        returning: the RETURNING clause of writes, which begins with a blank.
        by_index: the statement after which a connection uses the index even for a table of one
            page.
        tables: what follows after CREATE TABLE (…).
        batch: how many rows each INSERT contains when a table is loaded.
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


class Statements(Struct, frozen=True, kw_only=True):
    """The statements for the operations on a table; each attribute lists its parameters in order.

    Attributes:
        read: the key.
        write: the value and the key; if the statement is an upsert, twice the key and then the
            value.
        append: the text and the key.
        insert: twice the key, and then the value.
        delete: the key.
        scan: the first and the last key.
        select: the smallest and the largest value.
        lock: the smallest and the largest value; the statement locks the rows and returns their
            keys.
        change: the new value, and the smallest and the largest old value.
        upsert: whether ``write`` is an upsert.
    """

    read: str
    write: str
    append: str
    insert: str
    delete: str
    scan: str
    select: str
    lock: str
    change: str
    upsert: bool


def statements(d: Dialect, table: str, access: Access, update: Update) -> Statements:
    """Build the statements for a table, depending on how rows shall be found and written."""
    m, r = d.mark, d.returning
    column = "k" if access == "index" else "j"
    insert = f"INSERT INTO {table} (k, j, v) VALUES ({m}, {m}, {m})"
    upsert = d.upsert.format(table=table, marks=f"{m}, {m}, {m}")
    change = f"UPDATE {table} SET v = {m} WHERE {column} = {m}"
    return Statements(
        read=f"SELECT v{d.version} FROM {table} WHERE {column} = {m}",
        write=(upsert if update == "upsert" else change) + r,
        append=f"UPDATE {table} SET v = {d.concat.format(mark=m)} WHERE {column} = {m}{r}",
        insert=insert + r,
        delete=f"DELETE FROM {table} WHERE {column} = {m}{r}",
        scan=f"SELECT k, v FROM {table} WHERE {column} BETWEEN {m} AND {m}",
        select=f"SELECT k, v FROM {table} WHERE v BETWEEN {m} AND {m}",
        lock=f"SELECT k FROM {table} WHERE v BETWEEN {m} AND {m} FOR UPDATE",
        change=f"UPDATE {table} SET v = {m} WHERE v BETWEEN {m} AND {m}{d.changed}",
        upsert=update == "upsert",
    )


def filled(sql: str, mark: str, values: Sequence[str]) -> str:
    """Return a statement in which the parameters are filled in, for explanations."""
    parts = sql.split(mark)
    return "".join(part + value for part, value in zip(parts, [*values, ""], strict=True))


def literal(text: str) -> str:
    """Quote a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
