"""The databases that can be tested: one file each, imported when it is asked for.

Other packages add theirs by an entry point of the group ``isolang.targets``, whose name is what
stands before ``:`` in the target and whose object is called with the address and the prefix of the
tables. An adapter in a file of one's own is named by the file and its class
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
    """Make the target that the user named.

    Args:
        text: a name, or a URL.
        prefix: how the names of the tables begin that are created.

    Raises:
        TargetError: there is no such target.
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
    """Whether a target is tested before each run: its adapter, or its driver, is not ours."""
    return target.name in ("exec", "sqlalchemy") or not type(target).__module__.startswith(
        "isolang.run.targets."
    )


def level_named(target: Target, name: str) -> Level:
    """Find a level of a target; without a name its strongest claim's, which stands first.

    Raises:
        TargetError: it has no such level.
    """
    if not name:
        return target.levels[0]
    wanted = name.lower().replace("-", " ").replace("_", " ")
    for level in target.levels:
        if level.name == wanted:
            return level
    names = ", ".join(repr(level.name) for level in target.levels)
    raise TargetError(f"{target.name}: no such level (got {name!r}, expected one of {names})")
