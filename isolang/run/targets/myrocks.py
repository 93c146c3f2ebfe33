"""Adapts MyRocks, the MariaDB engine that stores tables in RocksDB."""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec.structs import replace

from isolang.run.target import Level
from isolang.run.targets.mariadb import MariaDB, MySQLClient

_SOURCE: Final = (
    "https://mariadb.com/docs/server/server-usage/storage-engines/myrocks/"
    "myrocks-transactional-isolation"
)


class MyRocks(MariaDB):
    """A MariaDB server with MyRocks tables."""

    name: ClassVar = "myrocks"
    levels: ClassVar = tuple(
        Level(
            name=name,
            claims=claims,
            says=f"SET TRANSACTION ISOLATION LEVEL {name.upper()}",
            promise=promise,
            source=_SOURCE,
        )
        for name, claims, promise in (
            ("repeatable read", "si", "MyRocks uses snapshot isolation."),
            ("read committed", "pl-2", "MyRocks uses snapshot isolation."),
        )
    )
    lacks: ClassVar = MariaDB.lacks | {"savepoints"}  # no ROLLBACK TO SAVEPOINT after writes
    dialect = replace(
        MariaDB.dialect, tables=" ENGINE=ROCKSDB DEFAULT CHARSET=ascii", skip="", cascades=False
    )
    chores: ClassVar = {
        name: MariaDB.chores[name] for name in ("ANALYZE", "OPTIMIZE", "CREATE INDEX")
    }
    client: ClassVar = MySQLClient
    settings: ClassVar = {
        "plugin-load-add": "ha_rocksdb",
        "loose-rocksdb-lock-wait-timeout": "3",
        "loose-rocksdb-flush-log-at-trx-commit": "2",
        "loose-rocksdb-block-cache-size": "64M",
    }
