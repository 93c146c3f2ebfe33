"""Adapts SlateDB, a log-structured store with asynchronous calls, on object storage in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar, Final

from isolang.run.adapter import import_package
from isolang.run.families.embedded import EmbeddedClient, EmbeddedTarget
from isolang.run.outcome import Failure, Phase
from isolang.run.target import Level

_SOURCE: Final = "slatedb.uniffi.IsolationLevel"
_BATCH: Final = 1000  # the number of keys that a scan fetches at a time


class SlateDB(EmbeddedTarget):
    """A SlateDB database in memory, with a thread that runs its asynchronous calls."""

    name: ClassVar = "slatedb"
    distribution: ClassVar = "slatedb"
    levels: ClassVar = (
        Level(
            name="serializable snapshot",
            claims="ser",
            says="IsolationLevel.SERIALIZABLE_SNAPSHOT",
            promise="Reads see a stable snapshot with serializable conflict detection.",
            source=_SOURCE,
        ),
        Level(
            name="snapshot",
            claims="si",
            says="IsolationLevel.SNAPSHOT",
            promise="Reads see a stable snapshot without full serializable conflict checking.",
            source=_SOURCE,
        ),
    )

    def import_engine(self) -> None:
        self.api = import_package("slatedb.uniffi", self.name)

    def create(self, path: str, keys: Sequence[str]) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        store = self.api.ObjectStore.resolve("memory:///")
        self.database = self.call(self.api.DbBuilder("isocheck", store).build())
        batch = self.api.WriteBatch()
        for key in keys:
            batch.put(key.encode(), b"")
        if keys:
            self.call(self.database.write(batch))

    def call(self, made: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the database's thread until it ends, and return its result."""
        return asyncio.run_coroutine_threadsafe(made, self._loop).result()

    def connect(self) -> SlateDBClient:
        return SlateDBClient(self)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        conflict = isinstance(error, self.api.Error.Transaction)
        return "aborted" if conflict else super().classify(error, phase)

    def close_database(self) -> None:
        self.call(self.database.shutdown())
        self._loop.call_soon_threadsafe(self._loop.stop)


class SlateDBClient(EmbeddedClient):
    """A session on the SlateDB database."""

    target: SlateDB

    def begin(self, level: str) -> None:
        isolation = self.target.api.IsolationLevel[level.upper().replace(" ", "_")]
        self.transaction = self.target.call(self.target.database.begin(isolation))

    def get(self, key: str) -> str | None:
        found = self.target.call(self.transaction.get(key.encode()))
        return None if found is None else found.decode()

    def put(self, key: str, text: str | None) -> None:
        name, t = key.encode(), self.transaction
        self.target.call(t.delete(name) if text is None else t.put(name, text.encode()))

    def scan_texts(self, low: str, high: str) -> dict[str, str]:
        bounds = self.target.api.KeyRange(
            start=low.encode(), start_inclusive=True, end=high.encode(), end_inclusive=True
        )
        return self.target.call(self._all(bounds))  # type: ignore[no-any-return]

    async def _all(self, bounds: Any) -> dict[str, str]:
        rows, found = await self.transaction.scan(bounds), dict[str, str]()
        while part := await rows.next_batch(_BATCH):
            found |= {row.key.decode(): row.value.decode() for row in part}
        return found

    def commit(self) -> None:
        self.target.call(self.transaction.commit())

    def rollback(self) -> None:
        self.target.call(self.transaction.rollback())
