"""SQLite, through Python's own module: write-ahead log, rollback journal, and Python's defaults."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from isolang.run.outcome import Autocommit, Driver, Failure, Phase
from isolang.run.sql import Dialect, SqlClient, SqlTarget
from isolang.run.target import Address, Level

PATIENCE: Final = 5.0  # seconds to wait for the lock of another connection, the module's default


class SQLite(SqlTarget):
    """A file: one of our own in a temporary folder, or the one that the URL names."""

    name: ClassVar = "sqlite"
    levels: ClassVar = (
        Level(name="serializable", claims="sser", says="BEGIN; write-ahead log"),
        Level(name="immediate", claims="sser", says="BEGIN IMMEDIATE; write-ahead log"),
        Level(name="journal", claims="sser", says="BEGIN; rollback journal"),
        Level(name="python", claims="ser", says="Python's default: no BEGIN before a SELECT"),
    )
    dialect: ClassVar = Dialect(mark="?", upsert=True)

    def __init__(self, address: Address, prefix: str) -> None:
        super().__init__(address, prefix)
        self._folder = ""
        self._path = address.database

    def start(self) -> None:
        if not self._path:
            self._folder = tempfile.mkdtemp(prefix="isocheck-")
            self._path = os.path.join(self._folder, "test.db")
        super().start()

    def version(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        mode = "delete" if self.level == "journal" else "wal"
        self.admin().raw.execute(f"PRAGMA journal_mode={mode}")
        super().setup(registers, lists)

    def connect(self, *, direct: bool = False) -> SqlClient:
        connection = sqlite3.connect(self._path, timeout=PATIENCE, check_same_thread=False)
        connection.execute("PRAGMA synchronous=off")  # matters only if the machine loses power
        if self.level != "python":
            connection.isolation_level = None
        return SQLiteClient(self, connection)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        return classify(error, phase)

    def close(self) -> None:
        super().close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


class SQLiteClient(SqlClient):
    """A connection."""

    raw: sqlite3.Connection

    def _begin(self, level: str) -> None:
        if level != "python":
            self.raw.execute("BEGIN IMMEDIATE" if level == "immediate" else "BEGIN")

    def _commit(self) -> None:
        commit(self.raw)

    def rollback(self) -> None:
        self.raw.rollback()

    def execute(self, sql: str, values: tuple[Any, ...]) -> Any:
        return self.raw.execute(sql, values)


def commit(connection: sqlite3.Connection) -> None:
    """Commit; a COMMIT that finds the file locked leaves the transaction open: end it."""
    try:
        connection.commit()
    except sqlite3.Error:
        connection.rollback()
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """Roll back the transaction that is open.

    Raises:
        Autocommit: none is, and none is opened by itself.
    """
    if not connection.in_transaction and connection.isolation_level is None:
        raise Autocommit
    connection.rollback()


def classify(error: BaseException, phase: Phase) -> Failure:
    """Say what an error means."""
    name = getattr(error, "sqlite_errorname", "")
    if phase == "statement" or name.startswith(("SQLITE_BUSY", "SQLITE_CONSTRAINT")):
        return "aborted"
    return "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
