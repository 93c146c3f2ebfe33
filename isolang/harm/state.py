"""Reads the rows of a database, and puts a prepared state back before each run.

Rows are put back by replacing those of the tables that changed, which takes milliseconds. If the
role may not do this, or a table is large, the database is copied from a template instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import sleep, time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from isolang.errors import IsolangError, message_in_one_line

if TYPE_CHECKING:
    from isolang.observe.wire.address import ServerAddress

Row: TypeAlias = tuple[str | None, ...]
Rows: TypeAlias = dict[str, list[Row]]
"""The rows of each table, as PostgreSQL's texts, by the table's name."""

_FIRST_RANGE: Final = 40_000_000
_RANGE: Final = 1_000_000
_MOST_ROWS: Final = 100_000  # the most rows of a table to put back
_MOST_BYTES: Final = 256 << 20  # the most bytes of all tables to put back
_LOCK_SECONDS: Final = 10  # how long a table may stay locked by the application
_LEAVING_SECONDS: Final = 1  # how long sessions that have been closed may take to leave

_TABLES: Final = """
SELECT c.oid::int8, n.nspname, c.relname,
  array(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
        AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum),
  pg_table_size(c.oid), c.reltuples::int8
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname <> 'information_schema'
  AND n.nspname !~ '^pg_' ORDER BY n.nspname, c.relname
