"""Defines the interface of an adapter: the protocols of targets and clients, and optional extras.

``docs/adding-a-database.md`` shows how to write an adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from isolang.errors import NoDriverError, TargetError
from isolang.run.operation import RecordedOperation, SelectWhere
from isolang.run.outcome import Failure, Outcome, Phase

if TYPE_CHECKING:
    from pathlib import Path

    from isolang.history.statements import Lock
    from isolang.run.address import Address
    from isolang.run.servers.cluster import Cluster
    from isolang.run.servers.server import Server

__all__ = [
    "Client",
    "Level",
    "MarksTables",
    "NoDriverError",
    "OptionalStatements",
    "OwnershipState",
    "ReportsLevel",
    "ReportsVersions",
    "RunsWholeTransactions",
    "StartsCluster",
    "StartsServer",
    "SupportsBackups",
    "SupportsMaintenance",
    "SupportsPromotion",
    "SupportsStandby",
    "SupportsSwap",
    "Target",
    "TargetError",
]


OwnershipState: TypeAlias = Literal["ours", "lost", "unknown"]
"""Whether the tables still belong to the run that created them, as far as the run knows."""


class Level(Struct, frozen=True, kw_only=True):
    """An isolation level of a database.

    Attributes:
        name: the database's name for the level, in lower case.
        claims: the specification that the database claims to satisfy at the level.
        says: the SQL statement or connection mode with which the adapter selects the level.
        promise: the sentence in the documentation that ``claims`` formalizes, quoted; empty if the
            level's name already states the promise.
        source: the page in the documentation that contains this sentence.
        inserts_over_deleted: whether, by design, an INSERT succeeds even if a concurrent
            transaction has deleted its key. By the definition of snapshot isolation such an INSERT
            is a lost update, so swarm rounds at the level play no transactions that provoke it.
    """

    name: str
    claims: str
    says: str
    promise: str = ""
    source: str = ""
    inserts_over_deleted: bool = False


class Client(Protocol):
    """The interface of a client: one connection that runs the transactions of one session.

    The methods for operations are called between ``begin`` and ``commit`` or ``rollback``, by one
    thread at a time. An exception means that the transaction cannot continue.
    """

    def begin(self, level: str) -> None:
        """Begin a transaction; ``level`` is the name of one of the target's levels."""
        ...

    def read(self, key: str) -> Any:
        """Return a row's value: a number, a list, ``None`` (initial) or ``DELETED`` (no row)."""
        ...

    def write(self, key: str, value: int) -> bool:
        """Update a row, and return true; if the row does not exist, return false."""
        ...

    def append(self, key: str, value: int) -> bool:
        """Append to the list in a row, and return true; if the row does not exist, return false."""
        ...

    def insert(self, key: str, value: int) -> None:
        """Insert a row; raise an error if the row already exists."""
        ...

    def delete(self, key: str) -> bool:
        """Delete a row, and return true; if the row does not exist, return false."""
        ...

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Return the rows with keys from ``low`` to ``high``, read by one statement."""
        ...

    def select(self, low: int, high: int) -> dict[str, Any]:
        """Return the rows with values from ``low`` to ``high``, read by one statement."""
        ...

    def change(self, low: int, high: int, value: int) -> list[str]:
        """Update all rows with values from ``low`` to ``high``, and return their keys."""
        ...

    def savepoint(self) -> None:
        """Set a savepoint."""
        ...

    def rollback_to_savepoint(self) -> None:
        """Undo all changes since the savepoint, but keep the transaction open."""
        ...

    def commit(self) -> None:
        """Commit the transaction; raise ``RolledBack`` if the server silently rolled it back."""
        ...

    def rollback(self) -> None:
        """Ensure that the transaction is never applied; raise an error if that is impossible."""
        ...

    def resolve(self) -> Outcome:
        """Ask the database for a transaction's outcome after an unclear error at COMMIT."""
        ...

    def waits(self) -> bool | None:
        """Return whether a statement is waiting for another transaction; ``None`` if unknown.

        This method is called by a thread other than that of the waiting statement.
        """
        ...

    def usable(self) -> bool:
        """Return whether the connection can begin another transaction."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@runtime_checkable
class SupportsSwap(Protocol):
    """A client whose database can compare and set a value in a single statement."""

    def swap(self, key: str, expected: int | None, value: int) -> bool:
        """Write a key and return true if its value is ``expected``; otherwise return false.

        The write takes effect immediately, before COMMIT. If its response never arrived,
        ``rollback`` raises an error, because the write cannot be undone.
        """
        ...


class OptionalStatements(Protocol):
    """A client with optional statements; programs use only those offered by the target.

    Each method belongs to a feature, and is called only if the target's ``offers`` contains this
    feature.

    Attributes:
        lock: with ``row locks``: how the next ``read`` locks its row until the transaction ends:
            ``update`` or ``share``; ``read`` then sets it to an empty string.
    """

    lock: Lock

    def clear(self, key: str) -> bool:
        """Set the value of a row to NULL, for ``nulls``; return false if there is no such row."""
        ...

    def where(self, where: SelectWhere) -> dict[str, Any]:
        """Return the rows in a key range whose values satisfy a condition, for ``nulls``.

        The value of a row with NULL is ``None``.
        """
        ...

    def within(self, low: int, high: int, first: str, last: str) -> dict[str, Any]:
        """Return the rows whose value and whose key are both in a range, for ``two ranges``."""
        ...

    def take(self, low: int, high: int) -> dict[str, Any]:
        """Lock and return a row with a value from ``low`` to ``high``, for ``skip locked``.

        Skip rows locked by other transactions; if no other row matches, return an empty dictionary.
        """
        ...

    def insert_or_update(self, key: str, value: int, *, merge: bool = False) -> None:
        """Update a row, or insert it if it is missing, for ``upsert`` or (with MERGE) ``merge``."""
        ...

    def insert_rows(self, rows: Sequence[tuple[str, int]]) -> None:
        """Insert several rows in one statement, for ``rows at once``; fail if one exists."""
        ...

    def remove(self, low: int, high: int) -> list[str]:
        """Delete the rows with values in a range in one statement, and return their keys."""
        ...


@runtime_checkable
class ReportsLevel(Protocol):
    """A client whose database reports the level of the open transaction."""

    def isolation(self) -> str:
        """Return the level's name; return an empty string if the database does not report it."""
        ...


