"""Connects a watch to psycopg 3, for synchronous and asynchronous connections."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from isolang.observe.drivers.hooks import Hooks, Steps
from isolang.observe.drivers.library import State
from isolang.observe.drivers.statements import with_returning

if TYPE_CHECKING:
    from isolang.observe.drivers.driver import DriverWatch

_STATES: Final[Mapping[str, State]] = {"IDLE": "idle", "INTRANS": "open", "INERROR": "failed"}
_LATER: Final = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


class Psycopg:
    """Implements :class:`isolang.observe.drivers.library.Library` for psycopg 3."""

    name = "watch_psycopg"

    def hook(self, hooks: Hooks, watch: DriverWatch) -> None:
        """Replace the public methods of psycopg with methods that report to the watch."""
        import psycopg

        def around(owner: str, name: str, steps: Any) -> None:
            hooks.replace_method(getattr(psycopg, owner), name, steps)
            later = getattr(psycopg, f"Async{owner}")
            hooks.replace_method(later, _LATER.get(name, name), steps, awaits=True)

        plain = {one: one.execute for one in (psycopg.Cursor, psycopg.AsyncCursor)}
        around("Cursor", "execute", partial(self._execute, watch))
        around("Cursor", "executemany", partial(self._execute_many, watch, plain))
        for owner, name, kind in (
            ("Cursor", "copy", "copy"),
            ("Cursor", "stream", "cursors"),
            ("ServerCursor", "execute", "cursors"),
        ):
            for one in (owner, f"Async{owner}"):
                hooks.call_before(getattr(psycopg, one), name, partial(self._pass, watch, kind))
        around("Connection", "commit", partial(self._finish, watch, True))
        around("Connection", "rollback", partial(self._finish, watch, False))
        around("Connection", "close", partial(self._finish, watch, False))
        around("Transaction", "__enter__", partial(self._enter, watch))
        around("Transaction", "__exit__", partial(self._exit, watch))

    def database_of(self, connection: Any) -> tuple[Any, ...]:
        """Return the host, port and database of a connection; an empty tuple if it is closed."""
        if connection.closed:
            return ()
        info = connection.info
        return (info.host, info.port, info.dbname)

    def state(self, connection: Any) -> State:
        """Return the transaction state of a connection."""
        return _STATES.get(connection.info.transaction_status.name, "unknown")

    def begins_transaction(self, connection: Any) -> bool:
        """Return whether a statement begins a transaction: it does unless autocommit is on."""
        return not connection.autocommit

    def is_pipelined(self, connection: Any) -> bool:
        """Return whether the connection is in pipeline mode."""
        return bool(connection.pgconn.pipeline_status)

    def was_rolled_back(self, result: Any) -> bool:
        """Return false, because psycopg's results do not show whether the server rolled back.

        A failed transaction is recognised by its state before COMMIT.
        """
        return False

    def _execute(
        self,
        watch: DriverWatch,
        original: Any,
        cursor: Any,
        query: Any,
        params: Any = None,
        **options: Any,
    ) -> Steps:
        arguments = () if params is None else (params,)
        return (
            yield from watch.statement(_PsycopgCall(original, cursor, query, arguments, options))
        )

    def _execute_many(  # noqa: PLR0917 - the arguments of executemany follow those of a hook
        self,
        watch: DriverWatch,
        plain: Mapping[Any, Any],
        original: Any,
        cursor: Any,
        query: Any,
        params_seq: Any,
        **options: Any,
    ) -> Steps:
        import psycopg

        each = list(params_seq)
        send = partial(original, cursor, query, each, **options)
        kind = psycopg.AsyncCursor if isinstance(cursor, psycopg.AsyncCursor) else psycopg.Cursor
        sent = [_PsycopgCall(plain[kind], cursor, query, (params,), {}) for params in each]
        if not each or options or not isinstance(query, str):
            watch.note_unrecorded(
                cursor.connection, "executemany", _text_of(query, cursor.connection)
            )
            return (yield send)
        return (
            yield from watch.record_many(
                sent, send, partial(_hidden_many, original, cursor, query, each)
            )
        )

    def _pass(
        self, watch: DriverWatch, kind: str, cursor: Any, query: Any = "", *_: Any, **__: Any
    ) -> None:
        watch.note_unrecorded(cursor.connection, kind, _text_of(query, cursor.connection))

    def _finish(self, watch: DriverWatch, commit: bool, original: Any, connection: Any) -> Steps:
        send = partial(original, connection)
        return (yield from watch.transactions.send_end(connection, commit=commit, send=send))

    def _enter(self, watch: DriverWatch, original: Any, block: Any) -> Steps:
        send = partial(original, block)
        result, block.isolang_outer = yield from watch.transactions.begin_block(
            block.connection, lambda: block.savepoint_name, send
        )
        return result

    def _exit(self, watch: DriverWatch, original: Any, block: Any, *raised: Any) -> Steps:
        send = partial(original, block, *raised)
        commit = not any(raised) and not block.force_rollback
        if getattr(block, "isolang_outer", False):
            return (
                yield from watch.transactions.send_end(block.connection, commit=commit, send=send)
            )
        return (
            yield from watch.transactions.end_block(
                block.connection, block.savepoint_name, commit=commit, send=send
            )
        )


def _hidden_many(original: Any, cursor: Any, query: str, each: list[Any], selected: str) -> Steps:
    """Run ``executemany`` with a RETURNING clause whose rows are received only by the watch.

    Args:
        original: the original ``executemany`` method.
        cursor: the application's cursor.
        query: the statement.
        each: the values of each execution.
        selected: the columns of the RETURNING clause.

    Returns:
        The returned rows of each execution.
    """
    from psycopg.pq import ExecStatus

    query = with_returning(query, selected.replace("%", "%%"))
    yield partial(original, cursor, query, each, returning=True)
    found = [_texts(cursor)]
    while cursor.nextset():
        found.append(_texts(cursor))
    # The application must find a cursor without rows, and the total number of written rows.
    cursor._results = []
    cursor.pgresult = cursor.connection.pgconn.make_empty_result(ExecStatus.COMMAND_OK)
    cursor._rowcount = sum(map(len, found))
    return found


def _texts(cursor: Any) -> list[list[str | None]]:
    """Return the rows of a cursor's current result, with values as text."""
    coding, reply = cursor.connection.info.encoding, cursor.pgresult
    cells = [
        [reply.get_value(row, column) for column in range(reply.nfields)]
        for row in range(reply.ntuples)
    ]
    return [[None if one is None else bytes(one).decode(coding) for one in row] for row in cells]


