"""Records the transactions of an application that uses SQLAlchemy on PostgreSQL, unchanged.

PostgreSQL's system column ``xmin`` contains the number of the transaction that wrote a version of a
row. A watched engine selects ``xmin`` with every mapped object, which shows the version that a read
returned. After each flush, it queries the ``xmin`` of the written rows. This number is the value of
the row in the history. Operations that cannot be seen are left out of the history and counted. They
are never guessed, because a history that lacks operations never accuses a correct database.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from isolang.errors import IsolangError
from isolang.history.values import Keyword
from isolang.observe.drivers.callers import caller
from isolang.observe.drivers.changes import SeenRow, value_text
from isolang.observe.drivers.observed import ObservedTransaction, WrittenVersions, key_of
from isolang.observe.drivers.statements import lookup
from isolang.observe.lexer import raw
from isolang.observe.unseen import (
    BULK,
    CONDITIONS,
    FOREIGN,
    NOT_FOUND,
    TWO_ROWS,
    Unseen,
)
from isolang.run.outcome import RolledBack

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from sqlalchemy import Connection, Engine
    from sqlalchemy.orm import InstanceState, Mapper, Session, registry

    from isolang.run.record.recorder import Recorder

_XMIN: Final = "isolang_xmin"  # the attribute of mapped objects that contains xmin
_ASSIGNED: Final = "isolang_assigned"  # where an object stores the line of its last assignment
_GONE: Final = Keyword("deleted")
_OBJECTS: Final = "isolang_objects"  # an execution option: whether a SELECT reads whole objects
_OWN: Final = "isolang_own"  # an execution option: whether a statement is the watch's own
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
_SAVEPOINT: Final = re.compile(
    r"\s*(?:savepoint|(rollback)\s+(?:(?:work|transaction)\s+)?to(?:\s+savepoint)?)\s+([^\s;]+)",
    re.IGNORECASE,
)


class SqlAlchemyWatch:
    """A context manager that records the transactions of a SQLAlchemy engine.

    Attributes:
        unseen: the number of things that were not recorded, by kind, such as rows of writers that
            are not watched, statements that read columns instead of objects, and bulk statements.
    """

    def __init__(self, engine: Engine, mapped: registry, recorder: Recorder) -> None:
        """Store the engine; see :meth:`isolang.testing.isolation.Isolation.watch`."""
        self.engine = engine
        self.recorder = recorder
        self.unseen = Unseen(caller)
        self._mapped = mapped
        self._versions = WrittenVersions()
        self._open: dict[Connection, _Open] = {}
        self._sessions = count()
        self._listeners: list[tuple[Any, str, Any]] = []
        self._unique: dict[tuple[str, ...], list[frozenset[str]]] = {}

    def __enter__(self) -> Self:
        """Begin to record.

        Raises:
            IsolangError: the engine is not for PostgreSQL with the driver psycopg.
        """
        from sqlalchemy import event
        from sqlalchemy.orm import Session

        if (self.engine.dialect.name, self.engine.dialect.driver) != ("postgresql", "psycopg"):
            got = f"{self.engine.dialect.name}+{self.engine.dialect.driver}"
            raise IsolangError(
                f"watch: not such an engine (got {got}, expected postgresql+psycopg)"
            )
        # An asynchronous engine can be queried only in the event loop of its sessions.
        self._versions.before = None if self.engine.dialect.is_async else self._oldest()
        self._listeners = [
            (Session, "after_begin", self._begin),
            (Session, "after_commit", self._committed),
            (Session, "do_orm_execute", self._execute),
            (self.engine, "commit", self._commit),
            (self.engine, "rollback", self._roll_back),
            (self.engine, "before_cursor_execute", self._statement),
            (self.engine, "after_cursor_execute", self._executed),
            (self.engine, "handle_error", self._error),
        ]
        self._mapped.configure()
        for mapper in self._mapped.mappers:
            _map_xmin(mapper)
            self._unique |= {_parts(table): _unique(table) for table in mapper.tables}
            attributes = [one.class_attribute for one in mapper.column_attrs if one.key != _XMIN]
            self._listeners += [(one, "set", _assigned) for one in attributes]
            self._listeners += [
                (mapper, "load", self._load),
                (mapper, "refresh", self._refresh),
                (mapper, "after_insert", self._write),
                (mapper, "before_update", self._update),
                (mapper, "after_update", self._updated),
                (mapper, "after_delete", self._delete),
            ]
        self.engine.clear_compiled_cache()  # cached statements do not select xmin
        for listener in self._listeners:
            event.listen(*listener)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop recording; transactions that are still open are not recorded."""
        from sqlalchemy import event

        for listener in self._listeners:
            event.remove(*listener)
        self._listeners = []

    @property
    def all_unseen(self) -> Unseen:
        """The value of :attr:`unseen`, under the name that all kinds of watches have."""
        return self.unseen

    def close(self, path: Path, into: Path | None) -> Path:
        """Return the history unchanged, because this watch records no conditions of statements."""
        return path

    # --- transactions ---

    def _oldest(self) -> int:
        """Return the number of the oldest running transaction, in the form of ``xmin``.

        The query needs a separate connection for two reasons. All connections of the pool may be in
        use. And in a transaction of the application, the query would be the first statement, after
        which the isolation level can no longer be set.
        """
        pool = self.engine.pool.recreate()
        try:
            connection = pool.connect()
            cursor = connection.cursor()
            cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")
            (found,) = cursor.fetchone() or ("",)
            cursor.close()
            connection.close()
        finally:
            pool.dispose()
        return int(found) % 2**32

    def _begin(self, session: Session, transaction: Any, connection: Connection) -> None:
        if connection.engine.pool is not self.engine.pool or connection in self._open:
            return
        if self._versions.before is None:
            # SOUND BECAUSE: no watched transaction reads or writes before the first result is
            # stored. If a version is older than this result, it was therefore written before all
            # watched transactions.
            oldest = self._oldest()
            if self._versions.before is None:
                self._versions.before = oldest
        if connection.connection.driver_connection.autocommit:  # type: ignore[union-attr]
            raise IsolangError(
                "watch: the connection is in autocommit mode; it has no transactions"
            )
        number = connection.info.setdefault(_XMIN, next(self._sessions))
        self._open[connection] = _Open(session, (id(self), number), self.recorder)

    def _commit(self, connection: Connection) -> None:
        one = self._open.get(connection)
        if one is None:
            return
        # At the COMMIT of a failed transaction, PostgreSQL rolls back and reports no error.
        info = connection.connection.driver_connection.info  # type: ignore[union-attr]
        one.failed = info.transaction_status.name == "INERROR"
        one.announce()

    def _committed(self, session: Session) -> None:
        for connection, one in list(self._open.items()):
            if one.session is session and one.committing:
                del self._open[connection]
                one.end(RolledBack() if one.failed else None)

    def _roll_back(self, connection: Connection) -> None:
        one = self._open.pop(connection, None)
        if one is not None:
            one.end(RolledBack())

    def _error(self, context: Any) -> None:
        one = self._open.get(context.connection)
        if one is not None and one.committing:
            del self._open[context.connection]
            one.end(context.original_exception)

    def _statement(self, connection: Connection, cursor: Any, statement: str, *_: object) -> None:
        # SQLAlchemy's events for savepoints do not contain the names of the savepoints.
        found = _SAVEPOINT.match(statement)
        if found is not None and connection in self._open:
            back, name = found.groups()
            one = self._open[connection]
            (one.roll_back_to if back else one.savepoint)(name)

    # --- operations ---

    def _execute(self, state: Any) -> None:
        if state.is_select:
            described = getattr(state.statement, "column_descriptions", [])
            loads = state.is_column_load or state.is_relationship_load
            objects = loads or all(one["expr"] is one["entity"] for one in described)
            state.update_execution_options(**{_OBJECTS: state.is_orm_statement and objects})
        elif state.is_insert or state.is_update or state.is_delete:
            self.unseen.note(BULK)

    def _executed(
        self,
        connection: Connection,
        cursor: Any,
        statement: str,
        parameters: Any,
        context: Any,
        *_: Any,
    ) -> None:
        """Count a SELECT that may have missed rows; :meth:`_load` records the rows it found."""
        options = getattr(context, "execution_options", {})
        if connection not in self._open or options.get(_OWN) or not _asks(statement):
            return
        if not options.get(_OBJECTS):
            self.unseen.note("columns", statement)
            return
        expected, skips = lookup(_PARAMETER.sub(r"'\1'", statement), self._keys)
        if skips:
            return  # the result does not show which rows were skipped
        if expected is None:
            self.unseen.note(CONDITIONS, statement)
        elif 0 <= cursor.rowcount < expected:
            self.unseen.note(NOT_FOUND, statement)

    def _keys(self, table: str) -> list[frozenset[str]]:
        """Return the columns of each unique key of a table, which is named as in the statement."""
        return self._unique.get(tuple(map(raw, table.split("."))), [])

    def _load(self, target: Any, context: Any) -> None:
        self._read(target, context.session)

    def _refresh(self, target: Any, context: Any, attributes: Any) -> None:
        if attributes is None or _XMIN in attributes:
            self._read(target, context.session)

    def _read(self, target: Any, session: Session) -> None:
        one = next((one for one in list(self._open.values()) if one.session is session), None)
        found = target.__dict__.get(_XMIN)
        if one is None or found is None:
            self.unseen.note("versions")
            return
        key, version = _key(target), int(found)
        value = self._versions.value(key, version)
        if value:
            if not one.read(key, value[0], _seen(target)):
                self.unseen.note(TWO_ROWS, key)
        else:
            self.unseen.note(FOREIGN, key)

    def _update(self, mapper: Mapper[Any], connection: Connection, target: Any) -> None:
        from sqlalchemy import inspect
        from sqlalchemy.orm import object_session

        # After the update, the values that the database computed are no longer loaded.
        one, session = self._open.get(connection), object_session(target)
        if one and session and session.is_modified(target, include_collections=False):
            one.updating[inspect(target)] = _seen(target)

    def _updated(self, mapper: Mapper[Any], connection: Connection, target: Any) -> None:
        from sqlalchemy import inspect

        one = self._open.get(connection)
        seen = None if one is None else one.updating.pop(inspect(target), None)
        if seen is not None:
            self._write(mapper, connection, target, seen)

    def _write(
        self, mapper: Mapper[Any], connection: Connection, target: Any, seen: SeenRow | None = None
    ) -> None:
        from sqlalchemy import and_, inspect, select

        one = self._open.get(connection)
        if one is None:
            return
        table = mapper.base_mapper.local_table
        values = mapper.primary_key_from_instance(target)
        where = [c == value for c, value in zip(mapper.primary_key, values, strict=True)]
        # A write after a savepoint has another number than its transaction, so the row is queried.
        query = select(table.c.xmin).where(and_(*where))
        found = connection.execute(query, execution_options={_OWN: True}).scalars().all()
        if len(found) != 1:
            # A snapshot of a whole transaction also contains rows that others have deleted since.
            self.unseen.note("deleted", _key(target))
            return
        key, version = _key(target), int(found[0])
        self._versions.wrote(key, version)
        where = inspect(target).info.pop(_ASSIGNED, "")
        one.write(key, version, seen or _seen(target), where=where)

    def _delete(self, mapper: Mapper[Any], connection: Connection, target: Any) -> None:
        if connection in self._open:
            self._open[connection].write(_key(target), _GONE)


