"""MariaDB and MySQL, through PyMySQL: a server of our own where one is installed, or a URL."""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar, Final

from isolang.run.outcome import Autocommit, Driver, Failure, Phase
from isolang.run.server import Server, program
from isolang.run.sql import Dialect, ServedTarget, SqlClient
from isolang.run.target import Level, TargetError

_RENEWED: Final = 0.15


class MariaDB(ServedTarget):
    """A server."""

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
    dialect: ClassVar = Dialect(
        mark="%s", upsert=False, concat="CONCAT(v, {mark})", text="LONGTEXT",
        key="VARCHAR(64) COLLATE ascii_bin", tables=" ENGINE=InnoDB DEFAULT CHARSET=ascii",
    )  # fmt: skip

    def _start_server(self) -> None:
        daemon, install = program("mariadbd", "/usr/sbin"), program("mariadb-install-db")
        if not daemon or not install:
            hint = "install the package mariadb-server, or give the URL of a server"
            raise TargetError(f"mariadb: no server is installed; {hint}")
        server = self.server = Server("mariadb", "mysql")
        data = os.path.join(server.folder, "data")
        # Native asynchronous input and output is scarce where many servers run.
        common = ["--no-defaults", f"--datadir={data}", f"--tmpdir={server.folder}",
                  "--innodb-use-native-aio=0"]  # fmt: skip
        server.run([install, *common, "--skip-test-db", "--auth-root-authentication-method=normal"])
        more = [f"--{name}={value}" for name, value in self.address.options.items()]
        server.start(
            [daemon, *common, "--skip-networking", f"--socket={server.folder}/socket",
             "--innodb-flush-log-at-trx-commit=2", *more],
            lambda: self._open("mysql", direct=True).close(),
        )  # fmt: skip
        self._open("mysql", direct=True).cursor().execute("CREATE DATABASE isocheck")

    def _open(self, database: str, *, direct: bool) -> Any:
        try:
            import pymysql
        except ImportError:
            raise TargetError("mariadb: no driver; pip install 'isolang[mariadb]'") from None
        # Without this flag UPDATE counts a row that has the new value already as not found.
        common = {"database": database, "client_flag": pymysql.constants.CLIENT.FOUND_ROWS}
        if self.server is not None:
            socket = f"{self.server.folder}/socket"
            socket = socket if direct else self.server.reach(socket)
            return pymysql.connect(unix_socket=socket, user="root", **common)
        a = self.address
        return pymysql.connect(
            host=a.host, port=a.port or 3306, user=a.user, password=a.password, **common
        )

    def connect(self, *, direct: bool = False) -> SqlClient:
        try:
            raw = self._open(self.address.database or "isocheck", direct=direct)
        except TargetError:
            raise
        except Exception as error:
            what = error.args[-1] if error.args else error
            raise TargetError(f"{self.address}: no connection ({what}); is it running?") from None
        raw.cursor().execute("SET SESSION innodb_lock_wait_timeout = 5")
        return MariaDBClient(self, raw)

    def version(self) -> str:
        (shown,) = self.admin().execute("SELECT VERSION()", ()).fetchone()
        self.admin().raw.rollback()
        number, maria, _ = str(shown).partition("-MariaDB")
        return f"MariaDB {number}" if maria else f"MySQL {number}"

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        return classify(error, phase)


class MariaDBClient(SqlClient):
    """A connection."""

    def _begin(self, level: str) -> None:
        self.execute(f"SET TRANSACTION ISOLATION LEVEL {level.upper()}", ())
        self.execute("START TRANSACTION", ())

    asked = 0.0

    def waits(self) -> bool | None:
        # InnoDB renews this table only if nobody has read it for a tenth of a second.
        if time.monotonic() - self.asked < _RENEWED:
            return False
        self.asked = time.monotonic()
        sql = (
            "SELECT COUNT(*) FROM information_schema.innodb_trx "
            "WHERE trx_mysql_thread_id = %s AND trx_state = 'LOCK WAIT'"
        )
        found = self.target.admin().execute(sql, (self.raw.thread_id(),)).fetchone()[0]
        self.target.admin().raw.rollback()
        return bool(found)

    def usable(self) -> bool:
        return bool(self.raw.open)

    def _commit(self) -> None:
        self.raw.commit()

    def rollback(self) -> None:
        roll_back(self.raw)


def roll_back(connection: Any) -> None:
    """Roll back, also after a lock wait timeout, which ends one statement only; or close.

    Raises:
        Autocommit: no transaction was opened.
    """
    if connection.get_autocommit() and not connection.server_status & 1:
        raise Autocommit
    try:
        connection.rollback()
    except Exception:
        connection.close()


def commit(connection: Any) -> None:
    """Commit."""
    connection.commit()


_ROLLED_BACK: Final = (1020, 1213)  # a row has changed since it was read; deadlock


def classify(error: BaseException, phase: Phase) -> Failure:
    """Say what an error means, by its number."""
    number = error.args[0] if error.args else None
    return "aborted" if phase == "statement" or number in _ROLLED_BACK else "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
