"""Tracks the transactions on the connections observed by a watch."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from isolang.observe.closed import Trace
from isolang.observe.drivers.hooks import Steps
from isolang.observe.drivers.library import Library
from isolang.observe.drivers.observed import ObservedTransaction
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.plan import StatementPlan
from isolang.observe.unseen import Unseen
from isolang.run.outcome import RolledBack

if TYPE_CHECKING:
    from isolang.run.record.recorder import Recorder


CONTROLS: Final = ("begin", "commit", "rollback", "savepoint", "release", "back")
"""The kinds of statements that begin or end a transaction, or change its savepoints."""


class Lost(Exception):  # noqa: N818 - an end that was not seen, not a fault
    """Raised when the watch missed the end of a transaction, so the outcome is unknown."""


class OpenTransaction(ObservedTransaction):
    """A transaction of the application.

    Attributes:
        tables: for each table name looked up so far, the table, or the reason why its rows cannot
            be identified.
        level: the isolation level; empty until it is known.
    """

    def __init__(self, session: Hashable, recorder: Recorder, *, versions: bool) -> None:
        super().__init__(session, recorder, versions=versions)
        self.tables: dict[str, Table | str] = {}
        self.level = ""


class Transactions:
    """The open transactions of one watch.

    Attributes:
        library: the library that the connections belong to.
        where: the host, port and name of the watched database.
    """

    def __init__(
        self,
        library: Library,
        recorder: Recorder,
        unseen: Unseen,
        ended: Callable[[Trace], None],
        *,
        versions: bool,
    ) -> None:
        """Create an empty collection of transactions.

        Args:
            library: the library that the connections belong to.
            recorder: the recorder of the transactions.
            unseen: the watch's counts of unseen activity.
            ended: a function called with the trace of each ended transaction.
            versions: whether the history will also get versions from the database's log.
        """
        self.library = library
        self.where: tuple[Any, ...] = ()
        self._recorder, self._unseen, self._ended = recorder, unseen, ended
        self._versions = versions
        self._open: dict[Any, OpenTransaction] = {}
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._sessions = count()

    def is_watched(self, connection: Any) -> bool:
        """Return whether a connection is to the watched database."""
        return self.library.database_of(connection) == self.where

    def transaction_for_statement(self, connection: Any) -> OpenTransaction | None:
        """Return the transaction that the next statement on a connection belongs to.

        If no transaction is open and the library begins transactions by itself, begin one. Return
        ``None`` if the statement runs outside a transaction, or if the connection sends statements
        in a pipeline. In a pipeline, the open transaction is recorded with an unknown outcome.
        """
        one = self.current(connection)
        begins = one is None and self.library.begins_transaction(connection)
        if begins and self.library.state(connection) == "idle":
            one = self.begin(connection)
        if one is not None and self.library.is_pipelined(connection):
            self._unseen.note("pipelines")
            self.end(connection, Lost())
            return None
        return one

    def open(self, connection: Any) -> OpenTransaction | None:
        """Return a connection's open transaction, without asking the library for its state."""
        return self._open.get(connection)

    def current(self, connection: Any) -> OpenTransaction | None:
        """Return a connection's transaction; if it has ended unnoticed, end it."""
        one = self._open.get(connection)
        if one is not None and not one.alone and self.library.state(connection) == "idle":
            self.end(connection, Lost())
            return None
        return one

    def begin(self, connection: Any) -> OpenTransaction | None:
        """Begin a transaction. Return ``None`` if the connection is to another database."""
        if not self.is_watched(connection):
            self._unseen.note("databases", str(self.library.database_of(connection)))
            return None
        if connection not in self._numbers:
            self._numbers[connection] = next(self._sessions)
        one = self._open[connection] = OpenTransaction(
            (id(self), self._numbers[connection]), self._recorder, versions=self._versions
        )
        return one

    def end(self, connection: Any, error: BaseException | None) -> None:
        """End a transaction. Record a lost transaction with its writes and an unknown outcome."""
        one = self._open.pop(connection)
        if isinstance(error, Lost) and not one.committing:
            one.announce()
        self._ended(one.end(error))

    def note_interruption(self, connection: Any) -> None:
        """End the transaction if an exception has ended the transaction or the connection."""
        one = self._open.get(connection)
        going_on = one is None or one.alone or self.library.state(connection) in ("open", "failed")
        if not going_on:
            gone = not self.library.database_of(connection)
            self.end(connection, RolledBack() if gone else Lost())

    def send_end(self, connection: Any, *, commit: bool, send: Callable[[], Any]) -> Steps:
        """Send a call that ends a transaction, and record the outcome."""
        one = self.current(connection)
        if one is None:
            return (yield send)
        # At the COMMIT of a failed transaction, PostgreSQL rolls back without an error.
        commit = commit and self.library.state(connection) == "open"
        if commit:
            one.announce()
        try:
            result = yield send
        except BaseException as error:
            if connection in self._open:
                self.end(connection, error if commit else RolledBack())
            raise
        if connection not in self._open:
            return result
        if self.library.state(connection) in ("idle", "unknown"):
            commit = commit and not self.library.was_rolled_back(result)
            self.end(connection, None if commit else RolledBack())
        elif commit:  # the statement was sent in a pipeline
            self.end(connection, Lost())
        else:
            self.end(connection, RolledBack())
        return result

    def begin_block(
        self, connection: Any, savepoint: Callable[[], str], send: Callable[[], Any]
    ) -> Steps:
        """Send a call that begins a block: a transaction, or a savepoint within a transaction.

        Args:
            connection: the connection of the block.
            savepoint: a function that returns the savepoint's name once the block has begun.
            send: the call that starts the block.

        Returns:
            The result of the call, and whether it began a transaction.
        """
        one = self.current(connection)
        idle = self.library.state(connection) == "idle"
        result = yield send
        if idle:
            self.begin(connection)
        elif one is not None:
            one.savepoint(savepoint())
        return result, idle

    def end_block(
        self, connection: Any, savepoint: str, *, commit: bool, send: Callable[[], Any]
    ) -> Steps:
        """Send a call that ends the block of a savepoint."""
        result = yield send
        one = self.current(connection)
        if one is not None:
            one.sent()
            if not commit:
                one.roll_back_to(savepoint)
            one.release(savepoint)
        return result

    def closed(self, connection: Any) -> None:
        """Note that a connection is closed. A pending COMMIT then has an unknown outcome."""
        one = self._open.get(connection)
        if one is not None:
            self.end(connection, Lost() if one.committing else RolledBack())

    def send_control(self, connection: Any, plan: StatementPlan, send: Callable[[], Any]) -> Steps:
        """Send a statement that begins or ends a transaction, or changes its savepoints."""
        if plan.kind in ("commit", "rollback"):
            return (yield from self.send_end(connection, commit=plan.kind == "commit", send=send))
        one = self.current(connection)
        idle = self.library.state(connection) == "idle"
        result = yield send
        if idle and self.library.state(connection) == "open":
            one = self.begin(connection)
        if one is not None:
            one.sent()
        if one is not None and plan.kind == "savepoint":
            one.savepoint(plan.name)
        elif one is not None and plan.kind == "release":
            one.release(plan.name)
        elif one is not None and plan.kind == "back":
            one.roll_back_to(plan.name)
        return result
