"""Adapts the Java databases H2, HSQLDB and Derby in this process, through JDBC and JPype."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import uuid4

from isolang.run.adapter import import_package
from isolang.run.drivers.jdbc import DRIVER
from isolang.run.sql import Dialect, SqlClient, SqlTarget
from isolang.run.target import Level, TargetError

if TYPE_CHECKING:
    from isolang.run.address import Address

_FOLDER: Final = "/usr/share/java"  # where Debian's packages install Java archives
_MACHINE: Final = (
    "-Xrs",  # only isocheck handles Ctrl-C
    "-XX:TieredStopAtLevel=1",  # faster startup of the machine
    "-XX:+UseSerialGC",
    "-Xmx512m",
    "-Dderby.locks.deadlockTimeout=1",
    "-Dderby.locks.waitTimeout=2",
    "-Dderby.stream.error.file=/dev/null",
)

_NAMES: Final = {
    1: "read uncommitted", 2: "read committed", 4: "repeatable read", 6: "snapshot",
    8: "serializable",
}  # fmt: skip


class JdbcClient(SqlClient):
    """A connection to an in-memory Java database."""

    at = ""

    def _begin(self, level: str) -> None:
        if self.at != level:
            self.at = level
            self.execute(self.target.begins[level], ())  # type: ignore[attr-defined]
            self.raw.commit()

    def execute(self, sql: str, values: tuple[Any, ...]) -> Any:
        cursor = self.raw.cursor()
        cursor.execute(sql, values or None)
        return cursor

    def isolation(self) -> str:
        return _NAMES[int(self.raw.connection.getTransactionIsolation())]

    def usable(self) -> bool:
        return not self.raw.connection.isClosed()

    def close(self) -> None:
        with suppress(Exception):  # Derby does not close a connection while a transaction is open
            self.raw.rollback()
        super().close()


class Jdbc(SqlTarget):
    """A Java database in memory.

    Attributes:
        jar: the file name of the database's Java archive.
        url: the JDBC URL, in which ``{}`` is replaced by the name of the database.
        begins: for each level, the statement that selects it before a transaction begins.
    """

    jar: ClassVar[str]
    url: ClassVar[str]
    begins: ClassVar[dict[str, str]]
    lacks: ClassVar = frozenset({"savepoints", "processes"})
    driver: ClassVar = DRIVER
    client: ClassVar = JdbcClient
    alone: ClassVar = True  # the database exists only in this process

    def __init__(self, address: Address, prefix: str) -> None:
        super().__init__(address, prefix)
        self._url = self.url.format(address.database or f"isocheck-{uuid4().hex}")

    def start(self) -> None:
        jar_option = self.address.options.get("jar", "")
        jar = jar_option or os.path.join(_FOLDER, self.jar)
        if not os.path.exists(jar):
            hint = f"install the package lib{self.name}-java, or give ?jar=FILE"
            raise TargetError(f"{self.name}: {jar} does not exist; {hint}")
        jpype = import_package("jpype", "jdbc")
        import_package("jpype.dbapi2", "jdbc")
        if not jpype.isJVMStarted():
            # A process can have only one Java machine, so it loads the archives of all databases.
            known = [os.path.join(_FOLDER, one.jar) for one in (H2, Hsqldb, Derby)]
            try:
                jpype.startJVM(*_MACHINE, classpath=[jar, *known])
            except (OSError, RuntimeError) as error:
                raise TargetError(f"{self.name}: cannot start Java ({error})") from None
            # Otherwise, HSQLDB would print its latch counts.
            java = jpype.JPackage("java")
            silent = java.io.PrintStream(java.io.OutputStream.nullOutputStream())
            java.lang.System.setOut(silent)
        super().start()

    def open(self, *, direct: bool) -> Any:
        raw = import_package("jpype.dbapi2", "jdbc").connect(self._url)
        raw.autocommit = False
        return raw

    def version(self) -> str:
        about = self.admin().raw.connection.getMetaData()
        name, version = about.getDatabaseProductName(), about.getDatabaseProductVersion()
        return f"{name} {str(version).split(' ', maxsplit=1)[0]}"


_H2: Final = "https://h2database.com/html/advanced.html#transaction_isolation"
_H2_SNAPSHOT: Final = "Dirty reads, non-repeatable reads, and phantom reads aren't possible."


def _characteristics(level: str) -> str:
    return f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level.upper()}"


class H2(Jdbc):
    """An H2 database in memory."""

    name: ClassVar = "h2"
    jar: ClassVar = "h2.jar"
    url: ClassVar = "jdbc:h2:mem:{};DB_CLOSE_DELAY=-1;LOCK_TIMEOUT=3000"
    levels: ClassVar = tuple(
        Level(name=name, claims=claims, says=_characteristics(name), promise=promise, source=_H2)
        for name, claims, promise in (
            ("snapshot", "si", _H2_SNAPSHOT),
            # "… doesn't ensure equivalence of concurrent and serializable execution …"
            ("serializable", "si", _H2_SNAPSHOT),
            ("repeatable read", "pl-2", "Dirty reads and non-repeatable reads aren't possible"),
            ("read committed", "pl-2", "Dirty reads aren't possible"),
            ("read uncommitted", "pl-1", ""),
        )
    )
    mixes = ""
    begins: ClassVar = {level.name: level.says for level in levels}
    dialect = Dialect(
        mark="?", changed="", text="VARCHAR", upsert="MERGE INTO {table} (k, j, v) KEY (k) "
        "VALUES ({marks})",
        place="_ROWID_ >= 0",
    )  # fmt: skip


_HSQLDB: Final = "https://hsqldb.org/doc/2.0/guide/sessions-chapt.html"
_HSQLDB_KEPT: Final = "These levels keep both read and write locks on tables until commit."
_HSQLDB_RELEASED: Final = (
    "It keeps write locks on tables until commit, but releases the read locks after each operation."
)
_HSQLDB_UPDATES: Final = "It works the same way as normal 2PL as far as updates are concerned."


class HsqldbClient(JdbcClient):
    """A connection to an in-memory HSQLDB database."""

    def isolation(self) -> str:
        sql = (
            "SELECT PROPERTY_VALUE FROM INFORMATION_SCHEMA.SYSTEM_PROPERTIES "
            "WHERE PROPERTY_NAME = 'hsqldb.tx'"
        )
        (model,) = self.execute(sql, ()).fetchone()
        return f"{str(model).lower()} {super().isolation()}"


class Hsqldb(Jdbc):
    """An HSQLDB database in memory; its level names begin with the transaction model."""

    name: ClassVar = "hsqldb"
    client: ClassVar = HsqldbClient
    jar: ClassVar = "hsqldb.jar"
    url: ClassVar = "jdbc:hsqldb:mem:{}"
    levels: ClassVar = tuple(
        Level(
            name=f"{model} {level}",
            claims=claims,
            says=f"SET DATABASE TRANSACTION CONTROL {model.upper()}; {_characteristics(level)}",
            promise=promise,
            source=_HSQLDB,
        )
        for model, level, claims, promise in (
            ("mvcc", "serializable", "si", ""),
            ("mvcc", "read committed", "pl-2", ""),
            ("locks", "serializable", "sser", _HSQLDB_KEPT),
            ("locks", "repeatable read", "sser", _HSQLDB_KEPT),
            ("locks", "read committed", "pl-2", _HSQLDB_RELEASED),
            ("mvlocks", "serializable", "sser", _HSQLDB_UPDATES),
            ("mvlocks", "read committed", "pl-2", _HSQLDB_UPDATES),
        )
    )
    begins: ClassVar = {level.name: level.says.partition("; ")[2] for level in levels}
    dialect = Dialect(
        mark="?", changed="", text="VARCHAR(32000)", concat="v || CAST({mark} AS VARCHAR(32))",
        upsert="MERGE INTO {table} USING (VALUES(CAST(? AS VARCHAR(64)), CAST(? AS VARCHAR(64)), "
        "CAST(? AS BIGINT))) AS s(k, j, v) ON {table}.k = s.k "
        "WHEN MATCHED THEN UPDATE SET {table}.v = s.v "
        "WHEN NOT MATCHED THEN INSERT (k, j, v) VALUES s.k, s.j, s.v",
    )  # fmt: skip

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        model = self.level.partition(" ")[0].upper()
        self.admin().execute(f"SET DATABASE TRANSACTION CONTROL {model}", ())
        super().setup(registers, lists)


_DERBY: Final = "https://docs.oracle.com/javadb/10.6.2.1/devguide/rdevconcepts8424.html"


class Derby(Jdbc):
    """A Derby database in memory."""

    name: ClassVar = "derby"
    jar: ClassVar = "derby.jar"
    url: ClassVar = "jdbc:derby:memory:{};create=true"
    levels: ClassVar = tuple(
        Level(
            name=name, claims=claims, says=f"SET ISOLATION {begin}", promise=promise, source=_DERBY
        )
        for name, begin, claims, promise in (
            (
                "serializable",
                "SERIALIZABLE",
                "sser",
                "Derby locks the whole set before the application begins stepping through",
            ),
            (
                # The claim is not locking-repeatable-read: a missing row has no lock, but a read
                # that finds no row is recorded as a read of its key.
                "repeatable read",
                "RS",
                "pl-2",
                "the locks are released at the end of the transaction",
            ),
            (
                "read committed",
                "CS",
                "pl-2",
                "Derby locks rows only as the application steps through the rows in the result",
            ),
            ("read uncommitted", "UR", "pl-1", "no row locks are requested"),
        )
    )
    mixes = ""
    begins: ClassVar = {level.name: level.says for level in levels}
    dialect = Dialect(
        mark="?", changed="", text="VARCHAR(32000)", concat="v || CAST({mark} AS VARCHAR(32))",
        upsert="",
    )  # fmt: skip
