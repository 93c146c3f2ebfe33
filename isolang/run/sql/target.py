"""Provides the base classes for SQL databases, which create, mark and remove the tables."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec.structs import replace

from isolang.errors import message_in_one_line
from isolang.run.adapter import MarkedTarget, connection_errors
from isolang.run.marks.ownership import (
    initial_mark,
    is_alive,
    new_owner,
    not_removed_error,
    owner_of,
    why_tables_exist,
)
from isolang.run.operation import DELETED, parent_key
from isolang.run.outcome import Driver, Failure, Phase
from isolang.run.settings import Access, Update
from isolang.run.sql.client import SqlClient
from isolang.run.sql.statements import (
    Dialect,
    Statements,
    build_paths,
    build_statements,
    fill_in,
    insert_of_child,
    offered_features,
    query_sent,
    quote_literal,
)
from isolang.run.target import Level, TargetError

if TYPE_CHECKING:
    from isolang.run.address import Address

MARK_COLUMN: Final = "made_by_isocheck"
"""The name of an extra column by which isocheck recognises the tables of its runs."""

_MARK_KEY: Final = "run"  # the key of the row with the mark

_NO_TABLE: Final = re.compile(r"exist|no such table|unknown table|invalid object", re.IGNORECASE)
"""Matches error messages about a missing table."""

_PREFIX: Final = re.compile(r"[A-Za-z0-9_.]*")


def _require_upsert(target: SqlTarget, update: Update) -> None:
    """Raise an error if writes must be upserts, but the database has no upsert."""
    if update == "upsert" and not target.dialect.upsert:
        msg = "no upsert (got 'upsert', expected update, row or insert)"
        raise TargetError(f"--update: {target.name} has {msg}")


class SqlTarget(MarkedTarget):
    """The base class for SQL databases.

    Attributes:
        dialect: the SQL dialect of the database.
        driver: the functions that commit, roll back and classify errors.
        client: the class that represents a session.
        chores: for each chore, its maintenance statements, separated by ``; ``, with ``{table}`` in
            place of the registers table.
        paths: the access paths for reads of that table; if ``access`` is ``any``, each read takes
            one of them.
        forms: the statements for that table in each write form; if ``update`` is ``any``, each
            write takes one of them.
        backups: for each method of copying the tables while clients use them, its description.
        reads_outside: the levels at which reads are not part of the transaction. Rows have no child
            rows at these levels, because a delete could remove child rows other than those read.
    """

    name: ClassVar[str]
    levels: ClassVar[tuple[Level, ...]]
    dialect: Dialect
    driver: ClassVar[Driver]
    client: ClassVar[type[SqlClient]] = SqlClient
    chores: ClassVar[Mapping[str, str]] = {}
    backups: Mapping[str, str] = MappingProxyType({})
    reads_outside: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, address: Address, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):  # the prefix is not quoted in SQL
            msg = f"--table-prefix: expected only letters, digits, '_' and '.' (got {prefix!r})"
            raise TargetError(msg)
        super().__init__(address, prefix)
        self.level = self.levels[0].name
        self.access: Access = "index"
        self.update: Update = "update"
        self.cascading = False
        self._connected = count()
        self._created: list[str] = []
        self._admin: Any = None
        self._compile()

    def start(self) -> None:
        """Connect once, so that an error is raised before anything else happens."""
        self.admin()

    def connect(self, *, direct: bool = False) -> SqlClient:
        """Open a connection for a session; faults do not affect a direct connection.

        Raises:
            TargetError: no connection could be opened.
        """
        with connection_errors(self.address):
            client = self.client(self, self.open(direct=direct))
            # If reads take several access paths, make every other connection prefer indexes.
            turn = not direct and self.access == "any" and next(self._connected) % 2 == 0
            if self.dialect.by_index and (self.access == "index" or turn):
                client.execute(self.dialect.by_index, ())
                client.raw.commit()
            return client

    def open(self, *, direct: bool) -> Any:
        """Open a DB-API connection, for a session or direct."""
        raise NotImplementedError

    def options(
        self,
        *,
        level: str,
        access: Access = "index",
        update: Update = "update",
        cascading: bool = False,
    ) -> None:
        """Choose the level, access path and write form, and whether rows have child rows."""
        _require_upsert(self, update)
        self.level, self.access, self.update = level, access, update
        self.cascading = cascading and self.dialect.cascades and level not in self.reads_outside
        self._compile()

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        """Ask the driver whether a transaction with this error certainly aborted."""
        return self.driver.classify(error, phase)

    def admin(self) -> Any:
        """Return the connection that creates and removes tables; reopen it if necessary."""
        if self._admin is None or not self._admin.usable():
            self._admin = self.connect(direct=True)
        return self._admin

    def _compile(self) -> None:
        d = self.dialect
        self.registers, self.list_statements, of_children = (
            build_statements(d, f"{self.prefix}{table}", self.access, update)
            for table, update in (
                ("registers", self.update), ("lists", self.update), ("children", "update")
            )
        )  # fmt: skip
        insert = insert_of_child(d, f"{self.prefix}children")
        self.child_statements = replace(of_children, insert=insert)
        forms: list[Update] = ["update", "row", "insert"]
        forms += ["upsert"] if d.upsert else []
        table = f"{self.prefix}registers"
        self.forms = [build_statements(d, table, self.access, form) for form in forms]
        # A child row has no version, because only the registers' versions are taken from the log.
        self.offers = offered_features(d, cascading=self.cascading and not self.reports_versions)
        self.paths = build_paths(d, table)

    # --- tables ---

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        """Create the tables, with a row for each key."""
        self.lists = frozenset(lists)
        d = self.dialect
        if self.shared:
            self._leave_mark()
        for table, kind, keys, value in (
            ("registers", "BIGINT", registers, None),
            ("lists", d.text, lists, ""),
        ):
            name = f"{self.prefix}{table}"
            columns = f"k {d.key} PRIMARY KEY, j {d.key} NOT NULL, v {kind}, {MARK_COLUMN} INTEGER"
            self._create(name, f"CREATE TABLE {name} ({columns}){d.tables}")
            rows: Iterable[tuple[str, str, str | None]] = ((key, key, value) for key in keys)
            self._load(name, list(rows))
            if table == "registers" and self.cascading:
                children = f"{self.prefix}children"
                columns = f"{columns}, p {d.key} NOT NULL, FOREIGN KEY (p) REFERENCES {name} (k) "
                columns += "ON DELETE CASCADE"
                self._create(children, f"CREATE TABLE {children} ({columns}){d.tables}")
            if table == "registers" and self.access == "any":
                for index in d.indexes:
                    self.admin().execute(index.format(table=name, name=name.replace(".", "_")), ())
                    self.admin().raw.commit()
        if self.tokens:
            name = f"{self.prefix}tokens"
            columns = f"k {d.key} PRIMARY KEY, v INTEGER, {MARK_COLUMN} INTEGER"
            self._create(name, f"CREATE TABLE {name} ({columns}){d.tables}")
        self.after_load()

    def _leave_mark(self) -> None:
        d, name = self.dialect, f"{self.prefix}run"
        self.owner = self.owner or new_owner()
        columns = f"k {d.key} PRIMARY KEY, v {d.key}, {MARK_COLUMN} INTEGER"
        self._create(name, f"CREATE TABLE {name} ({columns}){d.tables}")
        client = self.admin()
        insert = f"INSERT INTO {name} (k, v) VALUES ({d.mark}, {d.mark})"
        client.execute(insert, (_MARK_KEY, initial_mark(self.owner)))
        client.raw.commit()
        self.start_renewing_mark(self._marks)

    def _marks(self) -> SqlMarks:
        return SqlMarks(self, self.connect(direct=True))

    def _create(self, name: str, sql: str) -> None:
        client = self.admin()
        try:
            client.execute(sql, ())
            client.raw.commit()
        except Exception as error:
            with suppress(Exception):  # DuckDB: no transaction is open
                client.raw.rollback()
            what = message_in_one_line(error)
            hint = "check the user's privileges"
            if "exist" in what and self._is_marked(name):
                owner, alive = self._previous_owner()
                hint = why_tables_exist(owner, self.address, alive=alive)
            elif "exist" in what:
                hint = "isocheck did not create it; choose other names with --table-prefix NAME"
            msg = f"{self.name}: cannot create the table {name} ({what}); {hint}"
            raise TargetError(msg) from None
        self._created.append(name)

    def _load(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        client, batch = self.admin(), self.dialect.batch
        if not rows:
            return  # a driver may reject an empty commit
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            marks = ", ".join([f"({', '.join([self.dialect.mark] * len(part[0]))})"] * len(part))
            flat = tuple(value for row in part for value in row)
            client.execute(f"INSERT INTO {name} (k, j, v) VALUES {marks}", flat)
        client.raw.commit()

    def after_load(self) -> None:
        """Prepare the loaded tables, for example by collecting statistics."""

    def before_chore(self, client: SqlClient) -> None:
        """Prepare a connection for maintenance statements."""

    def maintain(self, chore: str) -> None:
        """Run the statements of a chore on a separate connection, and commit each separately."""
        with closing(self.connect(direct=True)) as client:
            self.before_chore(client)
            for statement in self.chores[chore].split("; "):
                client.execute(statement.format(table=f"{self.prefix}registers"), ())
                with suppress(Exception):  # DuckDB: no transaction is open
                    client.raw.commit()

    def back_up(self, way: str, level: str) -> list[tuple[str, Any]]:
        """Copy the tables, and return the rows of the copy."""
        tables = [f"{self.prefix}{name}" for name in ("registers", "lists", "children")]
        with self.open_copy(way, level) as copy:
            return [row for one in tables if one in self._created for row in copy.rows_of(one)]

    def open_copy(self, way: str, level: str) -> AbstractContextManager[SqlClient]:
        """Return a context that copies the tables and yields a client connected to the copy."""
        raise NotImplementedError

    def holds_list(self, key: str) -> bool:
        """Return whether a key holds a list."""
        return key in self.lists

    def statements_of(self, key: str) -> Statements:
        """Return the statements for the table that contains a key's row."""
        if self.cascading and parent_key(key):
            return self.child_statements
        return self.list_statements if self.holds_list(key) else self.registers

    def statement(self, operation: str, key: str, value: object) -> str:
        """Return the statement sent by a client for a recorded operation."""
        if operation == "scan":
            return query_sent(self.registers, self.dialect.mark, key)
        s, text = self.statements_of(key), quote_literal(key)
        if operation == "delete":
            return fill_in(s.delete, self.dialect.mark, (text,))
        if operation == "r":
            return fill_in(s.read, self.dialect.mark, (text,))
        if operation == "append":
            return fill_in(s.append, self.dialect.mark, (f"' {value}'", text))
        if value == {"value": None}:
            return fill_in(s.clear, self.dialect.mark, (text,))
        if value == DELETED:
            return fill_in(s.delete, self.dialect.mark, (text,))
        return fill_in(s.write, self.dialect.mark, s.write_parameters(text, str(value)))

    def remove(self) -> None:
        """Remove the tables created by ``setup``, but no other tables."""
        if not self.release_mark():
            self._created.clear()
        while self._created:
            self.admin().execute(f"DROP TABLE {self._created.pop()}", ())
            self.admin().raw.commit()

    def _is_marked(self, name: str) -> bool:
        """Return whether a table exists and has the column that marks tables of runs."""
        client = self.admin()
        try:
            client.execute(f"SELECT {MARK_COLUMN} FROM {name} WHERE 1 = 0", ()).fetchall()
        except Exception:
            return False
        finally:
            with suppress(Exception):  # DuckDB: no transaction is open
                client.raw.rollback()
        return True

    def _previous_owner(self) -> tuple[str, bool]:
        """Return the run that left the mark (empty if there is none), and whether it is alive."""
        if not self._is_marked(f"{self.prefix}run"):
            return "", False
        with closing(self._marks()) as marks:
            owner = owner_of(marks.get())
            return owner, owner != self.owner and is_alive(marks)

    def clean(self) -> list[str]:
        """Remove the marked tables left by killed runs, but no other tables.

        Raises:
            TargetError: the run is still alive.
        """
        if getattr(self, "server", None) is None:  # a server that isocheck has started runs
            self.start()
        owner, alive = self._previous_owner()
        if alive:
            raise not_removed_error(owner, self.address)
        removed: list[str] = []
        if self.shared and self.owner and owner != self.owner:
            return removed  # these tables belong to a later run
        for table in ("children", "registers", "lists", "tokens", "run"):
            name = f"{self.prefix}{table}"
            if self._is_marked(name):
                self.admin().execute(f"DROP TABLE {name}", ())
                self.admin().raw.commit()
                removed.append(name)
        self.hang_up()
        return removed

    def close(self) -> None:
        """Remove the tables, and close the connection that created them."""
        if self._admin is None:
            return
        with suppress(Exception):  # the server may be down
            self.remove()
        self.hang_up()

    def hang_up(self) -> None:
        """Stop renewing the mark, and close the connection that creates and removes tables."""
        self.abandon_mark()
        with suppress(Exception):  # the connection has been lost
            if self._admin is not None:
                self._admin.close()
        self._admin = None


