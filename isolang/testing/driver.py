"""Recording what an application does through psycopg, synchronously or not, without a change.

``xmin`` of a row's version names the transaction that wrote it. A write that returns nothing is
made to return the keys and ``xmin`` of its rows, which the application does not see. For a SELECT,
keys and ``xmin`` of the rows that match its condition are selected before and after it.

SOUND BECAUSE: the versions of a row that a transaction can see only go forward. A version that was
there before a statement and is there after it was the one in the statement's snapshot. Where they
differ the row is unseen. Rows that a statement has locked do not change after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.history.values import Keyword
from isolang.run.account import Account, Installed, put_account
from isolang.run.drivers.postgres_log import Change, Log
from isolang.run.outcome import RolledBack
from isolang.testing import rows, server
from isolang.testing.changes import Seen, value_text, written_text
from isolang.testing.hooks import Hooks
from isolang.testing.observed import Observed, Unseen, Versions
from isolang.testing.statements import Statement, parse
from isolang.testing.transactions import Control, control

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from isolang.run.recorder import Recorder

Steps: TypeAlias = Generator[Callable[[], Any], Any, Any]
"""What is done, step by step: each yields a call of psycopg, and is sent its result."""

_GONE: Final = Keyword("deleted")
# Nobody misses them: they ask and set what the connection is to be like.
_QUIET: Final = re.compile(
    r"\s*(?:(?:set|show|reset)\b|select\s+(?:set_config|(?:pg_catalog\.)?version|current_schema)\s*\("
    r"|select\b.*\bfrom\s+(?:pg_catalog\.|pg_)\w)",
    re.IGNORECASE | re.DOTALL,
)
_ENDS: Final = re.compile(r";.*\S|\b(?:commit|rollback|abort|chain|prepare)\b", re.I | re.S)
_SHAPE: Final = "statements of a shape that is not recognised"


class _Lost(Exception):  # noqa: N818 - an end that was not seen, not a fault
    """The transaction ended where it was not followed; its outcome is not known."""


class _Open(Observed):
    """A transaction of the application, and the tables that it found."""

    def __init__(self, session: int, recorder: Recorder, *, versions: bool) -> None:
        super().__init__(session, recorder, versions=versions)
        self.tables: dict[str, rows.Table | None] = {}


class DriverWatch:
    """All connections of psycopg to one database, while they are watched; a context manager.

    Attributes:
        unseen: what was left out, by kind; its ``examples`` name statement and ``file:line``.
    """

    def __init__(
        self,
        conninfo: str,
        recorder: Recorder,
        *,
        names: Mapping[str, str] | None = None,
        versions: bool = False,
        **parameters: Any,
    ) -> None:
        """Choose what to watch; see :meth:`isolang.testing.isolation.Isolation.watch_psycopg`."""
        self.recorder = recorder
        self.unseen = Unseen()
        self._connect = partial(server.connected, conninfo, parameters)
        self._names = names or {}
        self._versions = Versions(all_known=versions)
        self._tells = versions
        self._database = (conninfo, parameters)
        self._log: Log | None = None
        self._told: list[Change] = []
        self._open: dict[Any, _Open] = {}
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._sessions = count()
        self._hooks = Hooks()
        self._where: tuple[Any, ...] = ()

    def __enter__(self) -> Self:
        """Begin.

        Raises:
            IsolangError: the database cannot be reached, or keeps no log of its versions.
        """
        self._where, self._versions.before = self._connect()
        if self._tells:
            self._log = Log(self._connect_to_log, "watch_psycopg")
        self._hooks.around("Cursor", "execute", self._execute)
        for owner, name, kind in (
            ("Cursor", "executemany", "executemany"),
            ("Cursor", "copy", "COPY"),
            ("Cursor", "stream", "Cursor.stream"),
            ("ServerCursor", "execute", "cursors of the server"),
        ):
            self._hooks.before(owner, name, partial(self._pass, kind))
        self._hooks.around("Connection", "commit", partial(self._finish, True))
        self._hooks.around("Connection", "rollback", partial(self._finish, False))
        self._hooks.around("Connection", "close", partial(self._finish, False))
        self._hooks.around("Transaction", "__enter__", self._enter)
        self._hooks.around("Transaction", "__exit__", self._exit)
        return self

    def __exit__(self, *_: object) -> None:
        """End; what is open then is not recorded."""
        self._hooks.remove()
        if self._log is not None:
            self._told += self._log.changes()
            self._log.close()

    # --- what the database tells ---

    def account(self, path: Path, into: Path) -> Account:
        """Write what was recorded so far with the versions as the database's log has them.

        Writers that nobody watched are in it, too, and so is what watched transactions wrote by
        statements that are not recognised.

        Args:
            path: of the recording.
            into: where to write.

        Raises:
            IsolangError: the watch was begun without ``versions=True``, or the log has ended.
        """
        if self._log is None:
            raise IsolangError("watch_psycopg: no versions were asked for; hint: versions=True")
        if self._hooks.active:
            self._told += self._log.changes()
        before = self._log.before % 2**32

        def at_first(said: str) -> bool:
            return 0 < (before - int(said)) % 2**32 < 2**31

        return put_account(path, self._installed(), at_first=at_first, into=into, by_number=True)

    def _connect_to_log(self) -> Any:
        import psycopg

        conninfo, parameters = self._database
        return psycopg.connect(conninfo, **{**parameters, "autocommit": True})

    def _installed(self) -> Iterator[Installed]:
        tables: dict[str, rows.Table | None] = {}
        with self._connect_to_log() as connection:
            for change in self._told:
                if change.table not in tables:
                    found = connection.execute(rows.TABLE, (change.table,)).fetchone()
                    tables[change.table] = rows.table_of(found, self._names)
                table = tables[change.table]
                if table is not None:
                    yield from _versions_of(change, table)

    # --- transactions ---

    def _arrive(self, connection: Any) -> _Open | None:
        """The transaction that a statement is sent in; it begins one where psycopg does."""
        one = self._current(connection)
        if one is None and server.status(connection) == "IDLE" and not connection.autocommit:
            one = self._begin(connection)
        if one is not None and connection.pgconn.pipeline_status:
            self.unseen.note("transactions with a pipeline")
            self._end(connection, _Lost())
            return None
        return one

    def _current(self, connection: Any) -> _Open | None:
        one = self._open.get(connection)
        if one is not None and server.status(connection) == "IDLE":
            self._end(connection, _Lost())
            return None
        return one

    def _begin(self, connection: Any) -> _Open | None:
        if server.place(connection) != self._where:
            self.unseen.note("connections to other databases", str(server.place(connection)))
            return None
        if connection not in self._numbers:
            self._numbers[connection] = next(self._sessions)
        one = self._open[connection] = _Open(
            self._numbers[connection], self.recorder, versions=self._log is not None
        )
        return one

    def _end(self, connection: Any, error: BaseException | None) -> None:
        """End a transaction; one that is lost has its writes in the history, and no outcome."""
        one = self._open.pop(connection)
        if isinstance(error, _Lost) and not one.committing:
            one.announce()
        one.end(error)

    def _ending(self, connection: Any, *, commit: bool, send: Callable[[], Any]) -> Steps:
        """Send what ends a transaction."""
        one = self._current(connection)
        if one is None:
            return (yield send)
        # PostgreSQL answers the COMMIT of a transaction that has failed by rolling back, silently.
        commit = commit and server.status(connection) == "INTRANS"
        if commit:
            one.announce()
        try:
            result = yield send
        except BaseException as error:
            if connection in self._open:
                self._end(connection, error if commit else RolledBack())
            raise
        if connection not in self._open:
            return result
        if server.status(connection) in ("IDLE", "UNKNOWN"):
            self._end(connection, None if commit else RolledBack())
        elif commit:  # COMMIT AND CHAIN, or in a pipeline
            self._end(connection, _Lost())
        else:
            self._end(connection, RolledBack())
        return result

    def _finish(self, commit: bool, original: Any, connection: Any) -> Steps:
        return (
            yield from self._ending(connection, commit=commit, send=partial(original, connection))
        )

    def _enter(self, original: Any, block: Any) -> Steps:
        connection = block.connection
        one = self._current(connection)
        idle = server.status(connection) == "IDLE"
        result = yield partial(original, block)
        if idle:
            self._begin(connection)
        elif one is not None:
            one.savepoint(block.savepoint_name)
        block.isolang_outer = idle
        return result

    def _exit(
        self, original: Any, block: Any, kind: Any = None, error: Any = None, trace: Any = None
    ) -> Steps:
        connection = block.connection
        send = partial(original, block, kind, error, trace)
        commits = error is None and not block.force_rollback
        if getattr(block, "isolang_outer", False):
            return (yield from self._ending(connection, commit=commits, send=send))
        result = yield send
        one = self._current(connection)
        if one is not None:
            if not commits:
                one.roll_back_to(block.savepoint_name)
            one.release(block.savepoint_name)
        return result

    def _controlled(self, connection: Any, what: Control, send: Callable[[], Any]) -> Steps:
        """A statement of the application that begins or ends a transaction, or a part of one."""
        if what.kind in ("commit", "rollback"):
            return (yield from self._ending(connection, commit=what.kind == "commit", send=send))
        one = self._current(connection)
        idle = server.status(connection) == "IDLE"
        result = yield send
        if idle and server.status(connection) == "INTRANS":
            self._begin(connection)
        elif one is not None and what.kind == "savepoint":
            one.savepoint(what.name)
        elif one is not None and what.kind == "release":
            one.release(what.name)
        elif one is not None and what.kind == "back":
            one.roll_back_to(what.name)
        return result

    # --- statements ---

    def _pass(self, kind: str, cursor: Any, query: Any = "", *_: Any, **__: Any) -> None:
        """Note what is not looked into."""
        one = self._arrive(cursor.connection)
        if one is not None:
            one.tables.clear()
            self.unseen.note(kind, server.text_of(query, cursor.connection))

    def _execute(
        self, original: Any, cursor: Any, query: Any, params: Any = None, **options: Any
    ) -> Steps:
        connection = cursor.connection
        text = server.text_of(query, connection)
        given = () if params is None else (params,)
        send = partial(original, cursor, query, *given, **options)
        what = control(text)
        if what is not None:
            return (yield from self._controlled(connection, what, send))
        one = self._arrive(connection)
        if one is None:
            if not _QUIET.match(text) and server.place(connection) == self._where:
                self.unseen.note("statements outside a watched transaction", text)
            return (yield send)
        if server.status(connection) == "INERROR":
            return (yield send)
        statement = parse(server.literal(connection, query, params)) if text else None
        try:
            table = yield from self._table(one, original, connection, statement)
            if statement is None or table is None:
                return (yield from self._other(connection, one, text, send))
            if statement.kind == "select":
                return (yield from self._select(one, cursor, statement, table, send))
            if statement.returned:
                result = yield send
                yield from self._returned(one, original, cursor, statement, table)
                return result
            hidden = f"{text.strip().removesuffix(';')} RETURNING "
            hidden += table.selected(statement.alias, row=True)
            result = yield partial(original, cursor, hidden, *given, **options)
            self._hidden(one, cursor, statement, table)
            return result
        except BaseException:
            if connection in self._open and server.status(connection) not in ("INTRANS", "INERROR"):
                gone = connection.closed
                self._end(connection, RolledBack() if gone else _Lost())
            raise

    def _other(self, connection: Any, one: _Open, text: str, send: Callable[[], Any]) -> Steps:
        """Send a statement whose rows cannot be named."""
        one.tables.clear()  # it may have changed where names are looked up
        if not _QUIET.match(text):
            self.unseen.note(_SHAPE, text)
        if _ENDS.search(text):
            # SOUND BECAUSE: what of the transaction stays is not known, and so it has no operations
            # any more. Nobody has seen its versions before its end, which is not sent yet.
            self._versions.forget(one.clear())
            self._end(connection, _Lost())
        result = yield send
        self._current(connection)
        return result

    def _table(
        self, one: _Open, original: Any, connection: Any, statement: Statement | None
    ) -> Steps:
        if statement is None:
            return None
        if statement.table not in one.tables:
            found = yield from _ask(original, connection, rows.TABLE, (statement.table,))
            one.tables[statement.table] = rows.table_of(found[0] if found else None, self._names)
        return one.tables[statement.table]

    def _select(
        self, one: _Open, cursor: Any, statement: Statement, table: rows.Table, send: partial[Any]
    ) -> Steps:
        query = rows.matching(statement, table)
        whole = rows.matching(statement, table, row=True)
        before: dict[str, rows.Version | None] | None = None
        if not statement.locks:
            found = yield from _ask(send.func, cursor.connection, query)
            before = rows.versions(found, table)
        result = yield send
        found = yield from _ask(send.func, cursor.connection, whole)
        after = rows.versions(found, table)
        if before is None:
            # SOUND BECAUSE: what was returned is locked and matches still. If there are as many
            # rows, they are the same.
            before = after if len(after) == cursor.rowcount else {}
        elif statement.cut and max(len(before), len(after)) > cursor.rowcount:
            self.unseen.note("rows that LIMIT may have left out", table.name)
            return result
        for key in sorted(before.keys() | after.keys()):
            version, earlier = after.get(key), before.get(key)
            if version is None or earlier is None or earlier.number != version.number:
                self.unseen.note("rows that changed while they were read", key)
                continue
            value = self._versions.value(key, version.number)
            if value:
                one.read(key, value[0], version.seen)
            else:
                self.unseen.note("rows of writers that are not watched", key)
        return result

    def _hidden(self, one: _Open, cursor: Any, statement: Statement, table: rows.Table) -> None:
        from psycopg.pq import ExecStatus

        result, coding = cursor.pgresult, cursor.connection.info.encoding
        found = [
            [
                None
                if (cell := result.get_value(row, column)) is None
                else bytes(cell).decode(coding)
                for column in range(result.nfields)
            ]
            for row in range(result.ntuples)
        ]
        self._wrote(one, statement, rows.versions(found, table))
        # The application finds a cursor without rows, as after its own statement.
        cursor.pgresult = cursor.connection.pgconn.make_empty_result(ExecStatus.COMMAND_OK)

    def _returned(
        self, one: _Open, original: Any, cursor: Any, statement: Statement, table: rows.Table
    ) -> Steps:
        result = cursor.pgresult
        if statement.kind == "delete" or any(map(result.fformat, range(result.nfields))):
            query = None
        else:
            found = [
                [result.get_value(row, column) for column in range(result.nfields)]
                for row in range(result.ntuples)
            ]
            if not found:
                return
            query = rows.returned_keys(statement, table, found)
        if query is None:
            self.unseen.note("writes that return something else than the key", table.name)
            return
        answer = yield from _ask(original, cursor.connection, query)
        self._wrote(one, statement, rows.versions(answer, table))

    def _wrote(
        self, one: _Open, statement: Statement, versions: Mapping[str, rows.Version | None]
    ) -> None:
        for key, version in versions.items():
            if statement.kind == "delete":
                one.write(key, _GONE)
            elif version is None:
                self.unseen.note("writes of rows that others have deleted", key)
            else:
                self._versions.wrote(key, version.number)
                one.write(key, version.number, replace(version.seen, named=statement.sets))


def _versions_of(change: Change, table: rows.Table) -> Iterator[Installed]:
    """What a change of the log does to the rows of a table, each by its name in the history."""
    number = change.transaction % 2**32

    def key(row: Mapping[str, str | None]) -> str | None:
        values = [row.get(one.strip('"').replace('""', '"')) for one in table.columns]
        return None if None in values else table.key([value or "" for value in values])

    new, old = key(change.row), key(change.old)
    if old is not None and old != new and change.kind == "UPDATE":
        yield Installed(transaction=number, key=old, value=_GONE)
    if new is None:
        new = old if change.kind == "DELETE" else None
    if new is not None:
        gone = change.kind == "DELETE"
        row = {one: value_text(value) for one, value in change.row.items() if one in table.others}
        yield Installed(
            transaction=number,
            key=new,
            value=_GONE if gone else number,
            row="" if gone else written_text(Seen(row=row)),
        )


def _ask(original: Any, connection: Any, query: str, *params: Any) -> Steps:
    """Send a query of our own, and give its rows."""
    import psycopg
    from psycopg.rows import tuple_row

    kind: Any = psycopg.Cursor
    if isinstance(connection, psycopg.AsyncConnection):
        kind = psycopg.AsyncCursor
    cursor = kind(connection, row_factory=tuple_row)
    yield partial(original, cursor, query, *params, prepare=False)
    return (yield cursor.fetchall)
