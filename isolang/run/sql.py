"""What the adapters of SQL databases share: two tables, and one statement for each operation.

``registers`` has a number for each key, ``lists`` the elements of each key as a text. Both have an
indexed and an un-indexed copy of the key, so that rows can be reached by the index or by a scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

from isolang.run.operation import DELETED
from isolang.run.outcome import Outcome, RolledBack
from isolang.run.target import Address, Level, TargetError
from isolang.run.tokens import ask, new_token

if TYPE_CHECKING:
    from isolang.run.server import Server

Access: TypeAlias = Literal["index", "scan"]
"""How rows are found: by the primary key, or by a column without an index."""

Update: TypeAlias = Literal["update", "upsert", "insert"]
"""How rows are written: by UPDATE; by the dialect's INSERT that updates; by UPDATE, and INSERT
where there is no row."""

_BATCH = 500  # rows of an INSERT that loads a table


class Dialect(Struct, frozen=True, kw_only=True):
    """How a database writes its SQL.

    Attributes:
        mark: a parameter.
        upsert: whether it takes ``ON CONFLICT (k) DO UPDATE``; else ``ON DUPLICATE KEY UPDATE``.
        concat: joins the column v and a parameter.
        text: the type of short texts, long ones: of keys, and of lists.
        returning: what a write returns besides: a clause, with its blank.
        tables: what follows CREATE TABLE (…).
    """

    mark: str
    upsert: bool
    concat: str = "v || {mark}"
    key: str = "VARCHAR(64)"
    text: str = "TEXT"
    returning: str = ""
    tables: str = ""


class Statements(Struct, frozen=True, kw_only=True):
    """One statement for each operation on a table; parameters stand in this order."""

    read: str
    write: str
    append: str
    insert: str
    delete: str
    scan: str
    upsert: bool


class Cursor(Protocol):
    """What DB-API cursors have."""

    rowcount: int

    def fetchone(self) -> Any:
        """The next row, or ``None``."""
        ...

    def fetchall(self) -> Any:
        """All rows that are left."""
        ...


class SqlTarget:
    """A database with SQL."""

    name: ClassVar[str]
    levels: ClassVar[tuple[Level, ...]]
    dialect: ClassVar[Dialect]
    lacks: ClassVar[frozenset[str]] = frozenset()
    tokens = False

    def __init__(self, address: Address, prefix: str) -> None:
        self.address = address
        self.prefix = prefix
        self.level = self.levels[0].name
        self.access: Access = "index"
        self.update: Update = "update"
        self._created: list[str] = []
        self._admin: Any = None
        self._compile()

    def start(self) -> None:
        """Connect once, so that what is wrong is said before anything else is done."""
        self.admin()

    def connect(self, *, direct: bool = False) -> SqlClient:
        """Open a connection for one session, or a direct one, which no fault goes between."""
        raise NotImplementedError

    def options(self, *, level: str, access: Access = "index", update: Update = "update") -> None:
        """Choose how transactions run and how rows are found and written."""
        self.level, self.access, self.update = level, access, update
        self._compile()

    def admin(self) -> Any:
        """The connection that creates and removes tables."""
        if self._admin is None or not self._admin.usable():
            self._admin = self.connect(direct=True)
        return self._admin

    def _compile(self) -> None:
        d, m = self.dialect, self.dialect.mark
        column = "k" if self.access == "index" else "j"

        def on(table: str) -> Statements:
            name = f"{self.prefix}{table}"
            write = f"UPDATE {name} SET v = {m} WHERE {column} = {m}{d.returning}"
            if self.update == "upsert":
                conflict = "ON CONFLICT (k) DO UPDATE SET v = excluded.v"
                if not d.upsert:
                    conflict = "ON DUPLICATE KEY UPDATE v = VALUES(v)"
                write = f"INSERT INTO {name} (k, j, v) VALUES ({m}, {m}, {m}) {conflict}"
            joined = d.concat.format(mark=m)
            return Statements(
                read=f"SELECT v FROM {name} WHERE {column} = {m}",
                write=write + (d.returning if self.update == "upsert" else ""),
                append=f"UPDATE {name} SET v = {joined} WHERE {column} = {m}{d.returning}",
                insert=f"INSERT INTO {name} (k, j, v) VALUES ({m}, {m}, {m}){d.returning}",
                delete=f"DELETE FROM {name} WHERE {column} = {m}{d.returning}",
                scan=f"SELECT k, v FROM {name} WHERE {column} BETWEEN {m} AND {m}",
                upsert=self.update == "upsert",
            )

        self.registers, self.lists = on("registers"), on("lists")

    # --- tables ---

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        """Create the tables, and a row for each key."""
        self._lists = frozenset(lists)
        d = self.dialect
        for table, kind, keys, value in (
            ("registers", "BIGINT", registers, None),
            ("lists", d.text, lists, ""),
        ):
            name = f"{self.prefix}{table}"
            columns = f"k {d.key} PRIMARY KEY, j {d.key} NOT NULL, v {kind}"
            self._create(name, f"CREATE TABLE {name} ({columns}){d.tables}")
            rows: Iterable[tuple[str, str, str | None]] = ((key, key, value) for key in keys)
            self._load(name, list(rows))
        if self.tokens:
            name = f"{self.prefix}tokens"
            self._create(name, f"CREATE TABLE {name} (k {d.key} PRIMARY KEY, v INTEGER){d.tables}")
        self.loaded()

    def _create(self, name: str, sql: str) -> None:
        client = self.admin()
        try:
            client.execute(sql, ())
            client.raw.commit()
        except Exception as error:
            client.raw.rollback()
            what = " ".join(str(error).split())
            hint = "--table-prefix NAME gives other names" if "exist" in what else "may you do so?"
            msg = f"{self.name}: the table {name} cannot be created ({what}); {hint}"
            raise TargetError(msg) from None
        self._created.append(name)

    def _load(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        client = self.admin()
        for start in range(0, len(rows), _BATCH):
            part = rows[start : start + _BATCH]
            marks = ", ".join([f"({', '.join([self.dialect.mark] * len(part[0]))})"] * len(part))
            flat = tuple(value for row in part for value in row)
            client.execute(f"INSERT INTO {name} (k, j, v) VALUES {marks}", flat)
        client.raw.commit()

    def loaded(self) -> None:
        """Do what makes sense once the tables are full, such as collecting statistics."""

    def holds_list(self, key: str) -> bool:
        """Whether a key is one of lists."""
        return key in self._lists

    def statement(self, operation: str, key: str, value: object) -> str:
        """Give the statement that was sent for a recorded operation."""
        s = self.lists if self.holds_list(key) else self.registers
        text = _literal(key)
        if operation == "r":
            return _filled(s.read, self.dialect.mark, (text,))
        if operation == "append":
            return _filled(s.append, self.dialect.mark, (f"' {value}'", text))
        if value == DELETED:
            return _filled(s.delete, self.dialect.mark, (text,))
        given = (text, text, str(value)) if s.upsert else (str(value), text)
        return _filled(s.write, self.dialect.mark, given)

    def remove(self) -> None:
        """Remove the tables that were created here, and no other."""
        while self._created:
            self.admin().execute(f"DROP TABLE {self._created.pop()}", ())
            self.admin().raw.commit()

    def close(self) -> None:
        """Remove the tables, and end the connection that created them."""
        if self._admin is None:
            return
        with suppress(Exception):  # the server is gone
            self.remove()
        self._admin.close()
        self._admin = None


class ServedTarget(SqlTarget):
    """A database whose server is started here if the address names no host."""

    server: Server | None = None
    proxied = False

    def start(self) -> None:
        """Start the server if there is to be one, and connect once."""
        if not self.address.host:
            self._start_server()
            assert self.server is not None
            self.server.proxied = self.proxied
        super().start()

    def close(self) -> None:
        """Stop the server, with all that is in it; else remove what was created."""
        if self.server is not None:
            self.server.stop()
            return
        super().close()

    def _start_server(self) -> None:
        """Set ``server``, and start it."""
        raise NotImplementedError


class SqlClient:
    """The operations over one DB-API connection."""

    def __init__(self, target: SqlTarget, raw: Any) -> None:
        self.target = target
        self.raw = raw
        self.wrote = False
        self.token = ""

    def begin(self, level: str) -> None:
        """Begin a transaction."""
        self.wrote, self.token = False, ""
        self._begin(level)

    def _begin(self, level: str) -> None:
        raise NotImplementedError

    def commit(self) -> None:
        """Commit, after a token where there are to be some.

        Raises:
            RolledBack: no token could be written, so that COMMIT was not sent.
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
        raise NotImplementedError

    def rollback(self) -> None:
        """Roll back for certain."""
        raise NotImplementedError

    def _leave(self, token: str, value: int) -> tuple[str, tuple[str, int]]:
        mark = self.target.dialect.mark
        sql = f"INSERT INTO {self.target.prefix}tokens (k, v) VALUES ({mark}, {mark})"
        return sql, (token, value)

    def execute(self, sql: str, values: tuple[Any, ...]) -> Cursor:
        """Send a statement."""
        cursor: Cursor = self.raw.cursor()
        cursor.execute(sql, values)  # type: ignore[attr-defined]
        return cursor

    def written(self, cursor: Cursor) -> int:
        """Give the number of rows that a write has changed."""
        return cursor.rowcount

    def _wrote(self, cursor: Cursor) -> int:
        self.wrote = True
        return self.written(cursor)

    def _of(self, key: str) -> Statements:
        return self.target.lists if self.target.holds_list(key) else self.target.registers

    def read(self, key: str) -> Any:
        """Give the value of a row."""
        row = self.execute(self._of(key).read, (key,)).fetchone()
        return DELETED if row is None else self._value(key, row[0])

    def _value(self, key: str, value: Any) -> Any:
        if self.target.holds_list(key):
            return [int(element) for element in value.split()]
        return value

    def write(self, key: str, value: int) -> bool:
        """Update a row."""
        s = self._of(key)
        given = (key, key, value) if s.upsert else (value, key)
        found = self._wrote(self.execute(s.write, given)) > 0
        if not found and self.target.update == "insert":
            self.insert(key, value)
            return True
        return found

    def append(self, key: str, value: int) -> bool:
        """Append to the list of a row."""
        return self._wrote(self.execute(self._of(key).append, (f" {value}", key))) > 0

    def insert(self, key: str, value: int) -> None:
        """Insert a row."""
        self._wrote(self.execute(self._of(key).insert, (key, key, value)))

    def delete(self, key: str) -> bool:
        """Delete a row."""
        return self._wrote(self.execute(self._of(key).delete, (key,))) > 0

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Give the rows of a range of keys."""
        rows = self.execute(self._of(low).scan, (low, high)).fetchall()
        return {key: self._value(key, value) for key, value in rows}

    def savepoint(self) -> None:
        """Set a savepoint."""
        self.execute("SAVEPOINT isocheck", ())

    def rollback_to_savepoint(self) -> None:
        """Undo what was done since the savepoint."""
        self.execute("ROLLBACK TO SAVEPOINT isocheck", ())

    def resolve(self) -> Outcome:
        """Ask for the transaction's token.

        SOUND BECAUSE: tokens are unique, and an INSERT waits for an open transaction that has
        inserted the same one.
        """
        return ask(self.token, self._has_committed)

    def _has_committed(self, token: str) -> bool | None:
        with closing(self.target.connect(direct=True)) as other:
            with suppress(Exception):
                other.execute(*self._leave(token, 0))
                other.raw.commit()
            other.raw.rollback()
            mark, name = self.target.dialect.mark, f"{self.target.prefix}tokens"
            found = other.execute(f"SELECT v FROM {name} WHERE k = {mark}", (token,)).fetchone()
            return None if found is None else bool(found[0] == 1)

    def waits(self) -> bool | None:
        """Say that nobody knows whether a statement waits for another transaction."""
        return None

    def usable(self) -> bool:
        """Whether the connection can begin another transaction."""
        return True

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _filled(sql: str, mark: str, values: Sequence[str]) -> str:
    parts = sql.split(mark)
    return "".join(part + value for part, value in zip(parts, [*values, ""], strict=True))