def plans_of(target: SqlTarget) -> list[str]:
    """Return the query of each access path, with the plan chosen by the database.

    The plans are those of a new connection; connections that prefer indexes may use other plans.
    """
    found = []
    with closing(target.connect(direct=True)) as client:
        for key, query in (
            *(("a", one) for one in (*target.paths.reads, *target.paths.scans)),
            *((1, one) for one in target.paths.selects),
        ):
            plan = _plan_of(client, target.dialect.explain + query.sql, query.values(key, key))
            found.append(f"{query.sql} -- {plan}"[:400])
        with suppress(Exception):
            client.raw.rollback()
    return found


def _plan_of(client: SqlClient, sql: str, values: tuple[Any, ...]) -> str:
    """Return the plan for a query; if the database cannot return a plan, return the reason."""
    try:
        rows = client.execute(sql, values).fetchall()
        return "; ".join(" ".join(str(row[-1]).split()) for row in rows)
    except Exception as error:  # a missing plan does not matter, because plans are only remarks
        return f"no plan ({message_in_one_line(error)})"


class SqlMarks:
    """A connection to a run's mark, stored in a table."""

    def __init__(self, target: SqlTarget, client: SqlClient) -> None:
        self._client, self._table = client, f"{target.prefix}run"
        self._mark = target.dialect.mark

    def get(self) -> str:
        """Return the mark; if the mark or its table does not exist, return an empty string."""
        sql = f"SELECT v FROM {self._table} WHERE k = {self._mark}"
        try:
            row = self._client.execute(sql, (_MARK_KEY,)).fetchone()
        except Exception as error:
            self._client.raw.rollback()
            if _NO_TABLE.search(str(error)):
                return ""
            raise
        self._client.raw.commit()
        return "" if row is None else str(row[0] or "")

    def swap(self, old: str, new: str) -> bool:
        """Replace the mark ``old`` with ``new``; return false if it is different or missing."""
        m = self._mark
        sql = f"UPDATE {self._table} SET v = {m} WHERE k = {m} AND v = {m}"
        try:
            changed = self._client.execute(sql, (new, _MARK_KEY, old)).rowcount
        except Exception as error:
            self._client.raw.rollback()
            if _NO_TABLE.search(str(error)):
                return False
            raise
        self._client.raw.commit()
        return changed != 0

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class FileTarget(SqlTarget):
    """The base class for a database in a file: the file in the URL, or a temporary file."""

    def __init__(self, address: Address, prefix: str) -> None:
        super().__init__(address, prefix)
        self.path, self._folder = address.database, ""

    def start(self) -> None:
        """Create a temporary folder if the URL names no file, and connect once."""
        if not self.path:
            self._folder = tempfile.mkdtemp(prefix="isocheck-")
            self.path = os.path.join(self._folder, "test.db")
        super().start()

    def close(self) -> None:
        """Remove the tables, and the temporary folder if there is one."""
        super().close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
