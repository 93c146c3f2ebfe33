"""Adapts Firebird, embedded in this process through an installed library."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any, ClassVar, Final

from isolang.run.adapter import import_package
from isolang.run.outcome import Driver, Failure, Phase, roll_back_or_close
from isolang.run.sql import Dialect, SqlClient, SqlTarget
from isolang.run.target import Level, TargetError

if TYPE_CHECKING:
    from isolang.run.address import Address

_BEGIN_MODES: Final = {
    "snapshot table stability": "SERIALIZABLE",
    "snapshot": "SNAPSHOT",
    "read committed": "READ_COMMITTED_RECORD_VERSION",
}
_LOCK_TIMEOUT_S: Final = 3  # the maximum time in seconds that a statement waits for a lock
_SOURCE: Final = "Firebird Language Reference, SET TRANSACTION: Isolation Level"


def _commit(raw: Any) -> None:
    if raw.is_closed():
        raise ConnectionError("the connection is closed")
    try:
        raw.commit()
    except Exception:
        roll_back_or_close(raw)
        raise


def _classify(error: BaseException, phase: Phase) -> Failure:
    return "aborted" if phase == "statement" else "maybe"


class FirebirdClient(SqlClient):
    """A connection to the embedded database."""

    def _begin(self, level: str) -> None:
        driver = import_package("firebird.driver", "firebird")
        isolation = driver.Isolation[_BEGIN_MODES[level]]
        self.raw.begin(driver.tpb(isolation, _LOCK_TIMEOUT_S))

    def count_written(self, cursor: Any) -> int:
        return int(cursor.affected_rows)


class Firebird(SqlTarget):
    """A Firebird database in a temporary file."""

    name: ClassVar = "firebird"
    levels: ClassVar = tuple(
        Level(name=name, claims=claims, says=begin, promise=promise, source=_SOURCE)
        for name, claims, begin, promise in (
            (
                "snapshot", "si", "SET TRANSACTION SNAPSHOT",
                "allows the transaction to see only those changes that were committed before it "
                "was started",
            ),
            (
                "snapshot table stability", "si", "SET TRANSACTION SNAPSHOT TABLE STABILITY",
                "no other transactions can make any changes to any table in the database that has "
                "changes pending for this transaction",
            ),
            (
                "read committed", "pl-2", "SET TRANSACTION READ COMMITTED RECORD_VERSION",
                "Uncommitted changes are not visible to a READ COMMITTED transaction.",
            ),
        )
    )  # fmt: skip
    mixes = ""
    lacks: ClassVar = frozenset({"processes"})
    dialect = Dialect(
        mark="?", changed="", batch=1,
        text="VARCHAR(30000) CHARACTER SET ASCII", key="VARCHAR(64) CHARACTER SET ASCII NOT NULL",
        upsert="UPDATE OR INSERT INTO {table} (k, j, v) VALUES ({marks}) MATCHING (k)",
    )  # fmt: skip
    driver: ClassVar = Driver(commit=_commit, rollback=roll_back_or_close, classify=_classify)
    client: ClassVar = FirebirdClient

    def __init__(self, address: Address, prefix: str) -> None:
        super().__init__(address, prefix)
        self._folder = ""

    def start(self) -> None:
        driver = import_package("firebird.driver", self.name)
        self._folder = tempfile.mkdtemp(prefix="isocheck-")
        for name in ("FIREBIRD_LOCK", "FIREBIRD_TMP"):
            os.environ[name] = self._folder
        driver.driver_config.server_defaults.user.value = "sysdba"
        driver.driver_config.db_defaults.forced_writes.value = (
            False  # this matters only if the machine loses power
        )
        try:
            driver.create_database(os.path.join(self._folder, "test.fdb"), charset="UTF8").close()
        except Exception as error:
            hint = "install the package firebird3.0-server"
            raise TargetError(
                f"firebird: the engine is not installed ({' '.join(str(error).split())}); {hint}"
            ) from None
        super().start()

    def open(self, *, direct: bool) -> Any:
        driver = import_package("firebird.driver", self.name)
        return driver.connect(os.path.join(self._folder, "test.fdb"), charset="UTF8")

    def version(self) -> str:
        return f"Firebird {self.admin().raw.info.version}"

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._folder, ignore_errors=True)
