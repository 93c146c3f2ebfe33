"""Adapts Turso, an in-process rewrite of SQLite that allows concurrent writes."""

from __future__ import annotations

from typing import Any, ClassVar

from isolang.run.adapter import import_package
from isolang.run.outcome import Driver, Failure, Phase
from isolang.run.sql import Dialect, FileTarget, SqlClient
from isolang.run.target import Level


def _commit(raw: Any) -> None:
    try:
        raw.cursor().execute("COMMIT")
    except Exception:
        _roll_back(raw)
        raise


def _roll_back(raw: Any) -> None:
    if raw.in_transaction:
        raw.cursor().execute("ROLLBACK")


def _classify(error: BaseException, phase: Phase) -> Failure:
    refused = any(word in str(error) for word in ("conflict", "Conflict", "busy", "locked"))
    return "aborted" if phase == "statement" or refused else "maybe"


class TursoClient(SqlClient):
    """A connection to the database file."""

    def _begin(self, level: str) -> None:
        self.raw.cursor().execute(_BEGIN[level])

    def execute(self, sql: str, values: tuple[Any, ...]) -> Any:
        return self.raw.cursor().execute(sql, values)


_BEGIN = {
    "concurrent": "BEGIN CONCURRENT",
    "mvcc": "BEGIN",
    "wal": "BEGIN",
    "immediate": "BEGIN IMMEDIATE",
}


class Turso(FileTarget):
    """A Turso database in the file named by the URL, or in a temporary file."""

    name: ClassVar = "turso"
    levels: ClassVar = (
        Level(
            name="concurrent",
            claims="si",
            says="journal_mode=mvcc; BEGIN CONCURRENT",
            promise="Each transaction sees consistent snapshot at begin time.",
            source="https://github.com/tursodatabase/turso, MVCC Guide",
        ),
        Level(name="mvcc", claims="sser", says="journal_mode=mvcc; BEGIN"),
        Level(name="wal", claims="sser", says="journal_mode=wal; BEGIN"),
        Level(name="immediate", claims="sser", says="journal_mode=wal; BEGIN IMMEDIATE"),
    )
    lacks: ClassVar = frozenset({"savepoints", "processes"})
    dialect = Dialect(mark="?")
    driver: ClassVar = Driver(commit=_commit, rollback=_roll_back, classify=_classify)
    client: ClassVar = TursoClient

    def open(self, *, direct: bool) -> Any:
        raw = import_package("turso", self.name).connect(self.path, isolation_level=None)
        mode = "mvcc" if self.level in ("concurrent", "mvcc") else "wal"
        raw.cursor().execute(f"PRAGMA journal_mode = '{mode}'").fetchall()
        raw.cursor().execute("PRAGMA busy_timeout = 2000").fetchall()
        raw.cursor().execute("PRAGMA synchronous = off").fetchall()
        return raw

    def version(self) -> str:
        from importlib.metadata import version

        return f"Turso {version('pyturso')}"
