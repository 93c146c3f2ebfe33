"""What a database has to offer to be tested: the two protocols of an adapter, and their extras.

``docs/adding-a-database.md`` leads through writing one.
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
"""Whether tables are still those of the run that has made them."""


class Level(Struct, frozen=True, kw_only=True):
    """An isolation level of a database.

    Attributes:
        name: what the database calls it, in lower case.
        claims: the specification that the database claims to satisfy with it.
        says: what the adapter does to get it: the SQL, the mode of the connection.
        promise: the sentence of the documentation that is judged, quoted; empty if the name of the
            level says it all.
        source: where the sentence is.
    """

    name: str
    claims: str
    says: str
    promise: str = ""
    source: str = ""


class Client(Protocol):
    """A connection, and the transactions of one session over it.

    Operations are called between ``begin`` and ``commit`` or ``rollback``, by one thread at a time.
    An exception means that the transaction cannot go on.
    """

    def begin(self, level: str) -> None:
        """Begin a transaction at a level of the target."""
        ...

    def read(self, key: str) -> Any:
        """Give the value of a row, ``None`` as loaded, a list, or ``DELETED`` if there is none."""
        ...

    def write(self, key: str, value: int) -> bool:
        """Update a row; false if there is none."""
        ...

    def append(self, key: str, value: int) -> bool:
        """Append to the list of a row; false if there is none."""
        ...

    def insert(self, key: str, value: int) -> None:
        """Insert a row."""
        ...

    def delete(self, key: str) -> bool:
        """Delete a row; false if there is none."""
        ...

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Give the rows with keys from ``low`` to ``high`` by one statement."""
        ...

    def select(self, low: int, high: int) -> dict[str, Any]:
        """Give the rows with values from ``low`` to ``high`` by one statement."""
        ...

    def change(self, low: int, high: int, value: int) -> list[str]:
        """Update the rows with values from ``low`` to ``high`` at once; give their keys."""
        ...

    def savepoint(self) -> None:
        """Set a savepoint."""
        ...

    def rollback_to_savepoint(self) -> None:
        """Undo what was done since the savepoint; the transaction goes on."""
        ...

    def commit(self) -> None:
        """Commit; raise ``RolledBack`` if the server rolled back and raised nothing."""
        ...

    def rollback(self) -> None:
        """Make sure that the transaction is never applied; raise if that is not certain."""
        ...

    def resolve(self) -> Outcome:
        """Find out what became of a transaction whose COMMIT ended in an unclear error."""
        ...

    def waits(self) -> bool | None:
        """Whether the statement that was sent waits for a transaction; ``None`` if nobody knows.

        Called by another thread than the one that has sent it.
        """
        ...

    def usable(self) -> bool:
        """Whether the connection can begin another transaction."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@runtime_checkable
class Swapping(Protocol):
    """A client whose database compares and sets by one statement."""

    def swap(self, key: str, expected: int | None, value: int) -> bool:
        """Write if the value is the expected one; false if it is not.

        It is in effect at once. From when it is sent until it is answered, ``rollback`` raises.
        """
        ...


@runtime_checkable
class ReportsLevel(Protocol):
    """A client whose database says at which level the open transaction runs."""

    def isolation(self) -> str:
        """Give the level, as the target names it; empty if the database does not say."""
        ...


@runtime_checkable
class Transacting(Protocol):
    """A client that is given whole transactions, and no single operations."""

    def transact(self, level: str, operations: Sequence[Recorded]) -> list[Any]:
        """Run a transaction; give the result of each operation, of writes anything.

        Raises:
            Exception: it has not committed, or nobody knows; ``classify`` tells.
        """
        ...


@runtime_checkable
class Accounting(Protocol):
    """A target whose database tells which versions were read and written, and in which order.

    Attributes:
        tells_versions: whether it is to tell; it is set before anything is started.
        ordered: whether the versions that its clients state are ordered as they are.
    """

    tells_versions: bool
    ordered: ClassVar[bool]

    def account(self, path: Path) -> tuple[str, ...]:
        """Put into a recorded history what the database knows besides, once no client is left.

        Args:
            path: of the history.

        Returns:
            What is worth knowing of that, one phrase each.

        Raises:
            TargetError: the database does not tell any more.
        """
        ...


class Target(Protocol):
    """A database to be tested.

    Attributes:
        name: of the database, for reports.
        address: as the user named it.
        tokens: whether transactions that write also write a token of their own, by which
            ``resolve`` finds out what became of them. Whoever writes it first decides: the
            transaction, or the client that asks, so that it can never commit.
        lists: the keys that hold lists; it is set before anything is started.
        levels: its isolation levels, the default first.
        mixes: the specification that judges its transactions where each is given a level of its
            own; empty where the library's do, ``None`` where they cannot choose.
        lacks: what it cannot do: ``range reads``, of keys and of values; ``savepoints``; clients in
            several ``processes``; ``rows`` that are inserted and deleted; ``conversations``, in
            which what is written depends on what was read.
    """

    name: ClassVar[str]
    levels: ClassVar[tuple[Level, ...]]
    lacks: ClassVar[frozenset[str]]
    mixes: str | None
    address: Address
    tokens: bool
    lists: frozenset[str]

    def start(self) -> None:
        """Start a server, where the target has one of its own, or connect once.

        Raises:
            TargetError: it cannot be reached; the message says what to do.
        """
        ...

    def version(self) -> str:
        """Name the database and its version, as it says itself."""
        ...

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        """Create the tables, and a row for each key: registers with nothing, lists empty.

        Raises:
            TargetError: a table is there already, or may not be created.
        """
        ...

    def connect(self) -> Client:
        """Open a connection for one session."""
        ...

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        """Say what an error of a client means for its transaction."""
        ...

    def statement(self, operation: str, key: str, value: object) -> str:
        """Give the statement that was sent for a recorded operation, for people."""
        ...

    def remove(self) -> None:
        """Remove what ``setup`` created; it may then be called again."""
        ...

    def clean(self) -> list[str]:
        """Remove what the ``setup`` of a killed run has left; it is not started. Give the names."""
        ...

    def close(self) -> None:
        """Remove what ``setup`` created, and stop what ``start`` started."""
        ...


@runtime_checkable
class Owning(Protocol):
    """A target that marks what it makes where others may remove it, and notices if they did.

    Attributes:
        owner: the run's name in the mark; empty until ``setup`` chooses one.
    """

    owner: str

    @property
    def shared(self) -> bool:
        """Whether others may be in the database."""
        ...

    def ownership(self, *, now: bool = False) -> Owned:
        """Return whether what ``setup`` made is still the target's own.

        Args:
            now: ask the database, instead of giving what is known.
        """
        ...


@runtime_checkable
class Serving(Protocol):
    """A target that starts a server of its own where the address names no host.

    Attributes:
        server: of its own; ``None`` before ``start``.
        proxied: whether its clients connect through a proxy; to be set before ``start``.
    """

    server: Server | None
    proxied: bool


@runtime_checkable
class Clustered(Protocol):
    """A target that may start several servers.

    Attributes:
        cluster: of its own; ``None`` before ``start``, and where there is one server.
        partitions: whether the network between its nodes can be cut.
    """

    cluster: Cluster | None
    partitions: bool


@runtime_checkable
class Promoting(Protocol):
    """A target whose standby can take the place of its server.

    Attributes:
        standby: whether there is to be one; to be set before ``start``.
    """

    standby: bool

    def promote(self, lag: Callable[[], object]) -> None:
        """Cut the standby off, kill the server when ``lag`` returns, and promote the standby."""
        ...


@runtime_checkable
class Replicated(Protocol):
    """A target that can start a standby beside its own server.

    Attributes:
        standby: whether to; to be set before ``start``.
    """

    standby: bool

    def connect_standby(self) -> Client:
        """Open a connection to the standby, over which everything but writing works."""
        ...
