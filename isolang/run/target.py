"""Defines the interface of an adapter: the protocols of targets and clients, and optional extras.

``docs/adding-a-database.md`` shows how to write an adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from isolang.errors import NoDriverError, TargetError
from isolang.run.operation import Recorded
from isolang.run.outcome import Failure, Outcome, Phase

if TYPE_CHECKING:
    from pathlib import Path

    from isolang.run.address import Address
    from isolang.run.servers.cluster import Cluster
    from isolang.run.servers.server import Server

__all__ = [
    "Accounting",
    "Client",
    "Clustered",
    "Level",
    "NoDriverError",
    "Owned",
    "Owning",
    "Promoting",
    "Replicated",
    "ReportsLevel",
    "Serving",
    "Swapping",
    "Target",
    "TargetError",
    "Transacting",
]


Owned: TypeAlias = Literal["ours", "lost", "unknown"]
"""The state of ownership: whether tables still belong to the run that created them."""


class Level(Struct, frozen=True, kw_only=True):
    """An isolation level of a database.

    Attributes:
        name: the database's name of the level, in lower case.
        claims: the specification that the database claims to satisfy at the level.
        says: the way in which the adapter selects the level: the SQL, or the mode of the
            connection.
        promise: the quoted sentence of the documentation that ``claims`` formalizes; empty if the
            level's name is enough.
        source: the place of that sentence in the documentation.
    """

    name: str
    claims: str
    says: str
    promise: str = ""
    source: str = ""


class Client(Protocol):
    """A connection that runs the transactions of one session.

    Operations are called between ``begin`` and ``commit`` or ``rollback``, by one thread at a time.
    An exception means that the transaction cannot continue.
    """

    def begin(self, level: str) -> None:
        """Begin a transaction at a level of the target."""
        ...

    def read(self, key: str) -> Any:
        """Return the value of a row: ``None`` as loaded, a list, or ``DELETED`` for no row."""
        ...

    def write(self, key: str, value: int) -> bool:
        """Update a row; return false if the row does not exist."""
        ...

    def append(self, key: str, value: int) -> bool:
        """Append to the list of a row; return false if the row does not exist."""
        ...

    def insert(self, key: str, value: int) -> None:
        """Insert a row."""
        ...

    def delete(self, key: str) -> bool:
        """Delete a row; return false if the row does not exist."""
        ...

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Return the rows with keys from ``low`` to ``high``, read by one statement."""
        ...

    def select(self, low: int, high: int) -> dict[str, Any]:
        """Return the rows with values from ``low`` to ``high``, read by one statement."""
        ...

    def change(self, low: int, high: int, value: int) -> list[str]:
        """Update the rows with values from ``low`` to ``high`` at once, and return their keys."""
        ...

    def savepoint(self) -> None:
        """Set a savepoint."""
        ...

    def rollback_to_savepoint(self) -> None:
        """Undo all changes since the savepoint, and keep the transaction open."""
        ...

    def commit(self) -> None:
        """Commit; raise ``RolledBack`` if the server rolled back without an error."""
        ...

    def rollback(self) -> None:
        """Make sure that the transaction is never applied, or raise an error."""
        ...

    def resolve(self) -> Outcome:
        """Return the outcome of a transaction whose COMMIT ended in an unclear error."""
        ...

    def waits(self) -> bool | None:
        """Return whether the statement waits for a transaction; ``None`` if that is unknown.

        The caller is a different thread than the one that sent the statement.
        """
        ...

    def usable(self) -> bool:
        """Return whether the connection can begin another transaction."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@runtime_checkable
class Swapping(Protocol):
    """A client whose database can compare and set by one statement."""

    def swap(self, key: str, expected: int | None, value: int) -> bool:
        """Write a key if its value is the expected one; return false if it is not.

        The write takes effect at once. Between request and response, ``rollback`` raises an error.
        """
        ...


@runtime_checkable
class ReportsLevel(Protocol):
    """A client whose database reports the level of the open transaction."""

    def isolation(self) -> str:
        """Return the target's name of the level; empty if the database does not report it."""
        ...


@runtime_checkable
class Transacting(Protocol):
    """A client that runs whole transactions, not single operations."""

    def transact(self, level: str, operations: Sequence[Recorded]) -> list[Any]:
        """Run a transaction; return the result of each operation (any value for a write).

        Raises:
            Exception: the transaction aborted, or its outcome is unknown; ``classify`` decides
                which.
        """
        ...


