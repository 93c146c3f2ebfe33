"""Adapts SQLite through ``sqlite3``, with a write-ahead log, a rollback journal, or defaults."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count
from types import MappingProxyType
from typing import Any, ClassVar, Final

from isolang.run.drivers.sqlite import DRIVER
from isolang.run.sql import INDEXES, PARTIAL, Dialect, FileTarget, SqlClient
from isolang.run.target import Level, TargetError

_PAGES_PER_STEP: Final = 4  # the number of pages copied by each step of an online backup
_MAX_BACKUP_STEPS: Final = (
    500  # the maximum number of steps of an online backup, which each commit restarts
)
LOCK_TIMEOUT_S: Final = 5.0  # the time limit in seconds for a lock: the default in ``sqlite3``


class SQLiteClient(SqlClient):
    """A connection to the database file."""

    raw: sqlite3.Connection

    def _begin(self, level: str) -> None:
        if level != "python":
            self.raw.execute("BEGIN IMMEDIATE" if level == "immediate" else "BEGIN")

    def rollback(self) -> None:
        self.raw.rollback()  # unlike a ROLLBACK statement, this works even if BEGIN has failed

    def execute(self, sql: str, values: tuple[Any, ...]) -> Any:
        return self.raw.execute(sql, values)


class SQLite(FileTarget):
    """An SQLite database in the file named by the URL, or in a temporary file."""

    name: ClassVar = "sqlite"
    levels: ClassVar = (
        Level(name="serializable", claims="sser", says="BEGIN; write-ahead log"),
        Level(name="immediate", claims="sser", says="BEGIN IMMEDIATE; write-ahead log"),
        Level(name="journal", claims="sser", says="BEGIN; rollback journal"),
        Level(name="python", claims="ser", says="Python's default: no BEGIN before a SELECT"),
    )
    dialect = Dialect(
        mark="?",
        indexes=(*INDEXES, PARTIAL),
        cascades=True,
        explain="EXPLAIN QUERY PLAN ",
        place="rowid > 0",
    )
    chores: ClassVar = {
        "VACUUM": "VACUUM",
        "ANALYZE": "ANALYZE {table}",
        "REINDEX": "REINDEX {table}",
        "checkpoint": "PRAGMA wal_checkpoint(TRUNCATE)",
        "CREATE INDEX": "DROP INDEX IF EXISTS {table}_chore; CREATE INDEX {table}_chore ON "
        "{table} (v)",
    }
    backups: Mapping[str, str] = MappingProxyType(
        {
            "VACUUM INTO": "VACUUM INTO a file",
            "backup": "the online backup, a few pages at a time",
        }
    )
    driver: ClassVar = DRIVER
    client: ClassVar = SQLiteClient
    reads_outside: ClassVar = frozenset({"python"})

    def version(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        mode = "delete" if self.level == "journal" else "wal"
        try:
            self.admin().raw.execute(f"PRAGMA journal_mode={mode}")
        except sqlite3.Error as error:
            msg = f"sqlite: cannot use {self.path} ({error}); check that you may write there"
            raise TargetError(msg) from None
        super().setup(registers, lists)

    @contextmanager
    def open_copy(self, way: str, level: str) -> Iterator[SqlClient]:
        with tempfile.TemporaryDirectory(prefix="isocheck-") as folder:
            path = os.path.join(folder, "copy.db")
            with closing(self.open(direct=True)) as source:
                if way == "VACUUM INTO":
                    source.execute("VACUUM INTO ?", (path,))
                else:
                    _back_up(source, path)
            with closing(self.client(self, sqlite3.connect(path))) as copy:
                yield copy

    def open(self, *, direct: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=LOCK_TIMEOUT_S, check_same_thread=False)
        connection.execute("PRAGMA synchronous=off")  # this matters only if the machine loses power
        if self.cascading:
            connection.execute("PRAGMA foreign_keys=on")
        if self.level != "python":
            connection.isolation_level = None
        return connection


def _back_up(source: sqlite3.Connection, path: str) -> None:
    """Copy a database step by step, while other connections write between the steps."""
    steps = count()

    def progress(status: int, remaining: int, total: int) -> None:
        if next(steps) > _MAX_BACKUP_STEPS:
            raise TimeoutError("the backup began again too often")

    with closing(sqlite3.connect(path)) as copy:
        source.backup(copy, pages=_PAGES_PER_STEP, progress=progress, sleep=0.001)
