"""Provides adapters of databases: one file each, imported on demand.

Other packages add adapters by an entry point of the group ``isolang.targets``. The name of the
entry point is the part of a target before ``:``, and its object is called with the address and the
prefix of the tables. An adapter in a user's file is named by the file and its class
(``my_adapter.py:MyDatabase``): :mod:`isolang.run.targets.from_file`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from isolang.errors import none_of
from isolang.run.address import Address
from isolang.run.target import Level, Target, TargetError

BUILT_IN: Final = {
    "postgres": "postgres_standby:PostgresWithStandby",
    "postgresql": "postgres_standby:PostgresWithStandby",
    "mariadb": "mariadb:MariaDB",
    "mysql": "mariadb:MariaDB",
    "galera": "galera:Galera",
    "sqlite": "sqlite:SQLite",
    "duckdb": "duckdb:DuckDB",
    "redis": "redis_replica:RedisWithReplica",
    "etcd": "etcd:Etcd",
    "exec": "exec:Exec",
    "memory": "memory:Memory",
    "sqlalchemy": "sqlalchemy:SqlAlchemy",
    "h2": "jdbc:H2",
    "hsqldb": "jdbc:Hsqldb",
    "derby": "jdbc:Derby",
    "slatedb": "slatedb:SlateDB",
    "zodb": "zodb:ZODB",
    "lmdb": "lmdb:LMDB",
    "lance": "lance:Lance",
    "deltalake": "deltalake:DeltaLake",
    "pyiceberg": "pyiceberg:PyIceberg",
    "turso": "turso:Turso",
    "seekdb": "seekdb:SeekDB",
    "firebird": "firebird:Firebird",
}


def target_named(text: str, *, prefix: str = "isocheck_") -> Target:
    """Return the target that the user named.

    Args:
        text: the name or URL of the target.
        prefix: the beginning of the tables' names.

    Raises:
        TargetError: the target does not exist.
    """
    address = Address.parse(text)
    make: Any
    if ".py:" in address.kind:
        from isolang.run.targets.from_file import adapter_in

        make = adapter_in(address.kind)
    elif address.kind in BUILT_IN:
        module, name = BUILT_IN[address.kind].split(":")
        make = getattr(import_module(f"isolang.run.targets.{module}"), name)
    else:
        found = {one.name: one for one in entry_points(group="isolang.targets")}
        names = sorted({*BUILT_IN, *found})
        if address.kind not in found:
            raise TargetError(f"no such target {none_of(address.kind, names)}")
        make = found[address.kind].load()
    made: Target = make(address, prefix)
    return made


def is_foreign(target: Target) -> bool:
    """Return whether a target's adapter, or its driver, is not part of isolang."""
    return target.name in ("exec", "sqlalchemy") or not type(target).__module__.startswith(
        "isolang.run.targets."
    )


def level_named(target: Target, name: str) -> Level:
    """Return a target's level with a name, or its first level, which has the strongest claim.

    Raises:
        TargetError: the target does not have the level.
    """
    if not name:
        return target.levels[0]
    normalized = name.lower().replace("-", " ").replace("_", " ")
    for level in target.levels:
        if level.name == normalized:
            return level
    names = ", ".join(repr(level.name) for level in target.levels)
    raise TargetError(f"{target.name}: no such level (got {name!r}, expected one of {names})")
