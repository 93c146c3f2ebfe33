"""What adapters share: the answers of a database that has nothing special to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from isolang.run.outcome import Failure, Outcome, Phase, RolledBack
from isolang.run.target import TargetError

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
        TargetError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise TargetError(f"{extra}: no driver; pip install 'isolang[{extra}]'") from None


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
    """A database that needs no start and leaves nothing behind."""

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


class Served(BaseTarget):
    """A database whose server is started here if the address names no host.

    Attributes:
        server: of our own, or ``None``.
        cluster: of our own, whose first node is the server; or ``None``.
        partitions: whether its network can be cut.
        proxied: whether clients connect through a proxy.
        runs_as: the user of our own server, if we are root and there is such a user.
    """

    name: ClassVar[str]
    runs_as: ClassVar[str] = ""
    server: Server | None = None
    cluster: Cluster | None = None
    partitions: ClassVar[bool] = False
    proxied = False

    def start(self) -> None:
        """Start the server if there is to be one, and connect once."""
        if not self.address.host:
            from isolang.run.servers.server import Server

            self.server = Server(self.name, self.runs_as)
            self.start_server(self.server)
            for node in (self.server,) if self.cluster is None else self.cluster.nodes:
                node.proxied = self.proxied
        super().start()

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