"""
# The columns of each unique key, the primary key first.
_KEYS: Final = """
SELECT i.indrelid::int8, i.indisprimary,
  array(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY k(number, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place)
FROM pg_index i WHERE i.indisunique AND i.indexprs IS NULL AND i.indisvalid
ORDER BY i.indisprimary DESC, i.indexrelid
"""
_DEFAULTS: Final = """
SELECT d.adrelid::int8, a.attname::text FROM pg_attrdef d
JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
WHERE pg_get_expr(d.adbin, d.adrelid) ~* 'uuid'
"""
# The number of other sessions in this database, without the server's own processes.
_OTHERS: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename IS NOT NULL
"""
_SEQUENCES: Final = """
SELECT format('%I.%I', schemaname, sequencename), increment_by, max_value, start_value, last_value
FROM pg_sequences ORDER BY schemaname, sequencename
"""


class PreparedTable(Struct, frozen=True, kw_only=True):
    """A table of the database.

    Attributes:
        name: its name in messages: ``orders``, or ``shop.orders`` in another schema than public.
        columns: its columns, except generated ones.
        key: the columns of its primary key; empty if it has none.
        unique: the columns that are unique by themselves.
        generated: the columns whose default is a UUID.
    """

    oid: int
    schema: str
    plain: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    unique: frozenset[str] = frozenset()
    generated: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of the table in messages."""
        return self.plain if self.schema == "public" else f"{self.schema}.{self.plain}"


class KeyRange(Struct, frozen=True):
    """The values that a sequence has given since then: from ``low`` + 1 to ``high``."""

    sequence: str
    low: int
    high: int


class _Sequence(Struct):
    """A sequence, and where it goes on after the prepared state.

    Attributes:
        base: the value after which it goes on.
        called: whether it has given a value.
        moved: whether it goes on in a range of its own.
    """

    name: str
    base: int
    called: bool
    moved: bool


class PreparedState:
    """The state of a database before a violation's operations, which can be put back.

    Attributes:
        tables: the tables, by name.
        rows: the rows of the prepared state.
        read_at: when these rows were read, in seconds since 1970.
        times: the latest times in these rows, in seconds since 1970; ``None`` before somebody asks.
    """

    def __init__(self, server: ServerAddress, *, ignored: Sequence[str] = ()) -> None:
        """Read the state of the database, and move each sequence to a range of its own.

        Args:
            ignored: the tables, and the columns such as ``account.last_seen`` or ``*.last_seen``,
                that are not compared. They are put back all the same.

        Raises:
            IsolangError: the database cannot be read.
        """
        self._server = server
        self._ignored_names = frozenset(ignored)
        self._template = ""
        self._connection: Any = None
        try:
            with _errors("read"):
                self.tables = self._read_tables()
                self._sequences = self._moved_sequences()
                if not self._can_put_rows_back():
                    self._create_template()
                self.rows = self.read()
                self.read_at = min(time(), self.now())
        except IsolangError:
            self.close()
            raise
        self.times: frozenset[float] | None = None

    def is_ignored(self, table: str, column: str = "") -> bool:
        """Return whether a table, or a column of it, is not compared."""
        names = {table, f"{table}.{column}", f"*.{column}"} if column else {table}
        return not names.isdisjoint(self._ignored_names)

    @property
    def ignored(self) -> list[str]:
        """The tables and columns of this database that are not compared."""
        return [
            *(name for name in self.tables if self.is_ignored(name)),
            *(
                f"{name}.{column}"
                for name, table in self.tables.items()
                for column in table.columns
                if self.is_ignored(name, column) and not self.is_ignored(name)
            ),
        ]

    def _open(self) -> Any:
        if self._connection is None or self._connection.closed:
            self._connection = self._server.connect()
            self._connection.execute(
                "SELECT set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO', "
                "false), set_config('bytea_output', 'hex', false), set_config('lock_timeout', "
                f"'{_LOCK_SECONDS}s', false), set_config('statement_timeout', '0', false), "
                "set_config('row_security', 'off', false)"  # an error rather than hidden rows
            )
        return self._connection

    def close(self) -> None:
        """Close the connection, and drop the template."""
        if self._connection is not None:
            self._connection.close()
        if self._template:
            with suppress(Exception), self._server.connect(_other(self._server)) as connection:
                connection.execute(f'DROP DATABASE IF EXISTS "{self._template}" WITH (FORCE)')
            self._template = ""

    def _read_tables(self) -> dict[str, PreparedTable]:
        connection = self._open()
        keys: dict[int, tuple[str, ...]] = {}
        unique: dict[int, set[str]] = {}
        for oid, is_primary, columns in connection.execute(_KEYS).fetchall():
            if is_primary:
                keys[oid] = tuple(columns)
            if len(columns) == 1:
                unique.setdefault(oid, set()).add(columns[0])
        generated: dict[int, set[str]] = {}
        for oid, column in connection.execute(_DEFAULTS).fetchall():
            generated.setdefault(oid, set()).add(column)
        self._large = False
        tables, size = {}, 0
        for oid, schema, name, columns, table_bytes, estimated in connection.execute(_TABLES):
            table = PreparedTable(
                oid=oid, schema=schema, plain=name, columns=tuple(columns), key=keys.get(oid, ()),
                unique=frozenset(unique.get(oid, ())),
                generated=frozenset(generated.get(oid, ())),
            )  # fmt: skip
            tables[table.name] = table
            size += table_bytes
            self._large |= estimated > _MOST_ROWS
        self._large |= size > _MOST_BYTES
        return tables

    def _moved_sequences(self) -> list[_Sequence]:
        """Move each sequence to a range of its own, so that a new key is known by its value."""
        connection = self._open()
        sequences = []
        listed = connection.execute(_SEQUENCES).fetchall()
        for number, (name, step, most, start, last) in enumerate(listed, 1):
            base = _FIRST_RANGE + number * _RANGE
            reached = last if last is not None else start
            while reached >= base and base + 2 * _RANGE < most:  # it was moved before
                base += max(100, len(listed)) * _RANGE
            if most < base + _RANGE:  # such as those of smallint
                base = most // 2 + 100 * number
            movable = step > 0 and reached < base and base + 100 * step < most
            if movable:
                connection.execute("SELECT setval(%s, %s, true)", (name, base))
            sequences.append(
                _Sequence(
                    name=name,
                    base=base if movable else reached,
                    called=movable or last is not None,
                    moved=movable,
                )
            )
        return sequences

    def _can_put_rows_back(self) -> bool:
        """Return whether the role may replace rows without their triggers and foreign keys."""
        if self._large:
            return False
        connection = self._open()
        try:
            with connection.transaction():
                connection.execute("SET LOCAL session_replication_role = replica")
        except Exception:  # the role lacks the privilege
            return False
        return True

    def _create_template(self) -> None:
        """Copy the database.

        Raises:
            IsolangError: other sessions use it. Ending them would break the application.
        """
        connection = self._open()
        database = connection.info.dbname
        ends = time() + _LEAVING_SECONDS
        while (others := connection.execute(_OTHERS).fetchone()[0]) and time() < ends:
            sleep(0.02)
        if others:
            count = "another connection uses" if others == 1 else f"{others} other connections use"
            raise IsolangError(
                f"harm: the role cannot put rows back, and the database cannot be copied while "
                f"{count} it; hint: close them before the watch or the observation begins, or "
                "connect as a superuser"
            )
        self._template = f"{database[:40]}_isocheck_{os.getpid()}"
        self._connection.close()
        with _errors("copy"), self._server.connect(_other(self._server)) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{self._template}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{self._template}" TEMPLATE "{database}"')

    # --- reading ---

    def read(self) -> Rows:
        """Return the rows of all tables, in an order that depends only on them."""
        with _errors("read"):
            connection = self._open()
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                return {name: self._read(connection, table) for name, table in self.tables.items()}

    def _read(self, connection: Any, table: PreparedTable) -> list[Row]:
        from psycopg import sql

        columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
        query = sql.SQL("COPY (SELECT {} FROM ONLY {}) TO STDOUT").format(
            columns, sql.Identifier(table.schema, table.plain)
        )
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            return sorted(copy.rows(), key=_row_order)

    def ranges(self) -> list[KeyRange]:
        """Return the values that each moved sequence has given since the prepared state."""
        with _errors("read"):
            last = {
                name: value
                for name, *_, value in self._open().execute(_SEQUENCES).fetchall()
                if value is not None
            }
        return [
            KeyRange(sequence.name, sequence.base, last[sequence.name])
            for sequence in self._sequences
            if sequence.moved and last.get(sequence.name, 0) > sequence.base
        ]

    def unmoved_sequences_used(self) -> list[str]:
        """Return the sequences that could not be moved, and have given values since."""
        with _errors("read"):
            last = {name: value for name, *_, value in self._open().execute(_SEQUENCES).fetchall()}
        return [
            sequence.name
            for sequence in self._sequences
            if not sequence.moved
            and last.get(sequence.name) is not None
            and (last[sequence.name] != sequence.base or not sequence.called)
        ]

    def now(self) -> float:
        """Return the time of the server's clock, in seconds since 1970."""
        with _errors("read"):
            (seconds,) = (
                self._open()
                .execute("SELECT extract(epoch FROM clock_timestamp())::float8")
                .fetchone()
            )
        return float(seconds)

    # --- putting back ---

    def restore(self, steps: Mapping[str, int] | None = None) -> None:
        """Put the prepared state back.

        Args:
            steps: by how much each sequence is to be advanced, by its name.

        Raises:
            IsolangError: the state cannot be put back, for example because the definition of a
                table has changed, or the application holds a lock.
        """
        with _errors("put back"):
            if self._template:
                self._copy_template()
            else:
                self._put_rows_back(self.rows)
            advanced = steps or {}
            for sequence in self._sequences:
                more = advanced.get(sequence.name, 0) if sequence.moved else 0
                self._open().execute(
                    "SELECT setval(%s, %s, %s)",
                    (sequence.name, sequence.base + more, sequence.called),
                )

    def leave(self, rows: Rows) -> None:
        """Leave the database with these rows, as a run had left it."""
        if not self._template:
            with _errors("put back"):
                self._put_rows_back(rows)

    @property
    def ends_connections(self) -> bool:
        """Return whether putting the state back copies the database and so ends connections."""
        return bool(self._template)

    @property
    def sequences(self) -> list[str]:
        """The names of the sequences that were moved to a range of their own."""
        return [sequence.name for sequence in self._sequences if sequence.moved]

    def _put_rows_back(self, rows: Rows) -> None:
        from psycopg import sql

        connection = self._open()
        if {n: t.columns for n, t in self._read_tables().items()} != {
            n: t.columns for n, t in self.tables.items()
        }:
            raise IsolangError(
                "harm: the tables are not those of the prepared state; hint: create them before, "
                "in isolation.setup or with --setup"
            )
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            for name, table in self.tables.items():
                if self._read(connection, table) == rows[name]:
                    continue
                where = sql.Identifier(table.schema, table.plain)
                columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
                connection.execute(sql.SQL("DELETE FROM ONLY {}").format(where))
                query = sql.SQL("COPY {} ({}) FROM STDIN").format(where, columns)
                with connection.cursor() as cursor, cursor.copy(query) as copy:
                    for row in rows[name]:
                        copy.write_row(row)

    def _copy_template(self) -> None:
        database = self._open().info.dbname
        self._connection.close()
        with self._server.connect(_other(self._server)) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{database}" TEMPLATE "{self._template}"')


def _row_order(row: Row) -> tuple[tuple[bool, str], ...]:
    return tuple((cell is not None, cell or "") for cell in row)


def _other(server: ServerAddress) -> str:
    """Return the name of a database to connect to while another one is copied."""
    return "template1" if server.database == "postgres" else "postgres"


@contextmanager
def _errors(action: str) -> Iterator[None]:
    """Turn errors of the database into errors of isolang."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise IsolangError(
            f"harm: cannot {action} the database's rows ({message_in_one_line(error)})"
        ) from None
