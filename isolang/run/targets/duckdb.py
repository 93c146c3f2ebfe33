"""DuckDB: one database in this process, a cursor for each session."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from isolang.run.outcome import Driver, Failure, Phase
from isolang.run.sql import Dialect, SqlClient, SqlTarget
from isolang.run.target import Address, Level, TargetError


class DuckDB(SqlTarget):
    """In memory, or the file that the URL names."""

    name: ClassVar = "duckdb"
    levels: ClassVar = (Level(name="snapshot", claims="si", says="BEGIN TRANSACTION"),)
    dialect: ClassVar = Dialect(mark="?", upsert=True)
    lacks: ClassVar = frozenset({"savepoints", "processes"})

    def __init__(self, address: Address, prefix: str) -> None:
        super().__init__(address, prefix)
        self._database: Any = None

    def start(self) -> None:
        try:
            import duckdb
        except ImportError:
            raise TargetError("duckdb: no driver; pip install 'isolang[duckdb]'") from None
        try:
            # One statement is not worth several threads.
            path = self.address.database or ":memory:"
            self._database = duckdb.connect(path, config={"threads": 1})
        except duckdb.Error as error:
            raise TargetError(f"{self.address}: cannot be opened ({error})") from None
        super().start()

    def version(self) -> str:
        import duckdb

        return f"DuckDB {duckdb.__version__}"

    def connect(self, *, direct: bool = False) -> SqlClient:
        return DuckDBClient(self, self._database.cursor())

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        return classify(error, phase)

    def close(self) -> None:
        super().close()
        if self._database is not None:
            self._database.close()


class DuckDBClient(SqlClient):
    """A cursor, which is a connection of its own."""

    def _begin(self, level: str) -> None:
        self.raw.execute("BEGIN TRANSACTION")

    def execute(self, sql: str, values: tuple[Any, ...]) -> Any:
        return self.raw.execute(sql, values)

    def written(self, cursor: Any) -> int:
        return int(cursor.fetchone()[0])

    def _commit(self) -> None:
        self.raw.commit()

    def rollback(self) -> None:
        roll_back(self.raw)


def commit(connection: Any) -> None:
    """Commit."""
    connection.commit()


def roll_back(connection: Any) -> None:
    """Roll back; this raises where no transaction is open, since statements then committed."""
    connection.rollback()


def classify(error: BaseException, phase: Phase) -> Failure:
    """Say what an error means: a conflict that COMMIT finds has rolled the transaction back."""
    conflict = type(error).__name__ in ("TransactionException", "ConstraintException")
    if phase == "commit" and conflict and "no transaction is active" not in str(error):
        return "aborted"
    return "aborted" if phase == "statement" else "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
