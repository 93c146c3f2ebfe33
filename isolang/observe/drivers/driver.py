"""Records what an unchanged application does through a PostgreSQL library.

:mod:`isolang.observe.drivers.recording` explains how this works, and why it never accuses a correct
database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.observe.drivers import server
from isolang.observe.drivers.callers import caller
from isolang.observe.drivers.hooks import Hooks, Steps
from isolang.observe.drivers.library import Library, Sent
from isolang.observe.drivers.log import VersionsLog
from isolang.observe.drivers.met import ConditionRecorder
from isolang.observe.drivers.observed import WrittenVersions
from isolang.observe.drivers.recording import StatementRecorder
from isolang.observe.drivers.statements import Planner, Statement
from isolang.observe.drivers.transactions import CONTROLS, OpenTransaction, Transactions
from isolang.observe.sql.plan import StatementPlan
from isolang.observe.unseen import AUTOCOMMIT, OUTSIDE, SHAPES, Unseen, table_added_to

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from isolang.run.record.database_log import RewriteCounts
    from isolang.run.record.recorder import Recorder


class DriverWatch:
    """A context manager that watches all connections of a library to one database.

    Attributes:
        unseen: the number of things that were not recorded, by kind, with an example of each: a
            statement and ``file:line``.
        transactions: the transactions of the watched connections.
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
        self._connect = partial(server.inspect_server, library.name, conninfo, parameters)
        self._names = names or {}
        self._versions = WrittenVersions(all_known=versions)
        self._reads_log = versions
        self._others = others  # the other watches of the same recording
        self._database = (conninfo, parameters)
        self._log: VersionsLog | None = None
        self._hooks = Hooks()
        self._conditions = ConditionRecorder(self.unseen, self._connect_to_log)
        self.transactions = Transactions(
            library, recorder, self.unseen, self._conditions.ended, versions=versions
        )

    def __enter__(self) -> Self:
        """Start watching.

        Raises:
            IsolangError: the database cannot be reached, or does not log its versions.
        """
        found = self._connect()
        self.transactions.where = found.place
        self._versions.before = found.oldest
        shares_log = self._share_versions(self._others)
        self._conditions.possible = found.facts.returns_old_rows and not self._reads_log
        if self._reads_log and not shares_log:
            self._log = VersionsLog(self._connect_to_log, self.library.name, self._names)
        self._planner = Planner(found.facts)
        self._statements = StatementRecorder(
            self._planner,
            self.transactions,
            self._versions,
            self._conditions,
            self.unseen,
            self._names,
        )
        self.library.hook(self._hooks, self)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching; transactions that are still open are not recorded."""
        self._hooks.remove()
        if self._log is not None:
            self._log.end()

    # --- versions from the database's log ---

    def account(self, path: Path, into: Path) -> RewriteCounts:
        """Write the history recorded so far, with versions from the database's log.

        The written history also contains the transactions of unwatched clients, and the writes made
        by watched transactions in unrecognised statements.

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
        return self._log.account(path, into)

    def _share_versions(self, others: Sequence[DriverWatch]) -> bool:
        """Share the known versions with the other watches of the same database.

        SOUND BECAUSE: a version that another watch has recorded is not initial for this watch. Two
        watches of one library would record each transaction twice.

        Returns:
            Whether there is another watch of the database, which also reads the log if this one
            does.

        Raises:
            IsolangError: another watch records the same transactions, or uses different versions.
        """
        here = self.transactions.where
        shares = False
        for other in others:
            there = other.transactions.where
            if there == here and other.library.name == self.library.name:
                raise IsolangError(
                    f"{self.library.name}: this database is already being watched (got {here} "
                    "twice, "
                    "expected one watch per database and library)"
                )
            if there != here and other._reads_log and self._reads_log:
                raise IsolangError(
                    f"{self.library.name}: only one server's log of versions can be read (got "
                    f"{here}, "
                    f"but another watch reads the log of {there}); hint: watch one of the "
                    "databases "
                    "without versions=True"
                )
            if there == here:
                if other._reads_log != self._reads_log:
                    raise IsolangError(
                        f"{self.library.name}: one database is watched both with and without "
                        "versions "
                        f"(got versions={self._reads_log}, expected "
                        f"versions={other._reads_log}, as "
                        f"{other.library.name} has)"
                    )
                self._versions = other._versions
                shares = True
        return shares

    def close(self, path: Path, into: Path | None) -> Path:
        """Write the history recorded so far, with predicate reads, and return its file.

        Conditions that cannot be recorded are counted as unseen from then on.

        Args:
            path: the file of the recorded history.
            into: the file to write if there are predicate reads; ``None`` if another watch also
                records, because predicate reads are then impossible.
        """
        return self._conditions.close(path, into, self._versions.before or 0)

    @property
    def condition_readers(self) -> int:
        """The number of transactions with conditions that may become predicate reads."""
        return self._conditions.readers

    @property
    def all_unseen(self) -> Unseen:
        """The counts of unrecorded activity, including the conditions left out by :meth:`close`."""
        every = Unseen()
        every.add(self.unseen)
        every.add(self._conditions.unresolved)
        return every

    def _connect_to_log(self) -> Any:
        return server.open_own_connection(*self._database)

    # --- statements ---

    def note_unrecorded(self, connection: Any, kind: str, text: str = "") -> None:
        """Count a call if its reads and writes cannot be recorded."""
        one = self.transactions.transaction_for_statement(connection)
        if one is not None:
            one.sent()
            one.tables.clear()
            one.unclear = True
        if self.transactions.is_watched(connection):
            self.unseen.note(kind, text, table=table_added_to(text))

    def record_many(
        self,
        each: Sequence[Sent],
        send: Callable[[], Any],
        hidden: Callable[[str], Steps],
    ) -> Steps:
        """Send one statement with several rows of values, and record its writes.

        Args:
            each: the statement with each row of values.
            send: the application's call.
            hidden: a function that sends the statement with a RETURNING clause for the given
                columns, and returns the rows of each execution.
        """
        connection, text = each[0].connection, each[0].text
        one = self.transactions.transaction_for_statement(connection)
        failed = one is not None and self.library.state(connection) == "failed"
        parsed: list[Statement] = []
        if one is not None and not failed:
            parsed = [self._parsed(sent) for sent in each]
        silent = bool(parsed) and all(
            found.plan.silent and len(found.plan.sources) == 1 for found in parsed
        )
        table = None
        if one is not None and silent:
            (table,) = yield from self._statements.tables(one, each[0], parsed[0])
        if one is None or table is None:
            if not (failed or silent):
                self.note_unrecorded(connection, "executemany", text)
            return (yield send)
        one.sent()
        try:
            found = yield from hidden(self._statements.writes.selected(parsed[0], table))
        except BaseException:
            self.transactions.note_interruption(connection)
            raise
        for sent, statement, answer in zip(each, parsed, found, strict=True):
            yield from self._statements.writes.hidden(one, sent, statement, table, answer)

    def statement(self, sent: Sent) -> Steps:
        """Send a statement of the application, and record its reads and writes."""
        connection = sent.connection
        statement = self._parsed(sent)
        kind, name = statement.plan.kind, statement.plan.name
        # COMMIT AND CHAIN begins a transaction whose end the watch would not notice.
        if kind in CONTROLS and (kind not in ("commit", "rollback") or name != "chain"):
            return (
                yield from self.transactions.send_control(connection, statement.plan, sent.send)
            )
        one = self.transactions.transaction_for_statement(connection)
        if one is None:
            return (yield from self._send_outside(sent, statement))
        if self.library.state(connection) == "failed":
            return (yield sent.send)
        return (yield from self._send_within(one, sent, statement))

    def _parsed(self, sent: Sent) -> Statement:
        literal = sent.literal()
        found = self._planner.parse(literal or sent.text)
        if literal or not sent.text:
            return found
        # If a value cannot be written as a literal, the statement's condition is unknown.
        return replace(found, plan=StatementPlan(kind="other", unseen=(SHAPES,)))

    def _send_outside(self, sent: Sent, statement: Statement) -> Steps:
        """Send a statement outside watched transactions. In autocommit mode, record it alone."""
        connection, text = sent.connection, sent.text
        own = connection in server.OWN_CONNECTIONS
        if (
            own
            or not self.transactions.is_watched(connection)
            or self._statements.is_quiet(statement)
        ):
            return (yield sent.send)
        if self.library.state(connection) != "idle" or self.library.is_pipelined(connection):
            self.unseen.note(OUTSIDE, text, table=table_added_to(text))
            return (yield sent.send)
        one = self.transactions.begin(connection)
        assert one is not None  # the connection is to the watched database
        one.alone = True
        self.unseen.note(AUTOCOMMIT, text)
        try:
            result = yield from self._send_within(one, sent, statement)
        except BaseException as error:
            if self.transactions.open(connection) is one:
                self.transactions.end(connection, error)
            raise
        if self.transactions.open(connection) is one:
            self.transactions.end(connection, None)
        return result

    def _send_within(self, one: OpenTransaction, sent: Sent, statement: Statement) -> Steps:
        try:
            return (yield from self._statements.record(one, sent, statement))
        except BaseException:
            self.transactions.note_interruption(sent.connection)
            raise
