"""Adapts Ladybug, an embedded graph database (formerly Kùzu), with a node for each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from isolang.run.adapter import import_package
from isolang.run.families.embedded import EmbeddedClient, EmbeddedTarget
from isolang.run.outcome import Failure, Phase
from isolang.run.target import Level


class Ladybug(EmbeddedTarget):
    """A Ladybug database in a file; several transactions can write simultaneously."""

    name: ClassVar = "ladybug"
    distribution: ClassVar = "ladybug"
    levels: ClassVar = (
        Level(
            name="multi writes",
            claims="ser",
            says="Database(enable_multi_writes=True); BEGIN TRANSACTION",
            promise="Ladybug implements a transaction management subsystem that is atomic, durable "
            "and supports serializability.",
            source="https://docs.ladybugdb.com/cypher/transaction",
        ),
    )
    chores: ClassVar = {"CHECKPOINT": "CHECKPOINT"}

    def import_engine(self) -> None:
        self.api = import_package("ladybug", self.name)

    def create(self, path: str, keys: Sequence[str]) -> None:
        # The queries are too short to benefit from several threads.
        self.database = self.api.Database(
            path, buffer_pool_size=1 << 28, max_num_threads=1, enable_multi_writes=True
        )
        admin = self.api.Connection(self.database)
        admin.execute("CREATE NODE TABLE Item (k STRING PRIMARY KEY, t STRING, v INT64)")
        if keys:
            admin.execute("UNWIND $keys AS k CREATE (:Item {k: k, t: ''})", {"keys": list(keys)})

    def connect(self) -> LadybugClient:
        return LadybugClient(self)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        conflict = "onflict" in str(error)
        return "aborted" if conflict else super().classify(error, phase)

    def maintain(self, chore: str) -> None:
        """Run a maintenance statement on a separate connection."""
        self.api.Connection(self.database).execute(self.chores[chore])

    def statement(self, operation: str, key: str, value: object) -> str:
        if operation == "r":
            return f"MATCH (n:Item {{k: '{key}'}}) RETURN n.t"
        return super().statement(operation, key, value)

    def close_database(self) -> None:
        self.database.close()


class LadybugClient(EmbeddedClient):
    """A connection; the properties ``t`` and ``v`` of a key's node are its text and number."""

    target: Ladybug

    def __init__(self, target: Ladybug) -> None:
        super().__init__(target)
        self.raw = target.api.Connection(target.database)

    def ask(self, query: str, **values: object) -> list[list[Any]]:
        """Run a query, and return the rows of its result."""
        return list(self.raw.execute(query, values))

    def begin(self, level: str) -> None:
        self.ask("BEGIN TRANSACTION")

    def get(self, key: str) -> str | None:
        rows = self.ask("MATCH (n:Item {k: $k}) RETURN n.t", k=key)
        return rows[0][0] if rows else None

    def put(self, key: str, text: str | None) -> None:
        if text is None:
            self.ask("MATCH (n:Item {k: $k}) DELETE n", k=key)
        else:
            self.ask("MATCH (n:Item {k: $k}) SET n.t = $t", k=key, t=text)

    def write(self, key: str, value: int) -> bool:
        query = "MATCH (n:Item {k: $k}) SET n.t = $t, n.v = $v RETURN n.k"
        return bool(self.ask(query, k=key, t=str(value), v=value))

    def insert(self, key: str, value: int) -> None:
        self.ask("CREATE (:Item {k: $k, t: $t, v: $v})", k=key, t=str(value), v=value)

    def scan_texts(self, low: str, high: str) -> dict[str, str]:
        query = "MATCH (n:Item) WHERE n.k >= $low AND n.k <= $high RETURN n.k, n.t"
        return dict(self.ask(query, low=low, high=high))

    def select(self, low: int, high: int) -> dict[str, Any]:
        query = "MATCH (n:Item) WHERE n.v >= $low AND n.v <= $high RETURN n.k, n.v"
        return dict(self.ask(query, low=low, high=high))

    def change(self, low: int, high: int, value: int) -> list[str]:
        query = (
            "MATCH (n:Item) WHERE n.v >= $low AND n.v <= $high SET n.t = $t, n.v = $v RETURN n.k"
        )
        return [row[0] for row in self.ask(query, low=low, high=high, t=str(value), v=value)]

    def commit(self) -> None:
        self.ask("COMMIT")

    def rollback(self) -> None:
        try:
            self.ask("ROLLBACK")
        except RuntimeError as error:  # Ladybug has rolled back after an error
            if "No active transaction" not in str(error):
                raise

    def close(self) -> None:
        self.raw.close()
