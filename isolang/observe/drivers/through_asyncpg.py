"""Connects a watch to asyncpg: its connections, pools, transactions and statements.

asyncpg begins and ends transactions with statements, and the watch sees these statements like those
of the application. Statements with values are prepared statements, so the watch passes the same
values to its own queries.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID
from weakref import WeakSet

from msgspec import Struct

from isolang.errors import IsolangError
from isolang.observe.drivers.hooks import Hooks, Steps
from isolang.observe.drivers.library import State
from isolang.observe.drivers.statements import with_returning

if TYPE_CHECKING:
    from isolang.observe.drivers.driver import DriverWatch

_ONE: Final = ("fetchrow", "fetchval")
_CALLS: Final = ("execute", "fetch", *_ONE)
_COPY: Final = ("copy_from_query", "copy_from_table", "copy_records_to_table", "copy_to_table")
_PASSED: Final = {"fetchmany": "executemany", "cursor": "cursors"}
_PARAMETER: Final = re.compile(
    r"'[^']*+(?:''[^']*+)*+'|\"[^\"]*+(?:\"\"[^\"]*+)*+\"|\$(\d+)", re.ASCII
)
# The types whose values have a text form that PostgreSQL reads as the same value.
_SPELT: Final = (int, str, UUID, Decimal, date)


class Asyncpg:
    """Implements :class:`isolang.observe.drivers.library.Library` for asyncpg."""

    name = "watch_asyncpg"

    def __init__(self) -> None:
        self.failed: WeakSet[Any] = WeakSet()  # the connections whose transaction has failed

    def hook(self, hooks: Hooks, watch: DriverWatch) -> None:
        """Replace the public methods of asyncpg with methods that report to the watch.

        Raises:
            IsolangError: asyncpg is not installed.
        """
        try:
            from asyncpg import Connection
            from asyncpg.prepared_stmt import PreparedStatement
        except ImportError:
            raise IsolangError(
                "watch_asyncpg: asyncpg is not installed; hint: pip install asyncpg"
            ) from None

        self._watch = watch
        self.fetch, self.fetch_prepared = Connection.fetch, PreparedStatement.fetch
        for name in _CALLS:
            hooks.replace_method(Connection, name, partial(self._call, name), awaits=True)
        for name in _CALLS[1:]:
            hooks.replace_method(
                PreparedStatement, name, partial(self._prepared, name), awaits=True
            )
        hooks.replace_method(Connection, "executemany", self._many, awaits=True)
        hooks.replace_method(PreparedStatement, "executemany", self._many_prepared, awaits=True)
        for owner in (Connection, PreparedStatement):
            for name, kind in _PASSED.items():
                if hasattr(owner, name):
                    hooks.call_before(owner, name, partial(self._pass, kind))
        for name in _COPY:
            hooks.call_before(Connection, name, partial(self._copy, name))
        hooks.replace_method(Connection, "close", self._close, awaits=True)
        hooks.call_before(Connection, "terminate", watch.transactions.closed)

    def database_of(self, connection: Any) -> tuple[Any, ...]:
        """Return the host, port and database of a connection, in libpq's form.

        Return an empty tuple if the connection is closed.
        """
        if connection.is_closed():
            return ()
        # asyncpg has no public attributes for these values.
        address, database = connection._addr, connection._params.database
        if isinstance(address, str):  # a path such as /run/postgresql/.s.PGSQL.5432
            folder, _, name = address.rpartition("/")
            address = (folder, int(name.rpartition(".")[2]))
        return (*address[:2], database)

    def state(self, connection: Any) -> State:
        """Return the transaction state of a connection."""
        if connection.is_closed():
            return "unknown"
        if not connection.is_in_transaction():
            return "idle"
        return "failed" if connection in self.failed else "open"

    def begins_transaction(self, connection: Any) -> bool:
        """Return false, because with asyncpg only ``BEGIN`` begins a transaction."""
        return False

    def is_pipelined(self, connection: Any) -> bool:
        """Return false, because asyncpg waits for each result before sending another statement."""
        return False

    def was_rolled_back(self, result: Any) -> bool:
        """Return whether COMMIT returned ``ROLLBACK``, as it does for a failed transaction."""
        return bool(result == "ROLLBACK")

    def _call(
        self, name: str, original: Any, connection: Any, query: str, *values: Any, **options: Any
    ) -> Steps:
        call = partial(original, connection, query, *values, **options)
        if query == connection.get_reset_query():
            return (yield call)  # the pool resets the connection before reusing it
        sent = _AsyncpgCall(self, name, connection, query, values, options, call)
        return (yield from self._watch.statement(sent))

    def _prepared(
        self, name: str, original: Any, statement: Any, *values: Any, **options: Any
    ) -> Steps:
        call = partial(original, statement, *values, **options)
        query, connection = statement.get_query(), statement._connection
        sent = _AsyncpgCall(self, name, connection, query, values, options, call, statement)
        return (yield from self._watch.statement(sent))

    def _many(
        self, original: Any, connection: Any, command: str, args: Any, **options: Any
    ) -> Steps:
        def send(values: Any) -> Callable[[], Any]:
            return partial(original, connection, command, values, **options)

        return (yield from self._each(connection, command, args, send))

    def _many_prepared(self, original: Any, statement: Any, args: Any, **options: Any) -> Steps:
        def send(values: Any) -> Callable[[], Any]:
            return partial(original, statement, values, **options)

        query = statement.get_query()
        return (yield from self._each(statement._connection, query, args, send))

    def _each(
        self, connection: Any, query: str, args: Any, send: Callable[[Any], Callable[[], Any]]
    ) -> Steps:
        """Send a statement with several rows of values, and record each execution.

        Args:
            connection: the connection.
            query: the statement.
            args: the rows of values.
            send: a function that returns the application's call with some rows of values.
        """
        each = None if hasattr(args, "__aiter__") else [tuple(values) for values in args]
        if not each:
            self._watch.note_unrecorded(connection, "executemany", query)
            return (yield send(args if each is None else each))
        sent = [
            _AsyncpgCall(self, "execute", connection, query, values, {}, send([values]))
            for values in each
        ]
        hidden = partial(self._hidden_many, sent)
        return (yield from self._watch.record_many(sent, send(each), hidden))

    def _hidden_many(self, sent: Sequence[_AsyncpgCall], selected: str) -> Steps:
        """Run each statement with an added RETURNING clause, and return its rows.

        These rows are seen only by the watch.
        """
        first = sent[0]
        query = with_returning(first.text, selected)
        statement = yield partial(first._done, partial(first.connection.prepare, query))
        found = []
        for one in sent:
            call = partial(self.fetch_prepared, statement, *one.values)
            found.append((yield partial(first._done, call)))
        return found

    def _pass(self, kind: str, source: Any, *arguments: Any, **_: Any) -> None:
        if hasattr(source, "get_query"):
            self._watch.note_unrecorded(source._connection, kind, source.get_query())
        else:
            self._watch.note_unrecorded(source, kind, str(arguments[0]) if arguments else "")

    def _copy(self, name: str, connection: Any, what: str, *_: Any, **__: Any) -> None:
        into = name in ("copy_records_to_table", "copy_to_table")
        query = what if name == "copy_from_query" else what.join(["COPY ", " FROM STDIN"])
        self._watch.note_unrecorded(
            connection, "copy", query if into else f"COPY ({what}) TO STDOUT"
        )

    def _close(self, original: Any, connection: Any, **options: Any) -> Steps:
        send = partial(original, connection, **options)
        return (yield from self._watch.transactions.send_end(connection, commit=False, send=send))


class _AsyncpgCall(Struct):
    """Implements :class:`isolang.observe.drivers.library.Sent` for an asyncpg call."""

    library: Asyncpg
    name: str
    connection: Any
    text: str
    values: Sequence[Any]
    options: dict[str, Any]
    call: Callable[[], Awaitable[Any]]
    prepared: Any = None

    @property
    def wants_first_only(self) -> bool:
        """Return whether the application receives only the first row of the result."""
        return self.name in _ONE

    @property
    def send(self) -> Callable[[], Awaitable[Any]]:
        """A function that sends the statement through the application's original asyncpg call."""
        return partial(self._done, self.call)

    async def _done(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Await a call and return its result, and remember whether the transaction has failed."""
        from asyncpg import PostgresError

        try:
            result = await call()
        except PostgresError:
            if not self.connection.is_closed() and self.connection.is_in_transaction():
                self.library.failed.add(self.connection)
            raise
        if result in ("BEGIN", "ROLLBACK"):  # ROLLBACK TO a savepoint has the same result
            self.library.failed.discard(self.connection)
        return result

    def literal(self) -> str:
        """Return the statement with its numbered parameters; empty if a parameter has no value."""
        numbers = {int(n) for n in _PARAMETER.findall(self.text) if n}
        if not numbers <= set(range(1, len(self.values) + 1)):
            return ""
        return self.text

    def ask(self, query: str, *values: object) -> Steps:
        """Send a query with the same parameter numbers as in the statement."""
        numbers = list(dict.fromkeys(n for n in _PARAMETER.findall(query) if n))
        text = _PARAMETER.sub(
            lambda found: f"${numbers.index(found[1]) + 1}" if found[1] else found[0], query
        )
        if values:
            text = text.replace("%s", "$1")
        arguments = values or [self.values[int(n) - 1] for n in numbers]
        call = partial(self.library.fetch, self.connection, text, *arguments)
        found = yield partial(self._done, call)
        if query == "ROLLBACK":
            self.library.failed.discard(self.connection)
        return found

    def count(self, result: Any) -> int | None:
        """Return the number of rows received by the application.

        Return ``None`` if ``fetchval`` returned ``None``, which means NULL or no row.
        """
        if self.name == "fetchval" and result is None:
            return None
        if self.name == "execute":
            return int(result.rpartition(" ")[2])
        return len(result) if self.name == "fetch" else int(result is not None)

    def output_rows(self, result: Any, width: int) -> tuple[list[str], list[list[Any]] | None]:
        """Return the rows received by the application, with ``None`` for unfetched columns."""
        if self.name == "execute":
            return [], None
        if self.name == "fetchval":
            place = self.options.get("column", 0)
            if result is None or not isinstance(place, int) or not -width <= place < width:
                return [], None
            row: list[Any] = [None] * width
            row[place] = result
            return [], _as_text([row])
        found = result if self.name == "fetch" else [result] * (result is not None)
        return list(found[0].keys()) if found else [], _as_text(found)

    def hidden(self, selected: str) -> Steps:
        """Send the write with a RETURNING clause whose rows are received only by the watch."""
        found, status = yield from self._fetch(with_returning(self.text, selected))
        if self.prepared is not None:
            self.prepared._last_status = status.encode()
        return {"execute": status, "fetch": []}.get(self.name), found

    def returning(self) -> Steps:
        """Send the write, and fetch all returned rows even if the application gets only one."""
        found, status = yield from self._fetch(self.text)
        first = found[0] if found else None
        if self.prepared is not None:
            suspended = first is not None and self.wants_first_only
            self.prepared._last_status = None if suspended else status.encode()
        if self.name == "fetchval" and first is not None:
            first = first[self.options.get("column", 0)]
        result = {"execute": status, "fetch": found}.get(self.name, first)
        return result, _as_text(found)

    def _fetch(self, query: str) -> Steps:
        """Return a query's rows, and the status text that ``execute`` would return for it."""
        options = {k: self.options[k] for k in ("timeout", "record_class") if k in self.options}
        prepare = partial(self.connection.prepare, query, **options)
        statement = yield partial(self._done, prepare)
        call = partial(self.library.fetch_prepared, statement, *self.values)
        found = yield partial(self._done, call)
        return found, statement.get_statusmsg()


def _as_text(found: Sequence[Any]) -> list[list[Any]]:
    """Return rows as text, with ``None`` for values whose text PostgreSQL may not accept."""
    return [[one if isinstance(one, _SPELT) else None for one in row] for row in found]
