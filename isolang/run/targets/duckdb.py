"""Adapts DuckDB: an in-process database on which each session has its own cursor."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from isolang.run.adapter import import_package
from isolang.run.drivers.duckdb import DRIVER
from isolang.run.sql import MERGE, Dialect, SqlClient, SqlTarget
from isolang.run.target import Level, TargetError

_MERGE_FROM_VERSION: Final = (1, 4)  # the first version that has MERGE


class DuckDBClient(SqlClient):
    """A session; its cursor is a separate connection to the database."""

    def _begin(self, level: str) -> None:
        self.raw.execute("BEGIN TRANSACTION")

    def execute(self, sql: str, values: tuple[Any, ...]) -> Any:
        return self.raw.execute(sql, values)

    def count_written(self, cursor: Any) -> int:
        return int(cursor.fetchone()[0])


class DuckDB(SqlTarget):
    """A DuckDB database in memory, or in the file named by the URL."""

    name: ClassVar = "duckdb"
    levels: ClassVar = (Level(name="snapshot", claims="si", says="BEGIN TRANSACTION"),)
    dialect = Dialect(mark="?", merge=MERGE, place="rowid >= 0")
    chores: ClassVar = {
        "CHECKPOINT": "CHECKPOINT",
        "VACUUM": "VACUUM",
        "ANALYZE": "ANALYZE {table}",
        "CREATE INDEX": "DROP INDEX IF EXISTS {table}_chore; CREATE INDEX {table}_chore ON "
        "{table} (v)",
    }
    backups: Mapping[str, str] = MappingProxyType(
        {
            "COPY FROM DATABASE": "COPY FROM DATABASE to an attached file",
            "EXPORT DATABASE": "EXPORT DATABASE, and IMPORT DATABASE into another one",
        }
    )
    lacks: ClassVar = frozenset({"savepoints", "processes"})
    driver: ClassVar = DRIVER
    client: ClassVar = DuckDBClient
    _database: Any = None
    alone: ClassVar = True  # no other process can open a file that a process has opened

    def start(self) -> None:
        duckdb = import_package("duckdb", self.name)
        try:
            # Statements are too short to benefit from several threads.
            path = self.address.database or ":memory:"
            self._database = duckdb.connect(path, config={"threads": 1})
        except duckdb.Error as error:
            raise TargetError(f"{self.address}: cannot open the database ({error})") from None
        if tuple(int(one) for one in duckdb.__version__.split(".")[:2]) < _MERGE_FROM_VERSION:
            self.dialect = replace(self.dialect, merge="")
            self._compile()
        super().start()

    def version(self) -> str:
        return f"DuckDB {import_package('duckdb', self.name).__version__}"

    def open(self, *, direct: bool) -> Any:
        return self._database.cursor()

    @contextmanager
    def open_copy(self, way: str, level: str) -> Iterator[SqlClient]:
        connect = import_package("duckdb", self.name).connect
        with (
            tempfile.TemporaryDirectory(prefix="isocheck-") as folder,
            closing(self._database.cursor()) as source,
        ):
            path = os.path.join(folder, "copy")
            if way == "EXPORT DATABASE":
                source.execute(f"EXPORT DATABASE '{path}'")
                made = connect()
                made.execute(f"IMPORT DATABASE '{path}'")
            else:
                (name,) = source.execute("SELECT current_database()").fetchone()
                source.execute(f"ATTACH '{path}' AS isocheck_copy")
                try:
                    source.execute(f'COPY FROM DATABASE "{name}" TO isocheck_copy')
                finally:
                    source.execute("DETACH isocheck_copy")
                made = connect(path)
            with closing(self.client(self, made)) as copy:
                yield copy

    def close(self) -> None:
        super().close()
        if self._database is not None:
            self._database.close()
