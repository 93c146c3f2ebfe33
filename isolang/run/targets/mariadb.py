"""Adapts MariaDB and MySQL through PyMySQL, on a started server or the server named by a URL."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from isolang.run.adapter import ServerTarget, import_package
from isolang.run.drivers.mariadb import DRIVER
from isolang.run.servers import mariadb as servers
from isolang.run.servers.server import Server, find_program, pipe
from isolang.run.sql import Dialect, SqlClient, SqlTarget
from isolang.run.sql.statements import ON_DUPLICATE_KEY
from isolang.run.target import Level

_NUMBERS: Final = re.compile(r"\d+")
_COPY_DATABASE: Final = "isocheck_copy"  # the database into which a dump is restored
_TRX_REFRESH_S: Final = 0.15  # the maximum age of InnoDB's transaction table in seconds


class MySQLClient(SqlClient):
    """A connection to a server that speaks MySQL's protocol, whatever engine stores the tables."""

    def _begin(self, level: str) -> None:
        self.execute(f"SET TRANSACTION ISOLATION LEVEL {level.upper()}", ())
        self.execute("START TRANSACTION", ())

    def usable(self) -> bool:
        return bool(self.raw.open)


class MariaDBClient(MySQLClient):
    """A connection to a MariaDB or MySQL server with InnoDB tables."""

    queried_at = 0.0

    def waits(self) -> bool | None:
        # InnoDB updates its transaction table only if no query has read it for a tenth of a second.
        if time.monotonic() - self.queried_at < _TRX_REFRESH_S:
            return False
        self.queried_at = time.monotonic()
        sql = (
            "SELECT COUNT(*) FROM information_schema.innodb_trx "
            "WHERE trx_mysql_thread_id = %s AND trx_state = 'LOCK WAIT'"
        )
        found = self.target.admin().execute(sql, (self.raw.thread_id(),)).fetchone()[0]
        self.target.admin().raw.rollback()
        return bool(found)


class MariaDB(ServerTarget, SqlTarget):
    """A MariaDB or MySQL server with a database for the tables.

    Attributes:
        settings: the settings for a server started by isocheck, in addition to those in the URL.
    """

    name: ClassVar = "mariadb"
    levels: ClassVar = tuple(
        Level(name=name, claims=claims, says=f"SET TRANSACTION ISOLATION LEVEL {name.upper()}")
        for name, claims in (
            ("repeatable read", "si"),
            ("read uncommitted", "pl-1"),
            ("read committed", "pl-2"),
            ("serializable", "ser"),
        )
    )
    dialect = Dialect(
        mark="%s", changed="", concat="CONCAT(v, {mark})", text="LONGTEXT",
        key="VARCHAR(64) COLLATE ascii_bin", tables=" ENGINE=InnoDB DEFAULT CHARSET=ascii",
        upsert=ON_DUPLICATE_KEY, locks=(" FOR UPDATE", " LOCK IN SHARE MODE"),
        skip=" FOR UPDATE SKIP LOCKED", cascades=True,
    )  # fmt: skip
    chores: ClassVar = {
        "ANALYZE": "ANALYZE TABLE {table}",
        "OPTIMIZE": "OPTIMIZE TABLE {table}",
        "CREATE INDEX": "DROP INDEX IF EXISTS chore ON {table}; CREATE INDEX chore ON {table} (v)",
        "ADD COLUMN": "ALTER TABLE {table} DROP COLUMN IF EXISTS chore; "
        "ALTER TABLE {table} ADD COLUMN chore INTEGER DEFAULT 7",
    }
    backups: Mapping[str, str] = MappingProxyType(
        {"consistent snapshot": "START TRANSACTION WITH CONSISTENT SNAPSHOT"}
    )
    mixes = ""
    driver: ClassVar = DRIVER
    client: ClassVar[type[MySQLClient]] = MariaDBClient
    settings: ClassVar[Mapping[str, str]] = {}
    server_user: ClassVar = "mysql"
    client_package: ClassVar = ("pymysql", "mariadb")

    def start(self) -> None:
        super().start()
        name, _, number = self.version().partition(" ")
        version = tuple(int(one) for one in _NUMBERS.findall(number)[:2])
        if version < ((10, 6) if name == "MariaDB" else (8, 0)):
            self.dialect = replace(self.dialect, skip="")
            self._compile()

    def start_server(self, server: Server) -> None:
        answers = lambda: self._connect("mysql", direct=True).close()  # noqa: E731
        servers.start(server, {**self.settings, **self.address.options}, answers)
        with self._connect("mysql", direct=True) as raw:
            raw.cursor().execute("CREATE DATABASE isocheck")
        if find_program("mariadb-dump") and find_program("mariadb"):
            more = "mariadb-dump --single-transaction, restored into another database"
            self.backups = {**self.backups, "mariadb-dump": more}

    @contextmanager
    def open_copy(self, way: str, level: str) -> Iterator[SqlClient]:
        # SOUND BECAUSE: the snapshot contains all commits up to one moment. Writers at SERIALIZABLE
        # keep their locks until COMMIT, so the snapshot is also a state of a serial execution.
        if way == "mariadb-dump":
            with closing(self._dump()) as raw:
                yield self.client(self, raw)
            return
        with closing(self.connect(direct=True)) as client:
            client.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", ())
            client.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT", ())
            yield client

    def _dump(self) -> Any:
        """Copy the tables of a started server into another database, and connect to the copy."""
        assert self.server is not None
        with closing(self._connect("mysql", direct=True)) as raw:
            raw.cursor().execute(f"CREATE OR REPLACE DATABASE {_COPY_DATABASE}")
        at = ["--no-defaults", f"--socket={servers.socket_of(self.server)}", "--user=root"]
        pipe(
            [find_program("mariadb-dump"), *at, "--single-transaction", "isocheck"],
            [find_program("mariadb"), *at, _COPY_DATABASE],
        )
        return self._connect(_COPY_DATABASE, direct=True)

    def before_chore(self, client: SqlClient) -> None:
        client.execute("SET lock_wait_timeout = 3", ())

    def open(self, *, direct: bool) -> Any:
        raw = self._connect(self.address.database or "isocheck", direct=direct)
        raw.cursor().execute("SET SESSION innodb_lock_wait_timeout = 5")
        return raw

    def _connect(self, database: str, *, direct: bool) -> Any:
        if self.server is not None:
            turns = self.cluster is not None and not direct
            node = self.cluster.next_node() if turns and self.cluster is not None else self.server
            socket = servers.socket_of(node)
            return self.connect_to(socket if direct else node.client_address(socket), database)
        a = self.place(direct=direct)
        where: dict[str, Any] = {"host": a.host, "port": a.port or 3306}
        if a.host.startswith("/"):
            where = {"unix_socket": a.host}
        return self._connection(database=database, user=a.user, password=a.password, **where)

    def connect_to(self, socket: str, database: str) -> Any:
        """Connect through its socket to a server started by isocheck."""
        return self._connection(database=database, unix_socket=socket, user="root")

    def _connection(self, **where: Any) -> Any:
        pymysql = import_package("pymysql", "mariadb")
        # Without this flag, UPDATE does not count rows that already had the new value.
        flag = pymysql.constants.CLIENT.FOUND_ROWS
        return pymysql.connect(client_flag=flag, connect_timeout=5, **where)

    def version(self) -> str:
        (shown,) = self.admin().execute("SELECT VERSION()", ()).fetchone()
        self.admin().raw.rollback()
        number, maria, _ = str(shown).partition("-MariaDB")
        return f"MariaDB {number}" if maria else f"MySQL {number}"
