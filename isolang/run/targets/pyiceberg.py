"""Adapts PyIceberg: ``upsert`` and ``delete`` on an Iceberg table with its catalogue in SQLite."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

from isolang.run.adapter import import_package
from isolang.run.families.table_formats import TableClient, TableTarget
from isolang.run.outcome import Failure, Phase
from isolang.run.target import Level


class PyIceberg(TableTarget):
    """An Iceberg table in a temporary folder."""

    name: ClassVar = "pyiceberg"
    distribution: ClassVar = "pyiceberg"
    levels: ClassVar = (
        Level(
            name="serializable",
            claims="si",
            says="write.*.isolation-level=serializable, the default; upsert from one version",
            promise="Serializable isolation: All table changes occur in a linear history of atomic "
            "table updates",
            source="https://iceberg.apache.org/docs/latest/reliability",
        ),
    )

    def import_engine(self) -> None:
        self.errors = import_package("pyiceberg.exceptions", self.name)
        logging.getLogger("pyiceberg").setLevel(logging.CRITICAL)

    def catalogue(self) -> Any:
        """Open the catalogue in the temporary folder."""
        made = import_package("pyiceberg.catalog.sql", self.name).SqlCatalog
        where = f"sqlite:///{self.folder}/catalogue.db"
        return made("isocheck", uri=where, warehouse=f"file://{self.folder}")

    def create_table(self, rows: Any) -> None:
        catalogue = self.catalogue()
        catalogue.create_namespace("isocheck")
        catalogue.create_table("isocheck.t", schema=rows.schema).append(rows)

    def connect(self) -> PyIcebergClient:
        return PyIcebergClient(self)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        known = (self.errors.CommitFailedException, self.errors.ValidationException)
        return "aborted" if isinstance(error, known) else super().classify(error, phase)


class PyIcebergClient(TableClient):
    """A session on the Iceberg table."""

    target: PyIceberg

    def __init__(self, target: PyIceberg) -> None:
        super().__init__(target)
        self.catalogue = target.catalogue()

    def open(self) -> Any:
        return self.catalogue.load_table("isocheck.t")

    def scan_rows(self) -> Any:
        return self.table.scan().to_arrow()

    def upsert(self, rows: Any) -> None:
        self.table.upsert(rows, join_cols=["k"])

    def delete_rows(self, keys: Sequence[str]) -> None:
        self.table.delete(import_package("pyiceberg.expressions", "pyiceberg").In("k", set(keys)))