@runtime_checkable
class RunsWholeTransactions(Protocol):
    """A client that runs a whole transaction in one call, instead of one call per operation."""

    def transact(self, level: str, operations: Sequence[RecordedOperation]) -> list[Any]:
        """Run a transaction, and return one result per operation; results of writes are ignored.

        Raises:
            Exception: the transaction aborted, or its outcome is unknown; ``classify`` decides
                which.
        """
        ...


@runtime_checkable
class ReportsVersions(Protocol):
    """A target whose database reports the versions that were read and written, and their order.

    Attributes:
        reports_versions: whether clients report versions; it must be set before ``start``.
        ordered: whether the reported versions are integers that grow in version order.
    """

    reports_versions: bool
    ordered: ClassVar[bool]

    def account(self, path: Path) -> tuple[str, ...]:
        """Add the database's version order to a recorded history, after all clients have ended.

        Args:
            path: the file that contains the history.

        Returns:
            Remarks for the user, each of them a phrase without a full stop.

        Raises:
            TargetError: the database no longer has the version order.
        """
        ...


class Target(Protocol):
    """The interface of a target: a database under test.

    Attributes:
        name: the name of the database in reports.
        address: the address, as written by the user.
        tokens: whether each transaction with writes also writes a token of its own, from which
            ``resolve`` determines its outcome. The first writer of the token decides: if it is the
            transaction itself, the transaction has committed; if it is the client that resolves it,
            the transaction can never commit.
        lists: the keys that hold lists; they must be set before ``start``.
        levels: the isolation levels of the database; the first level is the default.
        mixes: the specification against which to judge a run whose transactions have different
            levels; empty if a level of the library can judge such a run, ``None`` if transactions
            cannot choose their levels.
        lacks: the features that the database does not have: ``range reads``, by keys and by values;
            ``savepoints``; clients in several ``processes``; ``rows`` that are inserted and
            deleted; ``conversations``, in which writes depend on earlier reads.
        offers: the statements that the database has, but that programs can do without: ``row
            locks`` (FOR UPDATE and FOR SHARE), ``skip locked``, ``upsert``, ``merge``, ``rows at
            once`` (an INSERT of several rows, a DELETE of a range), ``two ranges`` (of values and
            keys, in one SELECT), ``nulls`` (rows whose value is NULL, and conditions on them), and
            ``cascades`` of foreign keys. If a database lacks such a statement, programs use a
            similar statement instead.
    """

    name: ClassVar[str]
    levels: ClassVar[tuple[Level, ...]]
    lacks: ClassVar[frozenset[str]]
    offers: frozenset[str]
    mixes: str | None
    address: Address
    tokens: bool
    lists: frozenset[str]

    def start(self) -> None:
        """Start a server if the address names no host; otherwise check that the server responds.

        Raises:
            TargetError: the database cannot be reached; the message says what to do.
        """
        ...

    def version(self) -> str:
        """Return the name and version reported by the database."""
        ...

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        """Create the tables with a row for each key: NULL for a register, an empty list for a list.

        Raises:
            TargetError: a table already exists, or the user may not create it.
        """
        ...

    def connect(self) -> Client:
        """Open a connection for one session."""
        ...

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        """Return ``aborted`` if a transaction with this error certainly aborted, else ``maybe``."""
        ...

    def statement(self, operation: str, key: str, value: object) -> str:
        """Return the statement sent by a client for a recorded operation, for explanations."""
        ...

    def remove(self) -> None:
        """Remove the tables or keys created by ``setup``, which may be called again later."""
        ...

    def clean(self) -> list[str]:
        """Remove the tables of killed runs, without ``start``; return the names of these tables."""
        ...

    def close(self) -> None:
        """Remove the tables or keys created by ``setup``; stop the server started by ``start``."""
        ...


