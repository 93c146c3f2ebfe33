"""Provides the adapters for databases, one module each, imported on demand.

Other packages can add adapters through an entry point in the group ``isolang.targets``. The name of
the entry point is the part of the user's target before ``:``. Its object is called with the address
and the prefix for table names. To use an adapter in their own file, users write the file and the
class (``my_adapter.py:MyDatabase``): see :mod:`isolang.run.targets.from_file`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from isolang.errors import unknown_name_details
from isolang.run.address import Address
from isolang.run.target import Level, Target, TargetError

BUILT_IN: Final = {
    "postgres": "postgres_standby:PostgresWithStandby",
    "postgresql": "postgres_standby:PostgresWithStandby",
    "mariadb": "mariadb:MariaDB",
    "mysql": "mariadb:MariaDB",
    "galera": "galera:Galera",
    "myrocks": "myrocks:MyRocks",
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
    "ladybug": "ladybug:Ladybug",
    "arcadedb": "arcadedb:ArcadeDB",
}


def target_named(text: str, *, prefix: str = "isocheck_") -> Target:
    """Create the target for a name or URL written by the user.

    Raises:
        TargetError: there is no such target, or its adapter cannot be loaded.
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
            raise TargetError(f"unknown target {unknown_name_details(address.kind, names)}")
        make = found[address.kind].load()
    made: Target = make(address, prefix)
    return made


def is_foreign(target: Target) -> bool:
    """Return whether a target's adapter, or the driver in the adapter, is not part of isolang."""
    return target.name in ("exec", "sqlalchemy") or not type(target).__module__.startswith(
        "isolang.run.targets."
    )


def level_named(target: Target, name: str) -> Level:
    """Return the target's level with this name.

    If the name is empty, return the first level, which is the default.

    Raises:
        TargetError: the target has no level with this name.
    """
    if not name:
        return target.levels[0]
    normalized = name.lower().replace("-", " ").replace("_", " ")
    for level in target.levels:
        if level.name == normalized:
            return level
    names = ", ".join(repr(level.name) for level in target.levels)
    raise TargetError(f"{target.name}: unknown level (got {name!r}, expected one of {names})")
