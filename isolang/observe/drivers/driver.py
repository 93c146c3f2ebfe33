"""Records what an unchanged application does through a library of PostgreSQL.

The ``xmin`` of a row's version names the transaction that wrote the version. The watch makes a
write that returns nothing return the keys and ``xmin`` of its rows, which the application does not
see. For a SELECT, it selects the keys and ``xmin`` of the rows that match its condition, before and
after the SELECT.

SOUND BECAUSE: the versions of a row that a transaction can see only go forward. A version that is
present before a statement and after it was therefore in the statement's snapshot. If the two
versions differ, the row is unseen. Rows that a statement has locked do not change after it.

A condition that finds no row leaves no version to record. Unless it names a key that was found, it
is kept with the rows that met it, and becomes a predicate read if all versions of its table turn
out to be known (:mod:`isolang.observe.closed`). If not, it is counted as unseen.

SOUND BECAUSE: the queries of the watch are statements of the transaction, too, and each of them has
one snapshot. At READ COMMITTED, UPDATE, DELETE and a SELECT that locks check the newest version of
each row again, so they see no snapshot: only if they look up one key, they see one version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.history.values import Keyword
from isolang.observe.catalogue import lookup
from isolang.observe.closed import Found, KnownVersion, Wrote
from isolang.observe.drivers import rows, server
from isolang.observe.drivers.callers import caller
from isolang.observe.drivers.changes import SeenRow, value_text, written_text
from isolang.observe.drivers.hooks import Hooks, Steps
from isolang.observe.drivers.library import Library, Sent
from isolang.observe.drivers.met import ConditionRecorder
from isolang.observe.drivers.observed import ObservedTransaction, WrittenVersions
from isolang.observe.drivers.statements import Statement, parse
from isolang.observe.drivers.transactions import Control, control
from isolang.observe.lexer import raw
from isolang.observe.unseen import (
    AUTOCOMMIT,
    CHANGED,
    FOREIGN,
    FUNCTIONS,
    LIMITED,
    NO_ROW,
    OUTSIDE,
    SHAPES,
    TABLES,
    TRUNCATED,
    TWO_ROWS,
    Unseen,
    added_to,
    base_name,
)
from isolang.run.drivers.postgres_log import LoggedChange, PostgresLog
from isolang.run.outcome import RolledBack
from isolang.run.record.database_log import Installed, RewrittenHistory, rewrite_history

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from isolang.run.record.recorder import Recorder

_GONE: Final = Keyword("deleted")
# Statements that need not be recorded: they set properties of the connection, lock a table, or
# create something empty.
_QUIET: Final = re.compile(
    r"\s*(?:;?\s*$|(?:set|show|reset)\b|lock\s+(?:table\s+)?[^;]*;?\s*$"
    r"|create\b(?!.*(?:\bas\s+(?!identity)|;.*\S)))",
    re.IGNORECASE | re.DOTALL,
)
_COMPUTES: Final = re.compile(r"\s*select\b(?!.*\b(?:into|table)\b)", re.IGNORECASE | re.DOTALL)
_SOURCE: Final = re.compile(r"\b(?:from|join)\s+(?:lateral\s+)?([\w.\"]+)", re.IGNORECASE)
_SOURCES: Final = re.compile(
    r"\bfrom\b(?:(?!\b(?:where|join|group|order|limit)\b)[^)])*,", re.IGNORECASE | re.DOTALL
)
_CATALOGUE: Final = re.compile(r"(?:pg_catalog\.|information_schema\.|pg_)\w+", re.IGNORECASE)
_CALLED: Final = re.compile(r'(\w+|"[^"]*")\s*\(')
_CALLS: Final = re.compile(
    r"\s*(?:call|do|select\b(?!.*\bfrom\b)|.*\bfrom\s+[\w.]+\s*\()", re.IGNORECASE | re.DOTALL
)
# SOUND BECAUSE: no function of this list reads or writes a table.
_INNOCENT: Final = frozenset(
    """
    abs cast clock_timestamp coalesce current_database current_schema current_setting currval date
    gen_random_uuid greatest hashtext hashtextextended in lastval least length lower md5 nextval now
    nullif pg_backend_pid pg_current_snapshot pg_current_xact_id pg_current_xact_id_if_assigned
    pg_sleep random round set_config statement_timestamp transaction_timestamp txid_current upper
    version
    """.split()  # noqa: SIM905 - a list of words
)
_RETURNS_OLD: Final = 180000  # the version of PostgreSQL from which on RETURNING has old rows
_ADVISORY: Final = re.compile(r"pg_(?:try_)?advisory_\w+")
_ENDS: Final = re.compile(r";.*\S|\b(?:commit|rollback|abort|chain|prepare)\b", re.I | re.S)


class _Lost(Exception):  # noqa: N818 - an end that was not seen, not a fault
    """The watch did not see the end of the transaction, so its outcome is not known."""


class _Open(ObservedTransaction):
    """A transaction of the application, with the tables that it has looked up."""

    def __init__(self, session: Hashable, recorder: Recorder, *, versions: bool) -> None:
        super().__init__(session, recorder, versions=versions)
        self.tables: dict[str, rows.WatchedTable | None] = {}


class DriverWatch:
    """A watch of all connections of a library to one database. It is a context manager.

    Attributes:
        unseen: the number of things that were not recorded, by kind; its ``examples`` name a
            statement and ``file:line``.
    """

    def __init__(
        self,
        conninfo: str,
        recorder: Recorder,
        library: Library,
        *,
        names: Mapping[str, str] | None = None,
        versions: bool = False,
        others: Sequence[DriverWatch] = (),
        **parameters: Any,
    ) -> None:
        """Choose a database; see :meth:`isolang.testing.isolation.Isolation.watch_psycopg`."""
        self.recorder = recorder
        self.unseen = Unseen(caller)
        self.library = library
        self._connect = partial(server.connected, library.name, conninfo, parameters)
        self._names = names or {}
        self._versions = WrittenVersions(all_known=versions)
        self._reads_log = versions
        self._others = others  # of the same recording
        self._shares_log = False  # whether another watch reads the log
        self._database = (conninfo, parameters)
        self._log: PostgresLog | None = None
        self._logged: list[LoggedChange] = []
        self._open: dict[Any, _Open] = {}
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._sessions = count()
        self._hooks = Hooks()
        self._where: tuple[Any, ...] = ()
        self._conditions = ConditionRecorder(self.unseen, self._connect_to_log)

    def __enter__(self) -> Self:
        """Begin to watch.

        Raises:
            IsolangError: the database cannot be reached, or does not log its versions.
        """
        self._where, self._versions.before, version = self._connect()
        self._join(self._others)
        self._conditions.possible = version >= _RETURNS_OLD and not self._reads_log
        if self._reads_log and not self._shares_log:
            self._log = PostgresLog(self._connect_to_log, self.library.name)
        self.library.hook(self._hooks, self)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching; transactions that are still open are not recorded."""
        self._hooks.remove()
        if self._log is not None:
            self._logged += self._log.changes()
            self._log.close()

    # --- what the database tells ---

    def account(self, path: Path, into: Path) -> RewrittenHistory:
        """Write the history recorded so far with the versions of the database's log.

        The written history also has transactions of clients that are not watched, and what watched
        transactions wrote by statements that are not recognised.

        Args:
            path: the file of the recorded history.
            into: the file to write.

        Raises:
            IsolangError: the watch began without ``versions=True``, or the log has ended.
        """
        if self._log is None:
            raise IsolangError(
                f"{self.library.name}: no versions were asked for; hint: versions=True"
            )
        if self._hooks.active:
            self._logged += self._log.changes()
        before = self._log.before % 2**32

        def is_initial(transaction: str) -> bool:
            return 0 < (before - int(transaction)) % 2**32 < 2**31

        return rewrite_history(
            path, self._installed(), is_initial=is_initial, into=into, values_are_writers=True
        )

    def _join(self, others: Sequence[DriverWatch]) -> None:
        """Share what is known of the versions with the other watches of the same database.

        SOUND BECAUSE: a version that another watch has recorded is not initial for this one. Two
        watches of one library would record each transaction twice.

        Raises:
            IsolangError: the other watch records the same transactions, or has other versions.
        """
        for other in others:
            if other._where == self._where and other.library.name == self.library.name:
                raise IsolangError(
                    f"{self.library.name}: the database is watched already (got {self._where} "
                    "twice, expected one watch of a database for each library)"
                )
            if other._where != self._where and other._reads_log and self._reads_log:
                raise IsolangError(
                    f"{self.library.name}: a second log of versions (got {self._where}, expected "
                    f"{other._where}, whose log another watch reads); hint: watch one of the "
                    "databases without versions=True"
                )
            if other._where == self._where:
                if other._reads_log != self._reads_log:
                    raise IsolangError(
                        f"{self.library.name}: one database with and without versions (got "
                        f"versions={self._reads_log}, expected versions={other._reads_log}, as "
                        f"{other.library.name} has)"
                    )
                self._versions = other._versions
                self._shares_log = True

    def close(self, path: Path, into: Path | None) -> Path:
        """Write the history recorded so far with predicate reads, and return its file.

        The conditions that cannot be recorded are counted as unseen from then on.

        Args:
            path: the file of the recorded history.
            into: the file to write if there is a predicate read; ``None`` if another watch
                records, too, so that there can be none.
        """
        return self._conditions.close(path, into, self._versions.before or 0)

    @property
    def all_unseen(self) -> Unseen:
        """The counts of what was not recorded, with the conditions that :meth:`close` left out."""
        every = Unseen()
        every.add(self.unseen)
        every.add(self._conditions.unresolved)
        return every

    def _connect_to_log(self) -> Any:
        import psycopg

        conninfo, parameters = self._database
        connection = psycopg.connect(conninfo, **{**parameters, "autocommit": True})
        server.OWN_CONNECTIONS.add(connection)
        return connection

    def _installed(self) -> Iterator[Installed]:
        tables: dict[str, rows.WatchedTable | None] = {}
        with self._connect_to_log() as connection:
            for change in self._logged:
                if change.table not in tables:
                    found = connection.execute(lookup([change.table])).fetchall()
                    tables[change.table] = rows.table_of(found, self._names)
                table = tables[change.table]
                if table is not None:
                    yield from _versions_of(change, table)

    # --- transactions ---

    def _arrive(self, connection: Any) -> _Open | None:
        """Return the transaction of a statement; begin a transaction if the library does so."""
        one = self._current(connection)
        begins = one is None and self.library.begins(connection)
        if begins and self.library.state(connection) == "idle":
            one = self._begin(connection)
        if one is not None and self.library.pipelined(connection):
            self.unseen.note("pipelines")
            self._end(connection, _Lost())
            return None
        return one

    def _current(self, connection: Any) -> _Open | None:
        one = self._open.get(connection)
        if one is not None and not one.alone and self.library.state(connection) == "idle":
            self._end(connection, _Lost())
            return None
        return one

    def _begin(self, connection: Any) -> _Open | None:
        if self.library.place(connection) != self._where:
            self.unseen.note("databases", str(self.library.place(connection)))
            return None
        if connection not in self._numbers:
            self._numbers[connection] = next(self._sessions)
        one = self._open[connection] = _Open(
            (id(self), self._numbers[connection]), self.recorder, versions=self._reads_log
        )
        return one

    def _end(self, connection: Any, error: BaseException | None) -> None:
        """End a transaction; record a lost transaction with its writes and an unknown outcome."""
        one = self._open.pop(connection)
        if isinstance(error, _Lost) and not one.committing:
            one.announce()
        self._conditions.ended(one.end(error))

    def ending(self, connection: Any, *, commit: bool, send: Callable[[], Any]) -> Steps:
        """Send a call that ends a transaction, and record the outcome."""
        one = self._current(connection)
        if one is None:
            return (yield send)
        # PostgreSQL rolls back at the COMMIT of a failed transaction, without an error.
        commit = commit and self.library.state(connection) == "open"
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
        if self.library.state(connection) in ("idle", "unknown"):
            commit = commit and not self.library.refused(result)
            self._end(connection, None if commit else RolledBack())
        elif commit:  # the statement is COMMIT AND CHAIN, or in a pipeline
            self._end(connection, _Lost())
        else:
            self._end(connection, RolledBack())
        return result

    def block(
        self, connection: Any, savepoint: Callable[[], str], send: Callable[[], Any]
    ) -> Steps:
        """Send a call that begins a block: a transaction, or a savepoint within a transaction.

        Args:
            connection: the connection of the block.
            savepoint: a function that returns the savepoint's name, once the block has begun.
            send: the call that begins the block.

        Returns:
            The result of the call, and whether it began a transaction.
        """
        one = self._current(connection)
        idle = self.library.state(connection) == "idle"
        result = yield send
        if idle:
            self._begin(connection)
        elif one is not None:
            one.savepoint(savepoint())
        return result, idle

    def end_block(
        self, connection: Any, savepoint: str, *, commit: bool, send: Callable[[], Any]
    ) -> Steps:
        """Send a call that ends the block of a savepoint."""
        result = yield send
        one = self._current(connection)
        if one is not None:
            one.sent()
            if not commit:
                one.roll_back_to(savepoint)
            one.release(savepoint)
        return result

    def closed(self, connection: Any) -> None:
        """Note that a connection is closed at once; a pending COMMIT has an unknown outcome."""
        one = self._open.get(connection)
        if one is not None:
            self._end(connection, _Lost() if one.committing else RolledBack())

    def _controlled(self, connection: Any, what: Control, send: Callable[[], Any]) -> Steps:
        """Send a statement that begins or ends a transaction, or changes its savepoints."""
        if what.kind in ("commit", "rollback"):
            return (yield from self.ending(connection, commit=what.kind == "commit", send=send))
        one = self._current(connection)
        idle = self.library.state(connection) == "idle"
        result = yield send
        if idle and self.library.state(connection) == "open":
            begun = self._begin(connection)
            if begun is not None:
                begun.sent()
            return result
        if one is not None:
            one.sent()
        if one is not None and what.kind == "savepoint":
            one.savepoint(what.name)
        elif one is not None and what.kind == "release":
            one.release(what.name)
        elif one is not None and what.kind == "back":
            one.roll_back_to(what.name)
        return result

    # --- statements ---

    def passed(self, connection: Any, kind: str, text: str = "") -> None:
        """Note a call whose reads and writes cannot be recorded."""
        one = self._arrive(connection)
        if one is not None:
            one.sent()
            one.tables.clear()
            one.unclear = True
        if self.library.place(connection) == self._where:
            self.unseen.note(kind, text, table=added_to(text))

    def many(
        self,
        each: Sequence[Sent],
        send: Callable[[], Any],
        hidden: Callable[[str], Steps],
    ) -> Steps:
        """Send one statement with several rows of values, and record what it wrote.

        Args:
            each: the statement with each row of values.
            send: the call of the application.
            hidden: a function that sends another text with the same values, and returns the rows
                of each.
        """
        connection, text = each[0].connection, each[0].text
        one = self._arrive(connection)
        parsed = [parse(sent.literal()) for sent in each] if one is not None else []
        writes = [
            (sent, statement)
            for sent, statement in zip(each, parsed, strict=False)
            if statement is not None and statement.kind != "select" and not statement.returned
        ]
        failed = one is not None and self.library.state(connection) == "failed"
        table = None
        if one is not None and not failed and len(writes) == len(each):
            table = yield from self._table(one, *writes[0])
        if one is None or table is None:
            if not failed:
                self.passed(connection, "executemany", text)
            return (yield send)
        one.sent()
        statement = writes[0][1]
        if statement.kind != "insert":
            self.unseen.read.add(base_name(statement.table))
        old = self._conditions.possible and raw(statement.alias) not in ("old", "new")
        selected = table.selected(statement.alias, row=True, old=old)
        query = f"{text.strip().removesuffix(';')} RETURNING {selected}"
        try:
            found = yield from hidden(query)
        except BaseException:
            going_on = self.library.state(connection) in ("open", "failed")
            if connection in self._open and not going_on:
                self._end(connection, _Lost())
            raise
        for (sent, statement), answer in zip(writes, found, strict=True):
            versions = self._versions_in(one, answer, table)
            yield from self._wrote(one, sent, statement, table, versions, old=old)

    def statement(self, sent: Sent) -> Steps:
        """Send a statement of the application, and record what it read and wrote."""
        connection, text = sent.connection, sent.text
        what = control(text)
        if what is not None:
            return (yield from self._controlled(connection, what, sent.send))
        one = self._arrive(connection)
        if one is None:
            return (yield from self._outside(sent))
        if self.library.state(connection) == "failed":
            return (yield sent.send)
        return (yield from self._within(one, sent))

    def _outside(self, sent: Sent) -> Steps:
        """Send a statement outside watched transactions; in autocommit, record it by itself."""
        connection, text = sent.connection, sent.text
        own = connection in server.OWN_CONNECTIONS
        if own or _is_quiet(text) or self.library.place(connection) != self._where:
            return (yield sent.send)
        if self.library.state(connection) != "idle" or self.library.pipelined(connection):
            self.unseen.note(OUTSIDE, text, table=added_to(text))
            return (yield sent.send)
        one = self._begin(connection)
        assert one is not None  # it is the watched database
        one.alone = True
        self.unseen.note(AUTOCOMMIT, text)
        try:
            result = yield from self._within(one, sent)
        except BaseException as error:
            if self._open.get(connection) is one:
                self._end(connection, error)
            raise
        if self._open.get(connection) is one:
            self._end(connection, None)
        return result

    def _within(self, one: _Open, sent: Sent) -> Steps:
        connection, text = sent.connection, sent.text
        statement = parse(sent.literal()) if text else None
        one.sent("" if statement is None else statement.lock)
        try:
            table = yield from self._table(one, sent, statement)
            if statement is None or table is None:
                kind = _kind_of(text) if statement is None else TABLES
                return (yield from self._other(connection, one, text, kind, sent.send))
            if statement.kind != "insert":
                self.unseen.read.add(base_name(statement.table))
            if statement.kind == "select":
                return (yield from self._select(one, sent, statement, table))
            if statement.returned:
                return (yield from self._returning(one, sent, statement, table))
            old = self._conditions.possible and raw(statement.alias) not in ("old", "new")
            selected = table.selected(statement.alias, row=True, old=old)
            result, found = yield from sent.hidden(selected)
            versions = self._versions_in(one, found, table)
            yield from self._wrote(one, sent, statement, table, versions, old=old)
            return result
        except BaseException:
            going_on = one.alone or self.library.state(connection) in ("open", "failed")
            if connection in self._open and not going_on:
                gone = not self.library.place(connection)
                self._end(connection, RolledBack() if gone else _Lost())
            raise

    def _other(
        self, connection: Any, one: _Open, text: str, kind: str, send: Callable[[], Any]
    ) -> Steps:
        """Send a statement whose rows cannot be identified, which is unseen of a kind."""
        one.tables.clear()  # the statement may have changed how names are resolved
        if not _is_quiet(text):
            one.unclear = True
            adds = "" if kind == FUNCTIONS else added_to(text)
            self.unseen.note(kind, text, table=adds)
        if _ENDS.search(text):
            # SOUND BECAUSE: it is unknown which of the transaction's changes remain, so all its
            # operations are removed. No client can have read its versions, because its end is not
            # sent yet.
            self._versions.forget(one.clear())
            self._end(connection, _Lost())
        result = yield send
        self._current(connection)
        return result

    def _table(self, one: _Open, sent: Sent, statement: Statement | None) -> Steps:
        if statement is None:
            return None
        if statement.table not in one.tables:
            found = yield from sent.ask(lookup([statement.table]))
            table = rows.table_of(found, self._names)
            one.tables[statement.table] = table
            if table is not None:
                self._conditions.meet(table)
        return one.tables[statement.table]

    def _record_lookup(self, one: _Open, sent: Sent, table: rows.WatchedTable, query: str) -> Steps:
        """Return the rows of a query of the watch, each with its version."""
        answer = yield from sent.ask(query)
        return self._versions_in(one, answer, table)

    def _versions_in(
        self, one: _Open, answer: list[list[Any]], table: rows.WatchedTable
    ) -> dict[str, rows.Version | None]:
        one.number = rows.transaction_of(answer) or one.number
        return rows.versions(answer, table)

    def _select(
        self, one: _Open, sent: Sent, statement: Statement, table: rows.WatchedTable
    ) -> Steps:
        steps = len(one.steps)
        before: dict[str, rows.Version | None] = {}
        locks = bool(statement.lock) and not one.alone  # in autocommit, its locks end with it
        if not locks:
            before = yield from self._record_lookup(
                one, sent, table, rows.matching(statement, table)
            )
        result = yield sent.send
        count = sent.count(result)
        names, returned = sent.output_rows(result, len(statement.returned))
        first = sent.first_only and not statement.sums
        by_key = None
        if returned and (statement.cut or first or statement.lock):
            by_key = rows.returned_keys(statement, table, returned, names)
        whole = rows.matching(statement, table, row=True)
        after = yield from self._record_lookup(
            one, sent, table, whole if by_key is None else by_key
        )
        if locks:
            # SOUND BECAUSE: the returned rows are locked, so they do not change. If their keys are
            # unknown: they still match, and if the number of matching rows is the same, they are
            # the same rows.
            before = after
        every = len(before)
        if not locks and by_key is not None:
            before = {key: version for key, version in before.items() if key in after}
        most = max(len(before), len(after))
        partly = statement.cut or bool(statement.lock) or (first and most > 1)
        if by_key is None and partly and most > (count or 0):
            if count != 0:
                self.unseen.note(LIMITED, sent.text)
            found = count or 0
        else:
            found = self._read(one, sent.text, table, before, after)
            if (count or 0) > found and not statement.sums:
                self.unseen.note(CHANGED, sent.text)
                found = count or 0
        read = one.steps[steps:]
        complete = len(after) == len(read) and (not statement.cut if locks else every == len(after))
        if statement.sums:
            complete = complete and _counted(statement, returned) in (None, len(after))
        else:
            complete = complete and count in (None, len(after))
        met = [(step.key, step.number) for step in read if isinstance(step, Found)]
        yield from self._conditions.note(
            one,
            sent,
            statement,
            table,
            found,
            met if complete else None,
            locks=bool(statement.lock),
        )
        return result

    def _read(
        self,
        one: _Open,
        text: str,
        table: rows.WatchedTable,
        before: Mapping[str, rows.Version | None],
        after: Mapping[str, rows.Version | None],
    ) -> int:
        """Record the rows that a SELECT did not see change; return the number of all its rows."""
        keys = sorted(before.keys() | after.keys())
        twice = {key for key in keys if None in (before.get(key, 0), after.get(key, 0))}
        for key in keys:
            version, earlier = after.get(key), before.get(key)
            if version is None or earlier is None or earlier.number != version.number:
                self.unseen.note(TWO_ROWS if key in twice else CHANGED, f"{key}: {text}")
                continue
            after_own = one.number if one.unclear else None
            value = self._versions.value(key, version.number, after=after_own)
            if not value:
                self.unseen.note(FOREIGN, key)
            elif not one.read(key, value[0], version.seen, table=table.name, number=version.number):
                self.unseen.note(TWO_ROWS, f"{key}: {text}")
        return len(keys) + len(twice)

    def _returning(
        self, one: _Open, sent: Sent, statement: Statement, table: rows.WatchedTable
    ) -> Steps:
        """Send a write that returns rows to the application, and query their versions after it.

        In autocommit both statements need a transaction, so that no other version is between them.
        """
        if one.alone:
            yield from sent.ask("BEGIN")
        try:
            result, found = yield from sent.returning()
            yield from self._returned(one, sent, statement, table, found)
        except Exception:
            if one.alone and self.library.state(sent.connection) in ("open", "failed"):
                yield from sent.ask("ROLLBACK")
            raise
        if one.alone:
            yield from sent.ask("COMMIT")
        return result

    def _returned(
        self,
        one: _Open,
        sent: Sent,
        statement: Statement,
        table: rows.WatchedTable,
        found: list[list[Any]] | None,
    ) -> Steps:
        query = None
        if found is not None and statement.kind != "delete":
            if not found:
                yield from self._wrote(one, sent, statement, table, {}, old=False)
                return
            query = rows.returned_keys(statement, table, found)
        if query is None:
            one.unclear = True
            self.unseen.note("returning", sent.text)
            return
        answer = yield from self._record_lookup(one, sent, table, query)
        yield from self._wrote(one, sent, statement, table, answer, old=False)

    def _wrote(
        self,
        one: _Open,
        sent: Sent,
        statement: Statement,
        table: rows.WatchedTable,
        versions: Mapping[str, rows.Version | None],
        *,
        old: bool,
    ) -> Steps:
        """Record the rows that a statement wrote.

        Args:
            one: the transaction.
            sent: the statement.
            statement: its parts.
            table: its table.
            versions: the new version of each row; the last one of a deleted row.
            old: whether the versions name those that they replaced.
        """
        text = sent.text
        moved = statement.kind == "update" and bool(set(statement.sets) & set(table.columns))
        if statement.kind != "insert":
            met = [(key, one.old) for key, one in versions.items() if one and one.old is not None]
            known = (old or not versions) and len(met) == len(versions) and not moved
            yield from self._conditions.note(
                one,
                sent,
                statement,
                table,
                len(versions),
                met if known else None,
                locks=True,
                covers=0,
            )
        for key, version in versions.items():
            step = _step(statement, table, key, version, old=old and not moved)
            if statement.kind == "delete":
                one.write(key, _GONE, step=step)
            elif version is None:
                one.unclear = True
                self.unseen.note("deleted", key)
            else:
                self._versions.wrote(key, version.number)
                seen = replace(version.seen, named=statement.sets)
                one.write(key, version.number, seen, step=step)
        if statement.kind == "insert" and not versions:
            self.unseen.note(NO_ROW, text)
        if versions and moved:
            self.unseen.note("keys", text)


