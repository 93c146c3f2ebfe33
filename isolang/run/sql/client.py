"""Runs the operations of transactions over a DB-API connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Protocol

from isolang.run.adapter import BaseClient
from isolang.run.marks.commit_tokens import new_token, resolve_token
from isolang.run.operation import DELETED, SelectWhere, SeveralRows, parent_key
from isolang.run.outcome import BadAnswer, Outcome, RolledBack

if TYPE_CHECKING:
    from isolang.run.sql.statements import Paths, Query, Statements
    from isolang.run.sql.target import SqlTarget


class Cursor(Protocol):
    """A DB-API cursor."""

    rowcount: int

    def fetchone(self) -> Any:
        """Return the next row; if there are no more rows, return ``None``."""
        ...

    def fetchall(self) -> Any:
        """Return all remaining rows."""
        ...


class SqlClient(BaseClient):
    """A client that runs its operations over one DB-API connection."""

    def __init__(self, target: SqlTarget, raw: Any) -> None:
        self.target = target
        self.raw = raw
        self.wrote = False
        self.token = ""

    def begin(self, level: str) -> None:
        """Begin a transaction at this level."""
        self.wrote, self.token = False, ""
        self._begin(level)

    def _begin(self, level: str) -> None:
        raise NotImplementedError

    def commit(self) -> None:
        """Commit; if the target uses tokens, write the transaction's token first.

        Raises:
            RolledBack: the token could not be written, so COMMIT was not sent.
        """
        if self.wrote and self.target.tokens:
            self.token = new_token()
            try:
                self.execute(*self._leave(self.token, 1))
            except Exception as error:
                self.rollback()
                raise RolledBack(str(error)) from error
        self._commit()

    def _commit(self) -> None:
        self.target.driver.commit(self.raw)

    def rollback(self) -> None:
        """Roll back the transaction; raise an error if it may still be applied."""
        self.target.driver.rollback(self.raw)

    def _leave(self, token: str, value: int) -> tuple[str, tuple[str, int]]:
        mark = self.target.dialect.mark
        sql = f"INSERT INTO {self.target.prefix}tokens (k, v) VALUES ({mark}, {mark})"
        return sql, (token, value)

    def execute(self, sql: str, values: tuple[Any, ...]) -> Cursor:
        """Send a statement, and return the cursor with its result."""
        cursor: Cursor = self.raw.cursor()
        cursor.execute(sql, values)  # type: ignore[attr-defined]
        return cursor

    def count_written(self, cursor: Cursor) -> int:
        """Return the number of rows changed by a write; for drivers that miscount, correct it."""
        return cursor.rowcount

    def _wrote(self, cursor: Cursor) -> int:
        self.wrote = True
        return self.count_written(cursor)

    def _statements_for(self, key: str) -> Statements:
        return self.target.statements_of(key)

    def _query(self, queries: Callable[[Paths], tuple[Query, ...]]) -> Query | None:
        """Return the query for the chosen access path; ``None`` for the usual access path."""
        path, self.path = self.path, 0
        if not path:
            return None
        ways = queries(self.target.paths)
        return ways[path % len(ways)]

    def read_rows(self, key: str) -> Any:
        """Return the rows that a read of the key finds; with a broken index, none or several."""
        way, s = self._query(lambda paths: paths.reads), self._statements_for(key)
        lock, self.lock = self.lock, ""
        if lock:
            clause = self.target.dialect.locks[lock == "share"]
            return self.execute(s.read + clause, (key,)).fetchall()
        if way is None or s is not self.target.registers:
            return self.execute(s.read, (key,)).fetchall()
        return self.execute(way.sql, way.values(key, key)).fetchall()

    def read(self, key: str) -> Any:
        """Return the value of a row; if there is no such row, return ``DELETED``."""
        return self.value_found(key, self.read_rows(key))

    def value_found(self, key: str, rows: Sequence[Any]) -> Any:
        """Return the only row's value, ``DELETED`` without a row, or the values of several rows."""
        values = tuple(self._value(key, value) for value, *_ in rows)
        if len(values) > 1:
            return SeveralRows(values)
        return values[0] if values else DELETED

    def _value(self, key: str, value: Any) -> Any:
        if self.target.holds_list(key):
            return [int(element) for element in value.split()]
        return value

    def write(self, key: str, value: int) -> bool:
        """Update a row, and return true; if the row does not exist, return false.

        An upsert always writes, so its row count is ignored: Firebird's driver counts only inserted
        rows.
        """
        path, self.path, s = self.path, 0, self._statements_for(key)
        if path and s is self.target.registers:
            s = self.target.forms[path % len(self.target.forms)]
        found = self._wrote(self.execute(s.write, s.write_parameters(key, value))) > 0
        if s.update == "upsert":
            return True
        if not found and s.update == "insert":
            self.insert(key, value)
            return True
        return found

    def append(self, key: str, value: int) -> bool:
        """Append to the list in a row, and return true; if the row does not exist, return false."""
        return self._wrote(self.execute(self._statements_for(key).append, (f" {value}", key))) > 0

    def insert(self, key: str, value: int) -> None:
        """Insert a row; the database raises an error if the row already exists."""
        s = self._statements_for(key)
        parent = (parent_key(key),) if s is self.target.child_statements else ()
        self._wrote(self.execute(s.insert, (key, key, value, *parent)))

    def insert_rows(self, rows: Sequence[tuple[str, int]]) -> None:
        """Insert several rows in one statement."""
        s, m = self.target.registers, self.target.dialect.mark
        sql = s.insert_rows + ", ".join([f"({m}, {m}, {m})"] * len(rows)) + s.returning
        flat = tuple(one for key, value in rows for one in (key, key, value))
        self._wrote(self.execute(sql, flat))

    def insert_or_update(self, key: str, value: int, *, merge: bool = False) -> None:
        """Insert or update a row in one statement."""
        s = self.target.registers
        if merge:
            self.wrote = True
            self.execute(s.merge, (key, key, value))
        else:
            self._wrote(self.execute(s.put, (key, key, value)))

    def delete(self, key: str) -> bool:
        """Delete a row, and return true; if the row does not exist, return false."""
        way, s = self._query(lambda paths: paths.deletes), self._statements_for(key)
        if way is None or s is not self.target.registers:
            return self._wrote(self.execute(s.delete, (key,))) > 0
        return self._wrote(self.execute(way.sql, way.values(key, key))) > 0

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Return the values of all rows with keys from ``low`` to ``high``."""
        way = self._query(lambda paths: paths.scans)
        if way is None or self.target.holds_list(low):
            rows = self.execute(self._statements_for(low).scan, (low, high)).fetchall()
        else:
            rows = self.execute(way.sql, way.values(low, high)).fetchall()
        return self._by_key(f"keys {low} to {high}", rows)

    def select(self, low: int, high: int) -> dict[str, Any]:
        """Return the values of all rows with values from ``low`` to ``high``, by key."""
        way = self._query(lambda paths: paths.selects)
        if way is None:
            rows = self.execute(self.target.registers.select, (low, high)).fetchall()
        else:
            rows = self.execute(way.sql, way.values(low, high)).fetchall()
        return self._by_key(f"values {low} to {high}", rows)

    def _by_key(self, where: str, rows: Sequence[Any]) -> dict[str, Any]:
        found = {key: self._value(key, value) for key, value in rows}
        if len(found) < len(rows):
            raise BadAnswer(f"{where}: a row was returned twice")
        return found

    def within(self, low: int, high: int, first: str, last: str) -> dict[str, Any]:
        """Return the values of all rows whose value and key are in the given ranges, by key."""
        bounds = (low, high, first, last)
        rows = self.execute(self.target.registers.within, bounds).fetchall()
        return self._by_key(f"values {low} to {high}, keys {first} to {last}", rows)

    def clear(self, key: str) -> bool:
        """Set the value of a row to NULL, and return true; return false if there is no such row."""
        return self._wrote(self.execute(self.target.registers.clear, (key,))) > 0

    def where(self, where: SelectWhere) -> dict[str, Any]:
        """Return the rows in a key range whose values satisfy a condition, by key."""
        path, self.path = self.path, 0
        forms = self.target.registers.where[where.condition]
        bounds = (where.low, where.high) if where.condition == "outside" else ()
        ends = (where.keys[0], where.keys[-1])
        rows = self.execute(forms[path % len(forms)], (*bounds, *ends)).fetchall()
        return self._by_key(f"values {where.condition}, keys {ends[0]} to {ends[1]}", rows)

    def change(self, low: int, high: int, value: int) -> list[str]:
        """Update the rows with values from ``low`` to ``high``, and return their keys.

        SOUND BECAUSE: no other statement writes ``value``, so if UPDATE cannot return the keys of
        the rows that it has changed, these are the rows that now have this value. It is not enough
        to lock the rows with SELECT FOR UPDATE first: in HSQLDB and Firebird this locks no rows,
        and UPDATE may then change other rows.

        Raises:
            RolledBack: UPDATE changed more or fewer rows than have the value, so the keys of the
                changed rows are unknown.
        """
        s = self.target.registers
        cursor = self.execute(s.change, (value, low, high))
        self.wrote = True
        if self.target.dialect.changed:
            return [key for (key,) in cursor.fetchall()]
        number = self.count_written(cursor)
        rows = self.execute(s.changed, (value,)).fetchall()
        if len(rows) != number:
            raise RolledBack(f"UPDATE changed {number} rows, but {len(rows)} have its value")
        return [key for (key,) in rows]

    def remove(self, low: int, high: int) -> list[str]:
        """Delete the rows with values from ``low`` to ``high``, and return their keys.

        If the database can neither return the keys nor lock the rows first, delete them one by one.

        Raises:
            RolledBack: DELETE removed more or fewer rows than were locked before, so the keys of
                the removed rows are unknown.
        """
        s, d, bounds = self.target.registers, self.target.dialect, (low, high)
        self.wrote = True
        if d.changed:
            return [key for (key,) in self.execute(s.remove, bounds).fetchall()]
        if not d.locks:
            found = [key for key, _ in self.execute(s.select, bounds).fetchall()]
            return [
                k for k in found if self.count_written(self.execute(s.remove_row, (*bounds, k))) > 0
            ]
        rows = self.execute(s.select + d.locks[0], bounds).fetchall()
        if len(rows) != self.count_written(self.execute(s.remove, bounds)):
            raise RolledBack("rows appeared between SELECT FOR UPDATE and DELETE")
        return [key for key, _ in rows]

    def take(self, low: int, high: int) -> dict[str, Any]:
        """Lock and return one unlocked row with a value from ``low`` to ``high``."""
        return dict(self.execute(self.target.registers.take, (low, high)).fetchall())

    def rows_of(self, table: str) -> list[tuple[str, Any]]:
        """Return the keys and values of all rows in a table."""
        rows = self.execute(f"SELECT k, v FROM {table}", ()).fetchall()
        return [(key, self._value(key, value)) for key, value in rows]

    def savepoint(self) -> None:
        """Set a savepoint."""
        self.execute("SAVEPOINT isocheck", ())

    def rollback_to_savepoint(self) -> None:
        """Undo all changes since the savepoint."""
        self.execute("ROLLBACK TO SAVEPOINT isocheck", ())

    def resolve(self) -> Outcome:
        """Find out from the token how the transaction ended.

        SOUND BECAUSE: tokens are unique, and an INSERT waits for any open transaction that has
        inserted the same token.
        """
        return resolve_token(self.token, self._has_committed)

    def _has_committed(self, token: str) -> bool | None:
        with closing(self.target.connect(direct=True)) as other:
            with suppress(Exception):
                other.execute(*self._leave(token, 0))
                other.raw.commit()
            other.raw.rollback()
            mark, name = self.target.dialect.mark, f"{self.target.prefix}tokens"
            found = other.execute(f"SELECT v FROM {name} WHERE k = {mark}", (token,)).fetchone()
            return None if found is None else bool(found[0] == 1)

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()