class _Open(ObservedTransaction):
    """A transaction of the application, with the ORM session that runs it."""

    def __init__(self, session: Session, number: Hashable, recorder: Recorder) -> None:
        super().__init__(number, recorder)
        self.session = session
        self.updating: dict[InstanceState[Any], SeenRow] = {}


def _assigned(target: Any, value: Any, old: Any, initiator: Any) -> None:
    """Store the line that assigns an attribute, because a later flush sends the write."""
    from sqlalchemy import inspect

    inspect(target).info[_ASSIGNED] = caller()


def _key(target: Any) -> str:
    from sqlalchemy import inspect

    mapper = inspect(target).mapper
    return key_of(mapper.base_mapper.local_table.fullname, mapper.primary_key_from_instance(target))


def _seen(target: Any) -> SeenRow:
    """Return the loaded values of an object, and the values that were assigned since.

    The function reads only attributes that are already loaded, so it sends no query.
    """
    from sqlalchemy import inspect

    state = inspect(target)
    keys = {state.mapper.get_property_by_column(column).key for column in state.mapper.primary_key}
    names = [one.key for one in state.mapper.column_attrs if one.key not in keys | {_XMIN}]
    row = {name: value_text(state.dict[name]) for name in names if name in state.dict}
    histories = {name: state.attrs[name].history for name in row}
    before = {name: one.deleted[0] for name, one in histories.items() if one.deleted}
    return SeenRow(
        row=row,
        before={name: value_text(value) for name, value in before.items()},
        named=[name for name, one in histories.items() if one.added],
    )


