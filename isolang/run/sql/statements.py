"""Builds one SQL statement for each operation on a table, in a database's dialect."""

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
        mark: the mark of a parameter.
        upsert: the statement that inserts or updates, with the table and the marks of k, j and v.
        concat: the expression that joins the column v and a parameter.
        key: the type of keys.
        text: the type of long texts, which hold lists.
        changed: the clause by which an UPDATE of many rows returns their keys; empty if a SELECT
            must lock the rows first.
        version: the columns that name the version of a row, after a comma; a read selects them,
            too.
        returning: the RETURNING clause of a write, with a leading blank.
        by_index: the statement that makes a connection find rows by the index, also in a table of
            one page.
        tables: the text after CREATE TABLE (…).
        batch: the number of rows of an INSERT that loads a table.
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
    """The statements for the operations on a table; the attributes list their parameters in order.

    Attributes:
        read: the key.
        write: the value and the key; for an upsert, twice the key and then the value.
        append: the text and the key.
        insert: twice the key, and then the value.
        delete: the key.
        scan: the first and the last key.
        select: the least and the largest value.
        lock: the least and the largest value; the statement selects the keys for update.
        change: the new value, and the least and the largest old value.
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
    """Return the statements on a table."""
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
    """Return a statement with its parameters filled in, to show it."""
    parts = sql.split(mark)
    return "".join(part + value for part, value in zip(parts, [*values, ""], strict=True))


def literal(text: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"
