"""Watches the database of a SQLAlchemy engine, and names the lines assigning values.

The statements are recorded by the watch of the engine's driver. An ORM sends a write later than the
application assigns the value, so the statement comes from the line of the flush. This watch
therefore remembers the line of each assignment, and names that line for the write.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from isolang.errors import IsolangError
from isolang.observe.drivers.callers import caller
from isolang.observe.drivers.driver import DriverWatch
from isolang.observe.drivers.library import Library
from isolang.observe.drivers.rows import key_of
from isolang.observe.drivers.through_asyncpg import Asyncpg
from isolang.observe.drivers.through_psycopg import Psycopg

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from sqlalchemy import Connection, Engine
    from sqlalchemy.orm import Mapper, registry

    from isolang.run.record.recorder import Recorder

_ASSIGNED: Final = "isolang_assigned"  # stores the line of an object's last assignment
_LIBRARIES: Final[dict[str, type[Library]]] = {"psycopg": Psycopg, "asyncpg": Asyncpg}
# The parameters common to both drivers, with their names in libpq.
_LIBPQ_NAMES: Final = {"host": "host", "port": "port", "user": "user", "password": "password",
                  "database": "dbname", "dbname": "dbname"}  # fmt: skip


class SqlAlchemyWatch(DriverWatch):
    """A context manager that watches the database of an engine."""

    def __init__(
        self,
        engine: Engine,
        mapped: registry,
        recorder: Recorder,
        *,
        others: Sequence[DriverWatch] = (),
    ) -> None:
        """Choose a database; see :meth:`isolang.testing.isolation.Isolation.watch`.

        Raises:
            IsolangError: the engine is not for PostgreSQL, or its driver is neither psycopg nor
                asyncpg.
        """
        dialect = engine.dialect
        if dialect.name != "postgresql" or dialect.driver not in _LIBRARIES:
            raise IsolangError(
                f"watch: unsupported engine (got {dialect.name}+{dialect.driver}, expected "
                "postgresql+psycopg or postgresql+asyncpg)"
            )
        library = _LIBRARIES[dialect.driver]()
        super().__init__("", recorder, library, others=others, **parameters_of(engine))
        self._mapped = mapped
        self._listeners: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Self:
        """Start watching.

        Raises:
            IsolangError: the database cannot be reached.
        """
        from sqlalchemy import event

        super().__enter__()
        self._mapped.configure()
        for mapper in self._mapped.mappers:
            self._listeners += [
                (mapper, "after_insert", self._name_assignment_line),
                (mapper, "after_update", self._name_assignment_line),
                *(
                    (one.class_attribute, "set", _store_assignment_line)
                    for one in mapper.column_attrs
                ),
            ]
        for listener in self._listeners:
            event.listen(*listener)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching; transactions that are still open are not recorded."""
        from sqlalchemy import event

        for listener in self._listeners:
            event.remove(*listener)
        self._listeners = []
        super().__exit__()

    def _name_assignment_line(
        self, mapper: Mapper[Any], connection: Connection, target: Any
    ) -> None:
        """Name the line of the assignment for a write sent by a flush."""
        from sqlalchemy import inspect

        where = inspect(target).info.pop(_ASSIGNED, "")
        one = self.transactions.open(connection.connection.driver_connection)
        if one is not None and where:
            table: Any = mapper.base_mapper.local_table
            values = mapper.primary_key_from_instance(target)
            one.set_write_caller(key_of(table.fullname, values), where)


def _store_assignment_line(target: Any, value: Any, old: Any, initiator: Any) -> None:
    """Store the line assigning an attribute, because the write is sent by a later flush."""
    from sqlalchemy import inspect

    inspect(target).info[_ASSIGNED] = caller()


class _Connecting(Exception):  # noqa: N818 - it ends an attempt to connect
    """Raised as soon as the parameters of a connection are known."""


def parameters_of(engine: Engine) -> dict[str, Any]:
    """Return the parameters for connecting psycopg to an engine's database."""
    from sqlalchemy import event

    _, found = engine.dialect.create_connect_args(engine.url)

    def ask(dialect: Any, record: Any, positional: Any, parameters: dict[str, Any]) -> None:
        found.update(parameters)
        raise _Connecting

    # The engine may have further parameters that only show when it attempts to connect.
    event.listen(engine, "do_connect", ask, insert=True)
    pool = engine.pool.recreate()
    try:
        with suppress(_Connecting):
            pool.connect()
    finally:
        event.remove(engine, "do_connect", ask)
        pool.dispose()
    if engine.dialect.driver == "psycopg":
        return {
            name: value for name, value in found.items() if name not in ("autocommit", "context")
        }
    return {_LIBPQ_NAMES[name]: value for name, value in found.items() if name in _LIBPQ_NAMES}
