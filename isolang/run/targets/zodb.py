"""Adapts ZODB, which stores Python objects in a file: each key is an object or a tree's entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from isolang.run.adapter import import_package
from isolang.run.families.embedded import EmbeddedClient, EmbeddedTarget
from isolang.run.outcome import Failure, Phase
from isolang.run.target import Level

_SNAPSHOT: Final = "each user of a database has a snapshot view of the database"
_MVCC: Final = "ZODB.interfaces.IMVCCStorage"


class ZODB(EmbeddedTarget):
    """A ZODB database in a file storage."""

    name: ClassVar = "zodb"
    distribution: ClassVar = "ZODB"
    levels: ClassVar = (
        Level(
            name="snapshot",
            claims="si",
            says="an object for each key",
            promise=_SNAPSHOT,
            source=_MVCC,
        ),
        Level(
            name="tree",
            claims="si",
            says="a key of an OOBTree for each key",
            promise=_SNAPSHOT,
            source=_MVCC,
        ),
        Level(
            name="readcurrent",
            claims="ser",
            says="connection.readCurrent(object) before each read",
            promise="Make sure an object being read is current",
            source="ZODB.interfaces.IConnection.readCurrent",
        ),
    )
    lacks: ClassVar = frozenset({"savepoints", "processes", "range reads"})

    def import_engine(self) -> None:
        self.api, self.transaction = (
            import_package("ZODB", self.name),
            import_package("transaction", self.name),
        )

    def create(self, path: str, keys: Sequence[str]) -> None:
        row = import_package("persistent.mapping", self.name).PersistentMapping
        self.database = self.api.DB(path, pool_size=100)
        with self.database.transaction() as connection:
            root = connection.root()
            root["rows"] = import_package("BTrees.OOBTree", self.name).OOBTree()
            root["tree"] = import_package("BTrees.OOBTree", self.name).OOBTree()
            for key in keys:
                root["rows"][key] = row(text="")
                root["tree"][key] = ""

    def connect(self) -> ZODBClient:
        return ZODBClient(self)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        conflict = isinstance(error, self.api.POSException.ConflictError)
        return "aborted" if conflict else super().classify(error, phase)

    def close_database(self) -> None:
        self.database.close()


class ZODBClient(EmbeddedClient):
    """A connection to the ZODB database, with its own transaction manager."""

    target: ZODB
    closed = False

    def __init__(self, target: ZODB) -> None:
        super().__init__(target)
        self.manager = target.transaction.TransactionManager()
        self.raw = target.database.open(transaction_manager=self.manager)

    def begin(self, level: str) -> None:
        self.manager.begin()
        self.level, self.root = level, self.raw.root()

    def _row(self, key: str) -> Any:
        row = self.root["rows"][key]
        if self.level == "readcurrent":
            row._p_activate()  # readCurrent ignores objects that are not loaded
            self.raw.readCurrent(row)
        return row

    def get(self, key: str) -> str | None:
        if self.level == "tree":
            return self.root["tree"].get(key)  # type: ignore[no-any-return]
        return self._row(key)["text"]  # type: ignore[no-any-return]

    def put(self, key: str, text: str | None) -> None:
        if self.level != "tree":
            self.root["rows"][key]["text"] = text
        elif text is None:
            del self.root["tree"][key]
        else:
            self.root["tree"][key] = text

    def commit(self) -> None:
        if self.closed:
            raise ConnectionError("the connection is closed")
        try:
            self.manager.commit()
        except Exception:
            self.manager.abort()
            raise

    def rollback(self) -> None:
        self.manager.abort()

    def close(self) -> None:
        self.closed = True
        self.manager.abort()
        self.raw.close()