@runtime_checkable
class MarksTables(Protocol):
    """A target that marks its tables, and notices if another run removes them.

    Attributes:
        owner: the name of the run in the mark; empty until ``setup`` chooses a name.
    """

    owner: str

    @property
    def shared(self) -> bool:
        """Return whether processes other than this run may use the database."""
        ...

    def ownership(self, *, now: bool = False) -> OwnershipState:
        """Return whether the tables created by ``setup`` still belong to this run.

        Args:
            now: whether to read the mark from the database now; if false, return the last known
                state.
        """
        ...


@runtime_checkable
class StartsServer(Protocol):
    """A target that starts its own server if the address names no host.

    Attributes:
        server: the started server; ``None`` before ``start``.
        proxied: whether clients connect through a proxy, so that faults can delay or cut
            connections; it must be set before ``start``.
    """

    server: Server | None
    proxied: bool


@runtime_checkable
class StartsCluster(Protocol):
    """A target that can start several servers as a cluster.

    Attributes:
        cluster: the started servers; ``None`` before ``start``, or if there is only one server.
        partitions: whether isocheck can cut the network between the nodes.
    """

    cluster: Cluster | None
    partitions: bool


@runtime_checkable
class SupportsMaintenance(Protocol):
    """A target whose tables can be maintained while clients use them.

    Attributes:
        chores: the maintenance statements by name of the chore, such as ``VACUUM``.
    """

    chores: ClassVar[Mapping[str, str]]

    def maintain(self, chore: str) -> None:
        """Perform a chore on a separate connection.

        Raises:
            Exception: the database did not perform the chore; this violates no level.
        """
        ...


@runtime_checkable
class SupportsBackups(Protocol):
    """A target whose tables can be copied while clients use them.

    Attributes:
        backups: for each method of copying the tables, such as ``VACUUM INTO``, its description.
    """

    backups: Mapping[str, str]

    def back_up(self, way: str, level: str) -> Sequence[tuple[str, Any]]:
        """Make a copy, open it, and return its rows: each key with its value or its list.

        Args:
            way: the name of the method of copying.
            level: the name of a level: the copy must contain rows that one read-only transaction at
                this level could have read.

        Raises:
            Exception: the database did not make the copy; this violates no level.
        """
        ...


@runtime_checkable
class SupportsPromotion(Protocol):
    """A target whose standby can be promoted to replace its primary server.

    Attributes:
        standby: whether to start a standby; it must be set before ``start``.
    """

    standby: bool

    def promote(self, lag: Callable[[], object]) -> None:
        """Disconnect the standby, call ``lag``, kill the primary, and promote the standby."""
        ...


@runtime_checkable
class SupportsStandby(Protocol):
    """A target that can start a standby for its primary server.

    Attributes:
        standby: whether to start a standby; it must be set before ``start``.
    """

    standby: bool

    def connect_standby(self) -> Client:
        """Open a connection to the standby, which accepts everything but writes."""
        ...
