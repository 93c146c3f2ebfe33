"""Adapts ArcadeDB, an embedded multi-model database in Java, with a document for each key."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Final

from isolang.run.adapter import import_package
from isolang.run.families.embedded import EmbeddedClient, EmbeddedTarget
from isolang.run.outcome import Failure, Phase
from isolang.run.target import Level, TargetError

_SOURCE: Final = (
    "https://github.com/ArcadeData/arcadedb-docs/blob/2fa3318c87a78fdd401a3736861d66f4c79fa983/"
    "docs/modules/ROOT/pages/concepts/transactions.adoc"
)
_LEVELS: Final = "com.arcadedb.database.Database$TRANSACTION_ISOLATION_LEVEL"
_MACHINE: Final = (  # with -Xrs, only isocheck handles Ctrl-C
    "-Xrs -XX:+UseSerialGC -Djava.util.logging.config.file="
)
_REFUSED: Final = ("ConcurrentModificationException", "DuplicatedKeyException", "NeedRetry")
_SCHEMA: Final = (
    "CREATE DOCUMENT TYPE Item",
    "CREATE PROPERTY Item.k STRING",
    "CREATE PROPERTY Item.t STRING",
    "CREATE PROPERTY Item.v LONG",
    "CREATE INDEX ON Item (k) UNIQUE",
    "CREATE INDEX ON Item (v) NOTUNIQUE",
)


class ArcadeDB(EmbeddedTarget):
    """An ArcadeDB database in a folder, run by the Java machine in its package."""

    name: ClassVar = "arcadedb"
    distribution: ClassVar = "arcadedb-embedded"
    levels: ClassVar = (
        Level(
            name="read committed",
            claims="pl-2",
            says="begin(READ_COMMITTED)",
            promise="a transaction reads data written by a concurrent uncommitted transaction. "
            "This is never possible with ArcadeDB.",
            source=_SOURCE,
        ),
        Level(
            name="repeatable read",
            claims="pl-cs",
            says="begin(REPEATABLE_READ)",
            promise="If the record has been saved by another transaction in the interim, then an "
            "ConcurrentModificationException will be thrown.",
            source=_SOURCE,
        ),
    )

    def import_engine(self) -> None:
        self.api, self.jpype = (
            import_package("arcadedb_embedded", self.name),
            import_package("jpype", self.name),
        )
        if not self.jpype.isJVMStarted():
            self._start_machine()
        try:
            self.isolation = self.jpype.JClass(_LEVELS)
        except TypeError:
            raise TargetError(
                f"{self.name}: another database has the Java machine of this process; play it in a "
                "process of its own"
            ) from None

    def _start_machine(self) -> None:
        """Start Java so that its logger creates no folder in the user's current folder."""
        with tempfile.NamedTemporaryFile("w", suffix=".properties") as quiet:
            quiet.write(".level=OFF\n")
            quiet.flush()
            import_package("arcadedb_embedded.jvm", self.name).start_jvm(
                heap_size="512m", jvm_args=_MACHINE + quiet.name
            )
            log = self.jpype.JClass("com.arcadedb.log.LogManager").instance()
            # The first call makes the logger read its configuration file.
            log.isLoggable(log, self.jpype.JClass("java.util.logging.Level").SEVERE)

    def create(self, path: str, keys: Sequence[str]) -> None:
        self.database = self.api.create_database(path)
        self.java = self.database.get_java_database()
        for command in _SCHEMA:
            self.database.command("sql", command)
        with self.database.transaction():
            for key in keys:
                self.database.command("sql", "INSERT INTO Item SET k = ?, t = ''", key)

    def connect(self) -> ArcadeDBClient:
        return ArcadeDBClient(self)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        refused = any(word in str(error) for word in _REFUSED)
        return "aborted" if refused else super().classify(error, phase)

    def close_database(self) -> None:
        self.database.close()


class ArcadeDBClient(EmbeddedClient):
    """A session with its own thread, because ArcadeDB binds transactions to threads."""

    target: ArcadeDB

    def __init__(self, target: ArcadeDB) -> None:
        super().__init__(target)
        self._thread = ThreadPoolExecutor(1)

    def ask(self, sql: str, *values: object) -> list[tuple[str, Any]]:
        """Run a command, and return the property k of each row, with its text or number."""
        return self._on_thread(lambda: self._rows(sql, values))  # type: ignore[no-any-return]

    def _rows(self, sql: str, values: Sequence[object]) -> list[tuple[str, Any]]:
        rows = self.target.database.command("sql", sql, *values)
        return [(row.get("k"), row.get("found")) for row in rows]

    def _on_thread(self, call: Callable[[], Any]) -> Any:
        return self._thread.submit(call).result()

    def begin(self, level: str) -> None:
        isolation = getattr(self.target.isolation, level.upper().replace(" ", "_"))
        self._on_thread(lambda: self.target.java.begin(isolation))

    def get(self, key: str) -> str | None:
        rows = self.ask("SELECT k, t AS found FROM Item WHERE k = ?", key)
        return rows[0][1] if rows else None

    def _count(self, sql: str, *values: object) -> bool:
        """Run an UPDATE or DELETE, and return whether there was a row."""
        return self._on_thread(lambda: self._counted(sql, values)) > 0  # type: ignore[no-any-return]

    def _counted(self, sql: str, values: Sequence[object]) -> int:
        (row,) = self.target.database.command("sql", sql, *values)
        return int(row.get("count"))

    def write(self, key: str, value: int) -> bool:
        return self._count("UPDATE Item SET t = ?, v = ? WHERE k = ?", str(value), value, key)

    def append(self, key: str, value: int) -> bool:
        return self._count("UPDATE Item SET t = t.append(?) WHERE k = ?", f" {value}", key)

    def insert(self, key: str, value: int) -> None:
        self.ask("INSERT INTO Item SET k = ?, t = ?, v = ?", key, str(value), value)

    def delete(self, key: str) -> bool:
        return self._count("DELETE FROM Item WHERE k = ?", key)

    def scan_texts(self, low: str, high: str) -> dict[str, str]:
        return dict(self.ask("SELECT k, t AS found FROM Item WHERE k BETWEEN ? AND ?", low, high))

    def select(self, low: int, high: int) -> dict[str, Any]:
        return dict(self.ask("SELECT k, v AS found FROM Item WHERE v BETWEEN ? AND ?", low, high))

    def change(self, low: int, high: int, value: int) -> list[str]:
        sql = "UPDATE Item SET t = ?, v = ? RETURN AFTER WHERE v BETWEEN ? AND ?"
        return [key for key, _ in self.ask(sql, str(value), value, low, high)]

    def commit(self) -> None:
        self._on_thread(self.target.database.commit)

    def rollback(self) -> None:
        self._on_thread(self._roll_back)

    def _roll_back(self) -> None:
        if self.target.database.is_transaction_active():  # a failed COMMIT rolls back
            self.target.database.rollback()

    def close(self) -> None:
        self.rollback()
        self._thread.shutdown()
