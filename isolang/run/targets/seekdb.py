"""Adapts seekdb, OceanBase's embedded database: a separate process with MySQL's protocol."""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING, Any, ClassVar, Final

from isolang.run.adapter import import_package
from isolang.run.drivers.mariadb import DRIVER
from isolang.run.sql import Dialect, SqlTarget
from isolang.run.sql.statements import ON_DUPLICATE_KEY
from isolang.run.target import Level, TargetError
from isolang.run.targets.mariadb import MySQLClient

if TYPE_CHECKING:
    from isolang.run.address import Address

_DATABASE: Final = "isocheck"
_LONGEST: Final = 3_000_000  # the time limit for a statement in microseconds, including waits
_SOURCE: Final = "https://www.oceanbase.ai/docs/set-transaction"
_SUPPORTED: Final = "seekdb supports the Read Committed and Repeatable Read isolation levels."


class SeekDB(SqlTarget):
    """A seekdb database in a temporary folder."""

    name: ClassVar = "seekdb"
    levels: ClassVar = tuple(
        Level(
            name=name,
            claims=claims,
            says=f"SET TRANSACTION ISOLATION LEVEL {name.upper()}",
            promise=promise,
            source=_SOURCE,
        )
        for name, claims, promise in (
            ("repeatable read", "si", _SUPPORTED),
            ("read committed", "pl-2", _SUPPORTED),
            ("serializable", "si", ""),  # seekdb does not support this level
        )
    )
    mixes = ""
    lacks: ClassVar = frozenset({"processes"})
    dialect = Dialect(
        mark="%s", changed="", concat="CONCAT(v, {mark})", text="LONGTEXT",
        key="VARCHAR(64) COLLATE utf8mb4_bin", upsert=ON_DUPLICATE_KEY,
    )  # fmt: skip
    driver: ClassVar = DRIVER
    client: ClassVar = MySQLClient

    def __init__(self, address: Address, prefix: str) -> None:
        super().__init__(address, prefix)
        self._folder = ""
        self._engine: Any = None

    def start(self) -> None:
        engine = import_package("pylibseekdb", "seekdb")
        self._folder = tempfile.mkdtemp(prefix="isocheck-")
        try:
            self._engine = engine.open(f"{self._folder}/seekdb")
            with self._connect("oceanbase") as raw:
                raw.cursor().execute(f"CREATE DATABASE {_DATABASE}")
        except Exception as error:
            what = " ".join(str(error).split())
            raise TargetError(f"seekdb: the process does not start ({what})") from None
        super().start()

    def open(self, *, direct: bool) -> Any:
        raw = self._connect(_DATABASE)
        raw.cursor().execute(f"SET SESSION ob_query_timeout = {_LONGEST}")
        return raw

    def _connect(self, database: str) -> Any:
        pymysql = import_package("pymysql", "seekdb")
        flag = pymysql.constants.CLIENT.FOUND_ROWS
        where = self._engine.connection_options()
        return pymysql.connect(database=database, client_flag=flag, connect_timeout=5, **where)

    def version(self) -> str:
        (shown,) = self.admin().execute("SELECT VERSION()", ()).fetchone()
        self.admin().raw.rollback()
        return f"seekdb {str(shown).rpartition('-v')[2]}"

    def close(self) -> None:
        super().close()
        if self._engine is not None:
            self._engine.close()
        shutil.rmtree(self._folder, ignore_errors=True)