def _step(
    statement: Statement,
    table: rows.WatchedTable,
    key: str,
    version: rows.Version | None,
    *,
    old: bool,
) -> Wrote:
    """Return a write of a row in detail; ``old`` says whether the version names its old one."""
    plain = statement.kind == "insert" and not statement.upserts
    replaced = None
    if version is not None and version.old is not None:
        replaced = KnownVersion(key, version.old, version.old_cells)
    gone = statement.kind == "delete" or version is None
    return Wrote(
        table=table.name,
        key=key,
        number=None if gone or version is None else version.number,
        cells={} if gone or version is None else version.cells,
        old=replaced,
        old_known=version is not None and (old or plain),
    )


def _counted(statement: Statement, returned: list[list[Any]] | None) -> int | None:
    """Return the number of rows that the application received from ``count(*)``, if it is known."""
    if [one.lower() for one in statement.returned] != ["count(*)"] or not returned:
        return None
    value = returned[0][0]
    return None if value is None else int(value)


def _kind_of(text: str) -> str:
    """Return the kind of a statement that is not recognised."""
    if _CALLS.match(text):
        return FUNCTIONS
    return TRUNCATED if text.split(maxsplit=1)[:1] in (["TRUNCATE"], ["truncate"]) else SHAPES


def _is_quiet(text: str) -> bool:
    """Return whether a statement reads and writes no row of a table of the application."""
    if _QUIET.match(text):
        return True
    if not _COMPUTES.match(text):
        return False
    sources = _SOURCE.findall(text)
    if sources:
        return _SOURCES.search(text) is None and all(map(_CATALOGUE.fullmatch, sources))
    called = [name.lower() for name in _CALLED.findall(text)]
    return " from " not in text.lower() and all(
        name in _INNOCENT or _ADVISORY.fullmatch(name) for name in called
    )


def _versions_of(change: LoggedChange, table: rows.WatchedTable) -> Iterator[Installed]:
    """Yield the versions that a change of the log installs, with their keys in the history."""
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
            row="" if gone else written_text(SeenRow(row=row)),
        )
