"""The way in for SQLAlchemy: watches the database of an engine, and names the lines of assignments.

An ORM sends a write later than the application assigns the value, so the statement comes from the
line of the flush. This watch therefore remembers the line of each assignment, and notes that line
for the statement that writes the object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from isolang.observe.ways.asyncpg import Asyncpg
from isolang.observe.ways.inside import InsideProxy
from isolang.observe.ways.library import Library, Watch
from isolang.observe.ways.psycopg2 import Psycopg2
from isolang.observe.ways.psycopg3 import Psycopg

if TYPE_CHECKING:
    from typing import Self

    from sqlalchemy.orm import registry

_ASSIGNED: Final = "isolang_assigned"  # stores the line of an object's last assignment
_LIBRARIES: Final[dict[str, type[Library]]] = {
    "psycopg": Psycopg, "asyncpg": Asyncpg, "psycopg2": Psycopg2,
}  # fmt: skip
# The parameters common to all drivers, with their names in libpq.
_LIBPQ_NAMES: Final = {"host": "host", "port": "port", "user": "user", "password": "password",
                  "database": "dbname", "dbname": "dbname"}  # fmt: skip


class SqlAlchemyWatch(Watch):
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
                (mapper, "before_insert", self._note_assignment),
                (mapper, "before_update", self._note_assignment),
                *(
                    (one.class_attribute, "set", _store_assignment_line)
                    for one in mapper.column_attrs
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