def _asks(statement: str) -> bool:
    """Return whether a statement reads from a table."""
    words = statement.split(None, 1)
    first = words[0].lower() if words else ""
    return first in ("select", "with") and re.search(r"\bfrom\b", statement, re.I) is not None


def _parts(table: Any) -> tuple[str, ...]:
    """Return the schema and the name of a table, or only the name if no schema is declared."""
    return (table.schema, table.name) if table.schema else (table.name,)


def _unique(table: Any) -> list[frozenset[str]]:
    """Return the columns of each unique key that the application declares for a table."""
    from sqlalchemy import Column, PrimaryKeyConstraint, UniqueConstraint

    unique = [
        one.columns
        for one in table.constraints
        if isinstance(one, PrimaryKeyConstraint | UniqueConstraint) and not one.deferrable
    ]
    unique += [
        one.columns
        for one in table.indexes
        if one.unique
        and one.dialect_options["postgresql"]["where"] is None
        and len(one.expressions) == sum(isinstance(part, Column) for part in one.expressions)
    ]
    return [frozenset(column.name for column in columns) for columns in unique if len(columns)]


def _map_xmin(mapper: Mapper[Any]) -> None:
    """Add ``xmin`` as an attribute of mapped objects; CREATE TABLE leaves out system columns."""
    from sqlalchemy import Column, FetchedValue, String

    table: Any = mapper.local_table
    if mapper.inherits is not None or _XMIN in mapper.attrs:
        return
    if "xmin" not in table.c:
        table.append_column(Column("xmin", String, system=True, server_default=FetchedValue()))
    mapper.add_property(_XMIN, table.c.xmin)
