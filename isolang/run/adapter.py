"""Provides the base classes of adapters, with defaults for a database without special features."""

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
    """Import the client package of a database.

    Args:
        name: the name of the package.
        extra: the extra of isolang that installs the package.

    Raises:
        NoDriverError: the package is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise NoDriverError(f"{extra}: no driver; pip install 'isolang[{extra}]'") from None


@contextmanager
def connecting(address: Address) -> Iterator[None]:
    """Turn any error of a connection attempt into a one-line error with its reason.

    Raises:
        TargetError: the attempt failed.
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
    """A database that isocheck does not start, and in which a run leaves no data.

    Attributes:
        alone: whether no other process can use the database, whatever its address is.
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
        """Return the address to connect to: for clients each node in turn, otherwise the first."""
        return self.address.node(0 if direct else next(self._turns))

    @property
    def shared(self) -> bool:
        """Return whether isocheck did not create the database, so that others may use it."""
        return not self.alone and bool(self.address.host or self.address.database)

    def start(self) -> None:
        """Do nothing, because isocheck starts no server."""

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        """Return ``maybe`` for an error at COMMIT, unless COMMIT rolled back; else ``aborted``."""
        refused = isinstance(error, RolledBack)
        return "aborted" if phase == "statement" or refused else "maybe"

    def remove(self) -> None:
        """Do nothing, because a run leaves no data."""

    def clean(self) -> list[str]:
        """Return an empty list, because no run can have left anything."""
        return []

    def hang_up(self) -> None:
        """Do nothing, because the target has no open connection."""

    def close(self) -> None:
        """Remove what ``setup`` created."""
        self.remove()


class Marked(BaseTarget):
    """A database in which a run leaves a mark if other processes may use it.

    Attributes:
        owner: the run's name in the mark; empty until ``setup`` chooses one.
    """

    owner = ""
    _owned: Ownership | None = None

    def own(self, connect: Callable[[], Marks]) -> None:
        """Start a thread that keeps a sign of life in the mark of this run.

        Args:
            connect: a function that opens a connection to the mark for this thread.
        """
        self._owned = Ownership(self.owner, connect)

    def ownership(self, *, now: bool = False) -> Owned:
        """Return whether the tables still belong to this run; without a mark they do."""
        if self._owned is None:
            return "ours"
        known = not now or self._owned.check()
        return "lost" if self._owned.lost else "ours" if known else "unknown"

    def disown(self) -> bool:
        """End the sign of life; return whether this run may still remove the tables.

        Raises:
            Exception: the mark cannot be read.
        """
        owned, self._owned = self._owned, None
        return owned is None or owned.end_with_a_look()

    def forsake(self) -> None:
        """End the sign of life without reading the mark."""
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.end()


class Served(BaseTarget):
    """A database whose server isocheck starts if the address names no host.

    Attributes:
        server: the server that isocheck started, or ``None`` if there is none.
        cluster: the started cluster, whose first node is ``server``, or ``None`` if there is none.
        partitions: whether the network between nodes can be cut.
        proxied: whether clients connect through a proxy.
        runs_as: the user that runs the started server, if isocheck runs as root and that user
            exists.
        spoken_by: the package that clients need, and the extra that installs it; empty if clients
            need no package.
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
        """Return whether isocheck did not start the server, so that others may use it."""
        return bool(self.address.host)

    def start(self) -> None:
        """Start the server if the address names no host, and connect once."""
        if not self.address.host:
            self._require_no_name()
            if self.spoken_by:
                package(*self.spoken_by)  # raises an error before a server starts in vain
            from isolang.run.servers.server import Server

            self.server = Server(self.name, self.runs_as)
            self.start_server(self.server)
            for node in (self.server,) if self.cluster is None else self.cluster.nodes:
                node.proxied = self.proxied
        super().start()

    def _require_no_name(self) -> None:
        """Check that the address does not name a part of a server that already runs.

        Raises:
            TargetError: the address names a database or a user.
        """
        a = self.address
        if a.database or a.user:
            what = f"the database {a.database!r}" if a.database else f"the user {a.user!r}"
            name = f"{a.user}@" if a.user else ""
            raise TargetError(
                f"{a}: no host, so isocheck would start a server, which does not have "
                f"{what}; hint: {a.kind}://{name}localhost/{a.database}, or {a.kind} alone"
            )

    def start_server(self, server: Server) -> None:
        """Start the server, by :mod:`isolang.run.servers`."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop a started server and discard its data; otherwise remove what ``setup`` created."""
        if self.server is None:
            super().close()
            return
        self.hang_up()  # a server that shuts down waits for its clients
        if self.cluster is not None:
            self.cluster.stop()
        self.server.stop()


class BaseClient:
    """A connection that is always usable and has no optional feature.

    Attributes:
        row_version: the database's name of the last version that was read or written; ``None`` if
            the database reports none.
        installed: the database's names of the versions that the last COMMIT created, by key.
        transaction_name: the database's name of the committed transaction; ``None`` if unknown.
    """

    row_version: Any = None
    installed: Mapping[str, Any] = MappingProxyType({})
    transaction_name: Any = None

    def resolve(self) -> Outcome:
        """Return ``maybe``, because the outcome of the transaction cannot be found out."""
        return "maybe"

    def waits(self) -> bool | None:
        """Return ``None``, because it is unknown whether a statement waits for a transaction."""
        return None

    def usable(self) -> bool:
        """Return true, because the connection can begin another transaction."""
        return True

    def close(self) -> None:
        """Do nothing, because there is nothing to close."""

    # isocheck plays no workload that needs a feature that the target ``lacks``.

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Raise an error, because range reads are not supported."""
        raise NotImplementedError

    def select(self, low: int, high: int) -> dict[str, Any]:
        """Raise an error, because range reads are not supported."""
        raise NotImplementedError

    def change(self, low: int, high: int, value: int) -> list[str]:
        """Raise an error, because range updates are not supported."""
        raise NotImplementedError

    def savepoint(self) -> None:
        """Raise an error, because savepoints are not supported."""
        raise NotImplementedError

    def rollback_to_savepoint(self) -> None:
        """Raise an error, because savepoints are not supported."""
        raise NotImplementedError
