"""What adapters share: the answers of a database that has nothing special to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from isolang.run.marks.ownership import Marks, Ownership
from isolang.run.outcome import Failure, Outcome, Phase, RolledBack
from isolang.run.target import NoDriverError, Owned, TargetError

if TYPE_CHECKING:
    from isolang.run.address import Address
    from isolang.run.servers.cluster import Cluster
    from isolang.run.servers.server import Server


def package(name: str, extra: str) -> Any:
    """Import the package that a database is spoken to with.

    Args:
        name: its name.
        extra: of ours, that installs it.

    Raises:
        NoDriverError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise NoDriverError(f"{extra}: no driver; pip install 'isolang[{extra}]'") from None


@contextmanager
def connecting(address: Address) -> Iterator[None]:
    """Say in a line why there is no connection.

    Raises:
        TargetError: whatever was raised.
    """
    try:
        yield
    except TargetError:
        raise
    except Exception as error:
        what = " ".join(str(error.args[-1] if error.args else error).split())
        hint = "; is it running?" if address.host else ""
        raise TargetError(f"{address}: no connection ({what}){hint}") from None


class BaseTarget:
    """A database that needs no start and leaves nothing behind.

    Attributes:
        alone: whether no other process can be in its database, whatever its address is.
    """

    alone: ClassVar[bool] = False
    lacks: ClassVar[frozenset[str]] = frozenset()
    tokens = False
    lists: frozenset[str] = frozenset()
    mixes: str | None = None
    tells_versions = False

    def __init__(self, address: Address, prefix: str) -> None:
        self.address, self.prefix = address, prefix
        self._turns = count()

    def place(self, *, direct: bool) -> Address:
        """Where to connect: clients are spread over the nodes, others come to the first."""
        return self.address.node(0 if direct else next(self._turns))

    @property
    def shared(self) -> bool:
        """Whether others may be in the database: it is no server and no file of our own."""
        return not self.alone and bool(self.address.host or self.address.database)

    def start(self) -> None:
        """Start nothing."""

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        """Say that COMMIT was refused only where its answer said so."""
        refused = isinstance(error, RolledBack)
        return "aborted" if phase == "statement" or refused else "maybe"

    def remove(self) -> None:
        """Remove nothing."""

    def clean(self) -> list[str]:
        """Remove nothing, as no run can have left anything."""
        return []

    def hang_up(self) -> None:
        """End no connection of our own, as there is none."""

    def close(self) -> None:
        """Remove what was made."""
        self.remove()


class Marked(BaseTarget):
    """A database in which a run leaves a mark, where others may be in it.

    Attributes:
        owner: the run's name in the mark; empty until ``setup`` chooses one.
    """

    owner = ""
    _owned: Ownership | None = None

    def own(self, connect: Callable[[], Marks]) -> None:
        """Keep a sign of life in the mark that this run has left.

        Args:
            connect: opens a connection to the mark that nobody else uses.
        """
        self._owned = Ownership(self.owner, connect)

    def ownership(self, *, now: bool = False) -> Owned:
        """Return whether what was made is still our own; of what nobody else can reach, it is."""
        if self._owned is None:
            return "ours"
        known = not now or self._owned.check()
        return "lost" if self._owned.lost else "ours" if known else "unknown"

    def disown(self) -> bool:
        """Give no sign of life any more; false if what was made is not ours to remove.

        Raises:
            Exception: nobody knows.
        """
        owned, self._owned = self._owned, None
        return owned is None or owned.end_with_a_look()

    def forsake(self) -> None:
        """Give no sign of life any more, and ask for nothing."""
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.end()


class Served(BaseTarget):
    """A database whose server is started here if the address names no host.

    Attributes:
        server: of our own, or ``None``.
        cluster: of our own, whose first node is the server; or ``None``.
        partitions: whether its network can be cut.
        proxied: whether clients connect through a proxy.
        runs_as: the user of our own server, if we are root and there is such a user.
        spoken_by: the package that its clients need, and the extra that installs it; empty for
            none.
    """

    name: ClassVar[str]
    spoken_by: ClassVar[tuple[str, str] | tuple[()]] = ()
    runs_as: ClassVar[str] = ""
    server: Server | None = None
    cluster: Cluster | None = None
    partitions: ClassVar[bool] = False
    proxied = False

    @property
    def shared(self) -> bool:
        """Whether others may be in the database: its server is not our own."""
        return bool(self.address.host)

    def start(self) -> None:
        """Start the server if there is to be one, and connect once."""
        if not self.address.host:
            self._require_no_name()
            if self.spoken_by:
                package(*self.spoken_by)  # before a server is started that nobody can speak to
            from isolang.run.servers.server import Server

            self.server = Server(self.name, self.runs_as)
            self.start_server(self.server)
            for node in (self.server,) if self.cluster is None else self.cluster.nodes:
                node.proxied = self.proxied
        super().start()

    def _require_no_name(self) -> None:
        """Refuse to start a server of our own where the user means one that runs.

        Raises:
            TargetError: a database or a user is named.
        """
        a = self.address
        if a.database or a.user:
            what = f"the database {a.database!r}" if a.database else f"the user {a.user!r}"
            name = f"{a.user}@" if a.user else ""
            raise TargetError(
                f"{a}: no host, so that a server of our own would be started, which does not have "
                f"{what}; hint: {a.kind}://{name}localhost/{a.database}, or {a.kind} alone"
            )

    def start_server(self, server: Server) -> None:
        """Start a server of our own, by :mod:`isolang.run.servers`."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop the server, with all that is in it; else remove what was made."""
        if self.server is None:
            super().close()
            return
        self.hang_up()  # a server that ends politely waits for its clients
        if self.cluster is not None:
            self.cluster.stop()
        self.server.stop()


class BaseClient:
    """A connection that is always usable, knows nothing of the others, and cannot be asked.

    Attributes:
        row_version: what the database calls the version that was read or written last, where it
            tells.
        installed: likewise of the versions that the last COMMIT has made, by key.
        transaction_name: what the database calls the transaction that has committed.
    """

    row_version: Any = None
    installed: Mapping[str, Any] = MappingProxyType({})
    transaction_name: Any = None

    def resolve(self) -> Outcome:
        """Say that nobody knows what became of a transaction."""
        return "maybe"

    def waits(self) -> bool | None:
        """Say that nobody knows whether a statement waits for another transaction."""
        return None

    def usable(self) -> bool:
        """Say that the connection can begin another transaction."""
        return True

    def close(self) -> None:
        """Close nothing."""

    # What the target ``lacks``: no workload that needs it is played.

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Refuse range reads."""
        raise NotImplementedError

    def select(self, low: int, high: int) -> dict[str, Any]:
        """Refuse range reads."""
        raise NotImplementedError

    def change(self, low: int, high: int, value: int) -> list[str]:
        """Refuse range reads."""
        raise NotImplementedError

    def savepoint(self) -> None:
        """Refuse savepoints."""
        raise NotImplementedError

    def rollback_to_savepoint(self) -> None:
        """Refuse savepoints."""
        raise NotImplementedError
