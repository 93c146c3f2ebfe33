"""PostgreSQL, through psycopg 3: a server of our own, or the one of a URL."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, ClassVar, Final

from isolang.run.adapter import Served, package
from isolang.run.drivers.postgres import DRIVER, outcome_of
from isolang.run.outcome import Outcome
from isolang.run.servers import postgres as servers
from isolang.run.servers.server import Server
from isolang.run.sql import Dialect, SqlClient, SqlTarget
from isolang.run.target import Level, TargetError

_LEVELS: Final = {"read committed": 2, "repeatable read": 3, "serializable": 4}  # psycopg's


class PostgresClient(SqlClient):
    """A connection."""

    target: Postgres
    xid: object = None
    witness: Any = None

    def _begin(self, level: str) -> None:
        self.xid = self.witness = None
        with suppress(TargetError):  # the server is down; what comes next says so
            self.witness = self.target.admin().raw  # it was open before the transaction
        number = _LEVELS[level]  # psycopg sends BEGIN with it, before the first statement
        if self.raw.isolation_level != number:
            self.raw.isolation_level = number

    def written(self, cursor: Any) -> int:
        if cursor.rowcount > 0:
            (self.xid,) = cursor.fetchone()
        return int(cursor.rowcount)

    def isolation(self) -> str:
        return str(self.execute("SHOW transaction_isolation", ()).fetchone()[0])

    def waits(self) -> bool | None:
        sql, me = "SELECT cardinality(pg_blocking_pids(%s)) > 0", self.raw.info.backend_pid
        return bool(self.target.admin().execute(sql, (me,)).fetchone()[0])

    def usable(self) -> bool:
        return not self.raw.closed

    def resolve(self) -> Outcome:
        known = self.xid is not None and self.witness is not None
        found = outcome_of(self.xid, self.witness) if known else None
        return found or super().resolve()


class Postgres(Served, SqlTarget):
    """A server."""

    name: ClassVar = "postgres"
    levels: ClassVar = tuple(
        Level(name=name, claims=claims, says=f"BEGIN ISOLATION LEVEL {name.upper()}")
        for name, claims in zip(_LEVELS, ("pl-2", "si", "ser"), strict=True)
    )
    # The first write of a transaction also tells its number, by which to ask for its outcome.
    dialect: ClassVar = Dialect(
        mark="%s", returning=" RETURNING pg_current_xact_id()",
        by_index="SET enable_seqscan = off",
    )  # fmt: skip
    driver: ClassVar = DRIVER
    client: ClassVar = PostgresClient
    runs_as: ClassVar = "postgres"

    def start_server(self, server: Server) -> None:
        answers = lambda: self.connect(direct=True).close()  # noqa: E731
        self.started = servers.start(server, self.address.options, answers)

    def open(self, *, direct: bool) -> Any:
        connect = package("psycopg", self.name).connect
        if self.server is not None:
            socket = servers.socket_of(self.server)
            host = os.path.dirname(socket if direct else self.server.reach(socket))
            return connect(host=host, user="postgres", dbname="postgres", connect_timeout=10)
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

    def loaded(self) -> None:
        raw = self.admin().raw
        raw.execute("SET synchronous_commit = on")  # the tables outlive a crash in any case
        for table in ("registers", "lists"):
            raw.execute(f"VACUUM ANALYZE {self.prefix}{table}")
