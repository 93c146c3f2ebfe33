"""Adapts Delta Lake through delta-rs: transactions use MERGE or DELETE on a table in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from isolang.run.adapter import import_package
from isolang.run.families.table_formats import TableClient, TableTarget
from isolang.run.outcome import Failure, Phase
from isolang.run.target import Level


class DeltaLake(TableTarget):
    """A Delta Lake table in a temporary folder."""

    name: ClassVar = "deltalake"
    distribution: ClassVar = "deltalake"
    levels: ClassVar = (
        Level(
            name="serializable",
            claims="ser",
            says="MERGE from one version",
            promise="It ensures that committed write operations and all reads are Serializable.",
            source="https://docs.rs/deltalake/latest/deltalake/kernel/enum.IsolationLevel.html",
        ),
    )

    def import_engine(self) -> None:
        self.api = import_package("deltalake", self.name)

    def create_table(self, rows: Any) -> None:
        self.api.write_deltalake(self.path, rows)

    def connect(self) -> DeltaLakeClient:
        return DeltaLakeClient(self)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        refused = isinstance(error, self.api.exceptions.CommitFailedError)
        return "aborted" if refused else super().classify(error, phase)


class DeltaLakeClient(TableClient):
    """A session on the Delta Lake table."""

    target: DeltaLake

    def open(self) -> Any:
        return self.target.api.DeltaTable(self.target.path)

    def scan_rows(self) -> Any:
        return self.table.to_pyarrow_table()

    def upsert(self, rows: Any) -> None:
        merge = self.table.merge(rows, "t.k = s.k", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def delete_rows(self, keys: Sequence[str]) -> None:
        names = ", ".join(f"'{key}'" for key in keys)
        self.table.delete(f"k IN ({names})")