@runtime_checkable
class Accounting(Protocol):
    """A target whose database reports the versions that were read and written, and their order.

    Attributes:
        tells_versions: whether to report the versions; it must be set before ``start``.
        ordered: whether the versions that its clients report are integers in version order.
    """

    tells_versions: bool
    ordered: ClassVar[bool]

    def account(self, path: Path) -> tuple[str, ...]:
        """Add to a recorded history what the database knows, after all clients have ended.

        Args:
            path: the file of the history.

        Returns:
            Remarks for the user, one phrase each.

        Raises:
            TargetError: the database has lost this information.
        """
        ...


class Target(Protocol):
    """A database to be tested.

    Attributes:
        name: the name of the database in reports.
        address: the address that the user wrote.
        tokens: whether a transaction that writes also writes its own token, by which ``resolve``
            finds its outcome. The first writer of the token decides: either the transaction, or the
            client that resolves it, after which the transaction can never commit.
        lists: the keys that hold lists; they must be set before ``start``.
        levels: the isolation levels of the database, the default first.
        mixes: the specification by which to judge a run whose transactions have different levels;
            empty if a level of the library does that, ``None`` if a transaction cannot choose its
            level.
        lacks: the missing features: ``range reads``, of keys and of values; ``savepoints``; clients
            in several ``processes``; ``rows`` that are inserted and deleted; ``conversations``,
            whose writes depend on what they read.
    """

    name: ClassVar[str]
    levels: ClassVar[tuple[Level, ...]]
    lacks: ClassVar[frozenset[str]]
    mixes: str | None
    address: Address
    tokens: bool
    lists: frozenset[str]

    def start(self) -> None:
        """Start a server if the address names none; otherwise connect once.

        Raises:
            TargetError: the database cannot be reached; the message says what to do.
        """
        ...

    def version(self) -> str:
        """Return the database's name and version, as it reports them."""
        ...

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        """Create the tables, and a row for each key: NULL in a register, an empty list.

        Raises:
            TargetError: a table exists already, or may not be created.
        """
        ...

    def connect(self) -> Client:
        """Open a connection for one session."""
        ...

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        """Return what an error of a client means for its transaction."""
        ...

    def statement(self, operation: str, key: str, value: object) -> str:
        """Return the statement that the client sent for a recorded operation, to show it."""
        ...

    def remove(self) -> None:
        """Remove what ``setup`` created, so that ``setup`` can be called again."""
        ...

    def clean(self) -> list[str]:
        """Remove what killed runs have left, without ``start``; return the removed names."""
        ...

    def close(self) -> None:
        """Remove what ``setup`` created, and stop what ``start`` started."""
        ...


@runtime_checkable
class Owning(Protocol):
    """A target that marks its tables if other runs may remove them, and notices if they do.

    Attributes:
        owner: the run's name in the mark; empty until ``setup`` chooses one.
    """

    owner: str

    @property
    def shared(self) -> bool:
        """Return whether other processes may use the database."""
        ...

    def ownership(self, *, now: bool = False) -> Owned:
        """Return whether the tables that ``setup`` created still belong to this run.

        Args:
            now: whether to read the mark now, instead of returning the last known state.
        """
        ...


@runtime_checkable
class Serving(Protocol):
    """A target that starts a server if the address names no host.

    Attributes:
        server: the started server; ``None`` before ``start``.
        proxied: whether clients connect through a proxy; it must be set before ``start``.
    """

    server: Server | None
    proxied: bool


@runtime_checkable
class Clustered(Protocol):
    """A target that may start several servers.

    Attributes:
        cluster: the started servers; ``None`` before ``start``, and if there is only one server.
        partitions: whether the network between its nodes can be cut.
    """

    cluster: Cluster | None
    partitions: bool


@runtime_checkable
class Promoting(Protocol):
    """A target whose standby can replace its primary server.

    Attributes:
        standby: whether to start a standby; it must be set before ``start``.
    """

    standby: bool

    def promote(self, lag: Callable[[], object]) -> None:
        """Disconnect the standby, kill the server when ``lag`` returns, and promote the standby."""
        ...


@runtime_checkable
class Replicated(Protocol):
    """A target that can start a standby of its server.

    Attributes:
        standby: whether to start a standby; it must be set before ``start``.
    """

    standby: bool

    def connect_standby(self) -> Client:
        """Open a connection to the standby, which supports everything except writes."""
        ...
