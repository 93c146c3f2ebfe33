"""The way in for SQLAlchemy: watches the database of an engine, and names the lines of assignments.

An ORM sends a write later than the application assigns the value, so the statement comes from the
line of the flush. This watch therefore remembers the line of each assignment, and notes that line
for the statement that writes the object.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from isolang.errors import IsolangError
from isolang.observe.ways.callers import caller
from isolang.observe.ways.inside import PROXIES, InsideProxy
from isolang.observe.ways.libraries import LIBRARIES, MARIADB_LIBRARIES
from isolang.observe.ways.library import Library, LibraryWatch

if TYPE_CHECKING:
    from typing import Self

    from sqlalchemy import Connection, Engine
    from sqlalchemy.orm import Mapper, registry

_ASSIGNED: Final = "isolang_assigned"  # stores the line of an object's last assignment
# The parameters common to all drivers, with their names in libpq.
_LIBPQ_NAMES: Final = {"host": "host", "port": "port", "user": "user", "password": "password",
                  "database": "dbname", "dbname": "dbname"}  # fmt: skip


class SqlAlchemyWatch(LibraryWatch):
    """A context manager that watches the database of an engine."""

    def __init__(
        self,
        proxy: InsideProxy,
        library: Library,
        mapped: registry,
        *,
        label: Callable[[], str] = str,
        client: Callable[[], int] = int,
    ) -> None:
        """Store the settings; see :meth:`isolang.testing.isolation.Isolation.watch`."""
        super().__init__(proxy, library, label=label, client=client)
        self._mapped = mapped
        self._listeners: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Self:
        """Start watching."""
        from sqlalchemy import event

        super().__enter__()
        self._mapped.configure()
        for mapper in self._mapped.mappers:
            self._listeners += [
                (mapper, "after_insert", self._note_assignment),
                (mapper, "after_update", self._note_assignment),
                *(
                    (attribute.class_attribute, "set", _store_assignment_line)
                    for attribute in mapper.column_attrs
                ),
            ]
        for listener in self._listeners:
            event.listen(*listener)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        from sqlalchemy import event

        for listener in self._listeners:
            event.remove(*listener)
        self._listeners = []
        super().__exit__()

    def _note_assignment(self, mapper: Mapper[Any], connection: Connection, target: Any) -> None:
        """Name the line of the last assignment for a write that a flush has sent."""
        from sqlalchemy import inspect

        where = inspect(target).info.pop(_ASSIGNED, "")
        driver = connection.connection.driver_connection
        if not where or PROXIES.get(driver) is not self.proxy:
            return
        table: Any = mapper.base_mapper.local_table
        values = {
            column.name: _sent(column, value, connection)
            for column, value in zip(
                mapper.primary_key, mapper.primary_key_from_instance(target), strict=True
            )
        }
        self.proxy.name_write(self.library.backend(driver), table.fullname, values, where)


def _sent(column: Any, value: Any, connection: Connection) -> Any:
    """Return the value that SQLAlchemy sends for one of an object, such as the name of an Enum."""
    dialect = connection.dialect
    process = column.type.dialect_impl(dialect).bind_processor(dialect)
    return value if process is None else process(value)


def _store_assignment_line(target: Any, value: Any, old: Any, initiator: Any) -> None:
    """Store the line assigning an attribute, because the write is sent by a later flush."""
    from sqlalchemy import inspect

    inspect(target).info[_ASSIGNED] = caller()


def renew_connections(watch: LibraryWatch) -> Callable[[], None]:
    """Make the pools of all engines replace connections that they opened before a watch.

    Return a function that ends this.
    """
    from sqlalchemy import event
    from sqlalchemy.exc import DisconnectionError
    from sqlalchemy.pool import Pool

    def check(connection: Any, record: Any, taken: Any) -> None:
        driver = getattr(connection, "driver_connection", connection)
        if watch.is_missed(driver):
            raise DisconnectionError("the connection was opened before the watch")

    event.listen(Pool, "checkout", check)
    return lambda: event.remove(Pool, "checkout", check)


def library_of(engine: Engine) -> Library:
    """Return the library of an engine.

    Raises:
        IsolangError: the engine is for another database, or its driver is not supported.
    """
    dialect = engine.dialect
    named = {f"postgresql+{name}": made for name, made in LIBRARIES.items()}
    named |= {f"mysql+{name}": made for name, made in MARIADB_LIBRARIES.items()}
    name = f"{dialect.name.replace('mariadb', 'mysql')}+{dialect.driver}"
    if name not in named:
        raise IsolangError(
            f"watch: unsupported engine (got {dialect.name}+{dialect.driver}, expected one of "
            f"{', '.join(named)}); hint: isocheck observe sees applications with any driver"
        )
    return named[name]()


class _Connecting(Exception):  # noqa: N818 - it ends an attempt to connect
    """Raised as soon as the parameters of a connection are known."""


def parameters_of(engine: Engine) -> dict[str, Any]:
    """Return the parameters of an engine's database, as psycopg or a driver of MariaDB has them."""
    from sqlalchemy import event

    _, parameters_of_url = engine.dialect.create_connect_args(engine.url)

    def ask(dialect: Any, record: Any, positional: Any, parameters: dict[str, Any]) -> None:
        parameters_of_url.update(parameters)
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
    if engine.dialect.driver in MARIADB_LIBRARIES:
        return dict(parameters_of_url)
    if engine.dialect.driver == "asyncpg":
        return {
            _LIBPQ_NAMES[name]: value
            for name, value in parameters_of_url.items()
            if name in _LIBPQ_NAMES
        }
    return {
        _LIBPQ_NAMES.get(name, name): value
        for name, value in parameters_of_url.items()
        if name not in ("autocommit", "context")
    }
