"""Declares the four parts of the observer that differ between databases.

The observer, its sessions, the operations of statements, audits and histories use a database only
through these parts. :mod:`isolang.observe.postgres` has those of PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from isolang.observe.history.seen import RowVersion, SeenTransaction
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.evaluated import SessionSettings
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.rewriting import DatabaseFacts, Prepared

if TYPE_CHECKING:
    from isolang.run.drivers.postgres_log import LoggedChange


class Wire(Protocol):
    """One connection of an application: bytes to statements and answers.

    Attributes:
        cancels: whether the connection only requests that a statement be cancelled.
        broken: whether the server's messages can no longer be understood.
        call: the number of the application's call that the connection belongs to; 0 if unknown.
    """

    cancels: bool
    broken: bool
    call: int

    @property
    def is_waiting(self) -> bool:
        """Return whether the application's messages wait for the observer."""

    @property
    def is_idle(self) -> bool:
        """Return whether the server has answered everything in an observed session."""

    def executions(self) -> Sequence[ExecutedStatement]:
        """Return the statements that the server has not answered yet."""

    def executed(self) -> int:
        """Return how many statements the open transaction has executed; 0 if none is open."""

    def handle_client_bytes(self, data: bytes) -> None:
        """Handle bytes from the application."""

    def handle_server_bytes(self, data: bytes) -> None:
        """Handle bytes from the server."""

    def refuse(self, data: bytes, why: str) -> bool:
        """Tell the application that the server cannot be reached; return whether it knows now."""

    def lost(self) -> None:
        """Note that the connection has ended."""

    def oldest_event(self) -> int | None:
        """Return the position of the first event that has not been written yet."""

    def waiting_bytes(self) -> int:
        """Return the number of bytes from the application that wait for the observer."""

    def transaction_of(self, backend: int) -> SeenTransaction | None:
        """Return the open transaction, if the connection is that of a process of the server."""


class StatementRewriter(Protocol):
    """Rewrites the statements of a session.

    Attributes:
        tables: the tables used by the session, by name; ``None`` for a table that does not exist.
    """

    tables: dict[str, Table | None]

    def prepare(self, text: str, *, may_ask: bool) -> Prepared:
        """Return a text in the form to send to the server."""

    def forget(self) -> None:
        """Forget the tables, in case a name has a new meaning."""


class StatementDialect(Protocol):
    """The statements of a database: their tokens and kinds, and the columns to add."""

    def facts(self, connection: Any) -> DatabaseFacts:
        """Return the facts about a database that its sessions share."""

    def refresh(self, connection: Any, facts: DatabaseFacts) -> None:
        """Query again what definitions may have changed."""

    def tables(self, connection: Any) -> Iterator[Table]:
        """Yield all tables of a database."""

    def partitions(self, connection: Any) -> Iterator[tuple[str, str]]:
        """Yield each partition that has rows, and the table that it belongs to, with schemas."""

    def altered(self, connection: Any, tables: Iterable[int]) -> dict[int, int]:
        """Return the last transaction that altered each table, by the object identifiers."""

    def is_empty(self, connection: Any, table: Table) -> bool:
        """Return whether a table has no rows."""

    def lacks_parents(self, connection: Any, table: Table, tables: Sequence[Table]) -> bool:
        """Return whether some row lacks a parent that a foreign key to one of the tables names."""

    def rewriter(self, facts: DatabaseFacts) -> StatementRewriter:
        """Return the rewriter of a new session."""

    def parse_settings(
        self, text: bytes
    ) -> tuple[str, str, str, Table | None, SessionSettings, str]:
        """Return what a session's catalogue query says about a table and the session.

        Returns:
            The transaction's and the session's isolation level, a name, and its table; and the
            session's settings, and the beginning of its transaction in UTC.
        """


class StoredVersion(Struct, frozen=True, gc=False):
    """A row version, and the identifier of the table that the row is in."""

    table: int
    version: RowVersion


class ReportedWrite(Struct, frozen=True, gc=False):
    """The versions that a write of one row returned.

    Attributes:
        transaction: the database's number for the transaction.
        old: the replaced version; ``None`` for an INSERT, or if it is unknown.
        new: the new version; ``None`` for a deletion.
        row: the columns of the new version, for :meth:`Table.row`.
        image: the new version in binary format; ``None`` if it is unknown.
        by_number: whether the new version is named by the number of the transaction, which it has
            not if it was written behind a savepoint.
    """

    transaction: int
    old: StoredVersion | None
    new: StoredVersion | None
    row: Sequence[Any] | None
    image: bytes | None = None
    by_number: bool = False


class InitialSnapshot(Protocol):
    """The state of a database in which an observation began."""

    def is_older(self, number: str) -> bool:
        """Return whether a version was written before all transactions open at that time."""

    def contains(self, transaction: int) -> bool:
        """Return whether the snapshot contains a transaction."""


class VersionNames(Protocol):
    """Names the versions of rows, and finds them in tables."""

    def of_read(self, table: Table, reported: bytes, *, all_rows: bool) -> Iterable[StoredVersion]:
        """Yield the versions in the column added to a row; with ``all_rows``, to a total."""

    def of_write(self, table: Table, reported: bytes) -> ReportedWrite:
        """Return the versions in the column added to a write."""

    def writer(self, version: RowVersion) -> int:
        """Return the database's number for the transaction that wrote a version."""

    def snapshot(self, connection: Any) -> AbstractContextManager[InitialSnapshot]:
        """Read in one snapshot until the context manager ends."""

    def rows(
        self, connection: Any, table: Table, most: int, *, whole: bool
    ) -> list[tuple[RowVersion, Sequence[Any] | None, bytes | None]] | None:
        """Return the versions in a table, and with ``whole`` their columns and images.

        Return ``None`` if there are more than ``most``.

        Raises:
            IsolangError: the table cannot be read.
        """

    def present(self, connection: Any, table: Table, numbers: Iterable[str]) -> set[str]:
        """Return which of the numbered versions are in a table.

        Raises:
            IsolangError: the table cannot be read.
        """

    def limit_waiting(self, connection: Any, seconds: int) -> None:
        """Let no statement of a connection wait longer for a lock."""


class ChangeLog(Protocol):
    """The changes logged by the database since the log was opened."""

    def changes(self) -> Iterator[LoggedChange]:
        """Yield the changes since the last call, by transaction."""

    def is_writable(self) -> bool:
        """Return whether applications' connections can write marks into the log."""

    def flush(self) -> None:
        """Let the log contain all transactions whose COMMIT has been answered."""

    def close(self) -> None:
        """Stop reading the log."""


class ObservedDatabase(Struct, frozen=True, kw_only=True):
    """The parts of the observer for one kind of database.

    Attributes:
        wire: a function that creates the wire of a connection. Its arguments are the history, a
            function that returns the observation of a database, and the keyword arguments
            ``to_client`` and ``to_server``, functions that send bytes.
        log: a function that opens the log, from a function that connects and the name for messages.
    """

    wire: Callable[..., Wire]
    dialect: StatementDialect
    versions: VersionNames
    log: Callable[[Callable[[], Any], str], ChangeLog]