class _PsycopgCall:
    """Implements :class:`isolang.observe.drivers.library.Sent` for an ``execute`` call."""

    wants_first_only = False

    def __init__(
        self, original: Any, cursor: Any, query: Any, arguments: tuple[Any, ...], options: Any
    ) -> None:
        self.connection = cursor.connection
        self.text = _text_of(query, cursor.connection)
        self.send = partial(original, cursor, query, *arguments, **options)
        self._original = original
        self._cursor = cursor
        self._query = query
        self._parameters = arguments
        self._options = options

    def literal(self) -> str:
        import psycopg

        kind: Any = psycopg.ClientCursor
        if isinstance(self.connection, psycopg.AsyncConnection):
            kind = psycopg.AsyncClientCursor
        cursor = kind(self.connection)
        _spell_floats(cursor)
        try:
            return str(cursor.mogrify(self._query, *self._parameters))
        except (psycopg.Error, TypeError, ValueError):
            return ""

    def ask(self, query: str, *values: object) -> Steps:
        import psycopg
        from psycopg.rows import tuple_row

        kind: Any = psycopg.Cursor
        if isinstance(self.connection, psycopg.AsyncConnection):
            kind = psycopg.AsyncCursor
        cursor = kind(self.connection, row_factory=tuple_row)
        yield partial(self._original, cursor, query, *((values,) if values else ()), prepare=False)
        return (yield cursor.fetchall) if cursor.description is not None else []

    def count(self, result: Any) -> int:
        return int(self._cursor.rowcount)

    def hidden(self, selected: str) -> Steps:
        from psycopg.pq import ExecStatus

        query = with_returning(
            self.text, selected.replace("%", "%%") if self._parameters else selected
        )
        result = yield partial(
            self._original, self._cursor, query, *self._parameters, **self._options
        )
        found = _texts(self._cursor)
        # The application must find a cursor without rows, as after its own statement.
        self._cursor.pgresult = self.connection.pgconn.make_empty_result(ExecStatus.COMMAND_OK)
        return result, found

    def output_rows(self, result: Any, width: int) -> tuple[list[str], list[list[Any]] | None]:
        reply = self._cursor.pgresult
        coding = self.connection.info.encoding
        names = [reply.fname(column).decode(coding) for column in range(reply.nfields)]
        binary = any(map(reply.fformat, range(reply.nfields)))
        return names, None if binary else self._cells()

    def returning(self) -> Steps:
        result = yield self.send
        return result, self.output_rows(result, 0)[1]

    def _cells(self) -> list[list[Any]]:
        reply = self._cursor.pgresult
        return [
            [reply.get_value(row, column) for column in range(reply.nfields)]
            for row in range(reply.ntuples)
        ]


def _spell_floats(cursor: Any) -> None:
    """Make a cursor write a float as a literal of its type.

    SOUND BECAUSE: psycopg sends a float as a float8, and a literal without a type is a numeric. A
    comparison with a column of decimals rounds if the constant is a float8, but not if it is a
    numeric.
    """
    from psycopg.adapt import PyFormat
    from psycopg.types.numeric import FloatDumper

    class TypedFloatDumper(FloatDumper):
        def quote(self, obj: Any) -> bytes:
            return b"'%s'::float8" % bytes(self.dump(obj) or b"")

    usual = cursor.adapters.get_dumper(float, PyFormat.TEXT)
    if usual.__name__ == "FloatDumper" and usual.__module__.startswith("psycopg"):
        cursor.adapters.register_dumper(float, TypedFloatDumper)


def _text_of(query: Any, connection: Any) -> str:
    if isinstance(query, bytes):
        return query.decode()
    if isinstance(query, str):
        return query
    return str(query.as_string(connection)) if hasattr(query, "as_string") else ""
