"""Adapts PostgreSQL through psycopg 3, on a started server or the server named by a URL."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec.structs import replace

from isolang.run.adapter import ServerTarget, import_package
from isolang.run.drivers.postgres import DRIVER, outcome_of
from isolang.run.drivers.postgres_log import PostgresLog, is_older
from isolang.run.operation import DELETED
from isolang.run.outcome import Outcome
from isolang.run.record.database_log import LoggedVersion, rewrite_history, summary_of
from isolang.run.servers import postgres as servers
from isolang.run.servers.server import Server, pipe
from isolang.run.sql import INDEXES, MERGE, PARTIAL, Dialect, SqlClient, SqlTarget
from isolang.run.target import Level, TargetError

if TYPE_CHECKING:
    from pathlib import Path

_COPY_DATABASE: Final = "isocheck_copy"  # the database into which a dump is restored
_MERGE_FROM_VERSION: Final = 150_000  # the first server version that has MERGE
_LEVELS: Final = {"read committed": 2, "repeatable read": 3, "serializable": 4}  # psycopg's numbers


class PostgresClient(SqlClient):
    """A connection to a PostgreSQL server."""

    target: Postgres
    xid: object = None
    witness: Any = None

    def _begin(self, level: str) -> None:
        self.xid = self.witness = None
        with suppress(TargetError):  # the server is down, so the next statement raises an error
            self.witness = self.target.admin().raw  # open the witness before the transaction begins
        number = _LEVELS[level]  # psycopg sends the level with BEGIN before the first statement
        if self.raw.isolation_level != number:
            self.raw.isolation_level = number

    def read(self, key: str) -> Any:
        rows = self.read_rows(key)
        self.row_version = None
        if len(rows) == 1 and not self.target.holds_list(key):
            self.row_version = "".join(rows[0][1:]) or None
        return self.value_found(key, rows)

    def count_written(self, cursor: Any) -> int:
        self.row_version = None
        if cursor.rowcount > 0:
            self.xid, *version = cursor.fetchone()
            self.row_version = "".join(version) or None
        return int(cursor.rowcount)

    def isolation(self) -> str:
        return str(self.execute("SHOW transaction_isolation", ()).fetchone()[0])

    def delete(self, key: str) -> bool:
        there = super().delete(key)
        self.row_version = None  # DELETE returns the deleted version, not a new one
        return there

    @property
    def transaction_name(self) -> Any:
        return None if self.xid is None or not self.target.reports_versions else str(self.xid)

    def waits(self) -> bool | None:
        sql, me = "SELECT cardinality(pg_blocking_pids(%s)) > 0", self.raw.info.backend_pid
        return bool(self.target.admin().execute(sql, (me,)).fetchone()[0])

    def usable(self) -> bool:
        return not self.raw.closed

    def resolve(self) -> Outcome:
        known = self.xid is not None and self.witness is not None
        found = outcome_of(self.xid, self.witness) if known else None
        return found or super().resolve()


class Postgres(ServerTarget, SqlTarget):
    """A PostgreSQL server with a database for the tables."""

    name: ClassVar = "postgres"
    levels: ClassVar = tuple(
        Level(
            name=name,
            claims=claims,
            says=f"BEGIN ISOLATION LEVEL {name.upper()}",
            # postgrespro.com/list/id/708274.1638118266@sss.pgh.pa.us
            inserts_over_deleted=claims == "si",
        )
        for name, claims in zip(_LEVELS, ("pl-2", "si", "ser"), strict=True)
    )
    # Each write returns the number of its transaction, from which the outcome can be determined.
    dialect = Dialect(
        mark="%s", returning=" RETURNING pg_current_xact_id()",
        by_index="SET enable_seqscan = off", locks=(" FOR UPDATE", " FOR SHARE"),
        skip=" FOR UPDATE SKIP LOCKED", merge=MERGE, cascades=True,
        place="ctid >= '(0,0)' AND ctid < '(1000000,0)'",
        indexes=(
            *INDEXES, PARTIAL, "CREATE INDEX {name}_hash ON {table} USING hash (k)",
            "CREATE UNIQUE INDEX {name}_covering ON {table} (k) INCLUDE (v)",
        ),
    )  # fmt: skip
    chores: ClassVar = {
        "VACUUM": "VACUUM {table}",
        "VACUUM FULL": "VACUUM FULL {table}",
        "ANALYZE": "ANALYZE {table}",
        "REINDEX": "REINDEX TABLE {table}",
        "CHECKPOINT": "CHECKPOINT",
        "CREATE INDEX": "DROP INDEX IF EXISTS {table}_chore; CREATE INDEX {table}_chore ON "
        "{table} (v)",
        "CREATE INDEX CONCURRENTLY": "DROP INDEX IF EXISTS {table}_chore; "
        "CREATE INDEX CONCURRENTLY {table}_chore ON {table} (v)",
        "ADD COLUMN": "ALTER TABLE {table} DROP COLUMN IF EXISTS chore; "
        "ALTER TABLE {table} ADD COLUMN chore INTEGER DEFAULT 7",
    }
    backups: Mapping[str, str] = MappingProxyType(
        {"exported snapshot": "pg_export_snapshot, SET TRANSACTION SNAPSHOT in another session"}
    )
    mixes = "postgresql-mixed"
    driver: ClassVar = DRIVER
    client: ClassVar = PostgresClient
    server_user: ClassVar = "postgres"
    client_package: ClassVar = ("psycopg", "postgres")

    ordered: ClassVar = False  # the order comes from the log, after the run
    log: PostgresLog | None = None

    def _compile(self) -> None:
        if self.reports_versions:
            # SOUND BECAUSE: a ctid that identifies a version can identify another version of the
            # same transaction only after that transaction has ended.
            self.dialect = replace(
                self.dialect,
                version=", xmin::text, ctid::text",
                returning=" RETURNING pg_current_xact_id(), xmin::text, ctid::text",
            )
        super()._compile()

    def account(self, path: Path) -> tuple[str, ...]:
        """Add the log's version order and the writes of unrecorded transactions to a history."""
        assert self.log is not None, "the log starts when the tables are created"
        before = self.log.before
        registers = f"{self.prefix}registers"

        def is_initial(version: str) -> bool:
            return is_older(int(version.partition("(")[0]), before)

        def installed() -> Iterator[LoggedVersion]:
            assert self.log is not None
            for one in self.log.changes():
                if one.table.rpartition(".")[2] != registers:
                    continue
                key = one.row.get("k") or one.old.get("k")
                value = one.row.get("v")
                number: Any = None if value is None else int(value)
                if key is not None:
                    yield LoggedVersion(
                        transaction=one.transaction % 2**32,
                        key=key,
                        value=DELETED if one.kind == "DELETE" else number,
                    )

        found = rewrite_history(path, installed(), is_initial=is_initial)
        self.log.close()
        return (summary_of(found),)

    def start(self) -> None:
        super().start()
        if self.admin().raw.info.server_version < _MERGE_FROM_VERSION:
            self.dialect = replace(self.dialect, merge="")
            self._compile()

    def start_server(self, server: Server) -> None:
        if self.reports_versions:
            logging = {"wal_level": "logical", **self.address.options}
            self.address = replace(self.address, options=logging)
        answers = lambda: self.connect(direct=True).close()  # noqa: E731
        self.started = servers.start(server, self.address.options, answers)
        if all(os.access(f"{self.started.programs}/{one}", os.X_OK) for one in ("pg_dump", "psql")):
            self.backups = {**self.backups, "pg_dump": "pg_dump, restored into another database"}

    def open(self, *, direct: bool, dbname: str = "postgres") -> Any:
        connect = import_package("psycopg", self.name).connect
        if self.server is not None:
            socket = servers.socket_of(self.server)
            host = os.path.dirname(socket if direct else self.server.client_address(socket))
            return connect(host=host, user="postgres", dbname=dbname, connect_timeout=10)
        a = self.place(direct=direct)
        where = {"host": a.host, "port": a.port, "user": a.user, "password": a.password,
                 "dbname": a.database, "connect_timeout": 10, **a.options}  # fmt: skip
        return connect(**{name: value for name, value in where.items() if value})

    def version(self) -> str:
        return f"PostgreSQL {self.admin().execute('SHOW server_version', ()).fetchone()[0]}"

    def admin(self) -> Any:
        admin = super().admin()
        admin.raw.autocommit = True
        return admin

    def before_chore(self, client: SqlClient) -> None:
        client.raw.autocommit = True
        client.execute("SET statement_timeout = '3s'", ())

    @contextmanager
    def open_copy(self, way: str, level: str) -> Iterator[SqlClient]:
        # SOUND BECAUSE: a REPEATABLE READ transaction has one snapshot. A serializable snapshot is
        # promised only if the transaction is also deferrable: it then waits until no anomaly can
        # involve it.
        safe = level == "serializable"
        with self._separate() as raw:
            if way == "pg_dump":
                raw.execute(f"DROP DATABASE IF EXISTS {_COPY_DATABASE}")
                raw.execute(f"CREATE DATABASE {_COPY_DATABASE} TEMPLATE template0")
                self._dump(["--serializable-deferrable"] if safe else [])
                with self._separate(dbname=_COPY_DATABASE) as copy:
                    yield self.client(self, copy)
                raw.execute(f"DROP DATABASE {_COPY_DATABASE}")
                return
            how = "SERIALIZABLE READ ONLY DEFERRABLE" if safe else "REPEATABLE READ READ ONLY"
            raw.execute(f"BEGIN ISOLATION LEVEL {how}")
            (snapshot,) = raw.execute("SELECT pg_export_snapshot()").fetchone()
            with self._separate() as other:
                other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                other.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
                yield self.client(self, other)

    @contextmanager
    def _separate(self, **where: str) -> Iterator[Any]:
        """Open a connection for a copy, with a time limit for each statement."""
        with closing(self.open(direct=True, **where)) as raw:
            raw.autocommit = True
            raw.execute("SET statement_timeout = '3s'")
            yield raw

    def _dump(self, options: list[str]) -> None:
        """Copy the tables of a started server into another database, with pg_dump and psql."""
        assert self.server is not None
        folder, at = self.started.programs, ["-h", self.server.folder, "-U", "postgres"]
        pipe(
            [f"{folder}/pg_dump", *at, *options, "--no-owner", "postgres"],
            [f"{folder}/psql", *at, "-q", "-X", "-v", "ON_ERROR_STOP=1", "-d", _COPY_DATABASE],
        )

    def after_load(self) -> None:
        raw = self.admin().raw
        raw.execute("SET synchronous_commit = on")  # the tables must survive any crash
        for table in ("registers", "lists"):
            raw.execute(f"VACUUM ANALYZE {self.prefix}{table}")
        if self.reports_versions:
            self.log = PostgresLog(self._connect_to_log, self.name)

    def _connect_to_log(self) -> Any:
        connection = self.open(direct=True)
        connection.autocommit = True
        return connection

    def hang_up(self) -> None:
        if self.log is not None:
            self.log.close()
        super().hang_up()
