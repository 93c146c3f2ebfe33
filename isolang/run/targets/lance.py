"""Adapts the table format Lance: ``merge_insert`` and ``delete`` on a data set in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from isolang.run.adapter import import_package
from isolang.run.families.table_formats import TableClient, TableTarget
from isolang.run.outcome import Failure, Phase
from isolang.run.target import Level

_SOURCE: Final = "https://docs.lancedb.com/basics/guarantees"
_PROMISE: Final = (
    "Compatible changes can be committed; conflicts may be retried or returned as errors."
)


class Lance(TableTarget):
    """Two Lance data sets in a temporary folder, one for each level."""

    name: ClassVar = "lance"
    distribution: ClassVar = "pylance"
    levels: ClassVar = (
        Level(
            name="primary key",
            claims="si",
            says="merge_insert on the unenforced primary key, conflict_retries=0",
            promise=_PROMISE,
            source=_SOURCE,
        ),
        Level(
            name="merge insert",
            claims="si",
            says="merge_insert, conflict_retries=0",
            promise=_PROMISE,
            source=_SOURCE,
        ),
    )
    lacks: ClassVar = frozenset({"savepoints", "processes"})

    def import_engine(self) -> None:
        self.api = import_package("lance", self.name)

    def create_table(self, rows: Any) -> None:
        arrow = import_package(self.tables, self.name)
        key = {"lance-schema:unenforced-primary-key": "true"}
        plain, fields = rows.schema, (arrow.field("k", "string", nullable=False, metadata=key),)
        keyed = arrow.schema([*fields, plain.field("v")])
        for level, schema in (("primary key", keyed), ("merge insert", plain)):
            self.api.write_dataset(rows.cast(schema), f"{self.path}-{level.replace(' ', '-')}")

    def connect(self) -> LanceClient:
        return LanceClient(self)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        message = str(error)
        refused = "concurrent" in message or "conflict" in message.lower()
        return "aborted" if refused else super().classify(error, phase)


class LanceClient(TableClient):
    """A session on the data set for its level."""

    target: Lance

    def begin(self, level: str) -> None:
        self.level = level
        super().begin(level)

    def open(self) -> Any:
        return self.target.api.dataset(f"{self.target.path}-{self.level.replace(' ', '-')}")

    def scan_rows(self) -> Any:
        return self.table.to_table()

    def upsert(self, rows: Any) -> None:
        made = self.table.merge_insert("k").conflict_retries(0)
        made.when_matched_update_all().when_not_matched_insert_all().execute(
            rows.cast(self.table.schema)
        )

    def delete_rows(self, keys: Sequence[str]) -> None:
        names = ", ".join(f"'{key}'" for key in keys)
        self.table.delete(f"k IN ({names})", conflict_retries=0)
