"""Provides base classes for adapters, with defaults for a database without special features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from isolang.run.marks.ownership import Marks, Ownership
from isolang.run.outcome import Failure, Outcome, Phase, RolledBack
from isolang.run.target import NoDriverError, OwnershipState, TargetError

if TYPE_CHECKING:
    from isolang.history.statements import Lock
    from isolang.run.address import Address
    from isolang.run.operation import SelectWhere
    from isolang.run.servers.cluster import Cluster
    from isolang.run.servers.server import Server


def import_package(name: str, extra: str) -> Any:
    """Import the Python package that clients need to use a database.

    Raises:
        NoDriverError: the package is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise NoDriverError(
            f"{extra}: no driver is installed; pip install 'isolang[{extra}]'"
        ) from None


@contextmanager
def connection_errors(address: Address) -> Iterator[None]:
    """Return a context that turns any error while connecting into a one-line ``TargetError``.

    Raises:
        TargetError: the connection could not be opened.
    """
    try:
        yield
    except TargetError:
        raise
    except Exception as error:
        what = " ".join(str(error.args[-1] if error.args else error).split())
        hint = "; is it running?" if address.host else ""
        raise TargetError(f"{address}: cannot connect ({what}){hint}") from None


class BaseTarget:
    """The base class for a database that isocheck does not start and in which runs leave no data.

    Attributes:
        alone: whether the database exists only inside this process, so that no other process can
            ever use it, whatever the address is.
    """

    alone: ClassVar[bool] = False
    lacks: ClassVar[frozenset[str]] = frozenset()
    offers: frozenset[str] = frozenset()
    tokens = False
    lists: frozenset[str] = frozenset()
    mixes: str | None = None
    reports_versions = False

    def __init__(self, address: Address, prefix: str) -> None:
        self.address, self.prefix = address, prefix
        self._turns = count()

    def place(self, *, direct: bool) -> Address:
        """Return the address of the first node if ``direct``, else of the next node in turn."""
        return self.address.node(0 if direct else next(self._turns))

    @property
    def shared(self) -> bool:
        """Return whether others may use the database: true unless isocheck created it."""
        return not self.alone and bool(self.address.host or self.address.database)

    def start(self) -> None:
        """Do nothing, because isocheck starts no server."""

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        """Return ``maybe`` if an error at COMMIT leaves the outcome open, else ``aborted``."""
        refused = isinstance(error, RolledBack)
        return "aborted" if phase == "statement" or refused else "maybe"

    def remove(self) -> None:
        """Do nothing, because a run leaves no data behind."""

    def clean(self) -> list[str]:
        """Return an empty list, because even a killed run leaves no data in this database."""
        return []

    def hang_up(self) -> None:
        """Do nothing, because this target keeps no connection open."""

    def close(self) -> None:
        """Remove everything created by ``setup``."""
        self.remove()


class MarkedTarget(BaseTarget):
    """The base class for a database whose tables a run marks if other processes may use it.

    Attributes:
        owner: the name of the run in the mark; empty until ``setup`` chooses a name.
    """

    owner = ""
    _owned: Ownership | None = None

    def start_renewing_mark(self, connect: Callable[[], Marks]) -> None:
        """Start a thread that regularly renews the mark, to show others that this run is alive."""
        self._owned = Ownership(self.owner, connect)

    def ownership(self, *, now: bool = False) -> OwnershipState:
        """Return whether the tables still belong to this run; without a mark they always do."""
        if self._owned is None:
            return "ours"
        known = not now or self._owned.check()
        return "lost" if self._owned.lost else "ours" if known else "unknown"

    def release_mark(self) -> bool:
        """Stop renewing the mark, and return whether this run may still remove the tables.

        Raises:
            Exception: the mark cannot be read.
        """
        owned, self._owned = self._owned, None
        return owned is None or owned.end_with_check()

    def abandon_mark(self) -> None:
        """Stop renewing the mark, without checking whether the tables still belong to this run."""
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.end()


class ServerTarget(BaseTarget):
    """The base class for a database whose server isocheck starts if the address names no host.

    Attributes:
        server: the server started by isocheck; ``None`` if it started none.
        cluster: the started cluster, whose first node is ``server``; ``None`` if there is no
            cluster.
        partitions: whether isocheck can cut the network between the nodes.
        proxied: whether clients connect through a proxy.
        server_user: the user that runs the server, if isocheck runs as root and this user exists.
        client_package: the package that clients need, and the extra that installs it; empty if
            clients need no package.
    """

    name: ClassVar[str]
    client_package: ClassVar[tuple[str, str] | tuple[()]] = ()
    server_user: ClassVar[str] = ""
    server: Server | None = None
    cluster: Cluster | None = None
    partitions: ClassVar[bool] = False
    proxied = False

    @property
    def shared(self) -> bool:
        """Return whether other processes may use the server, because isocheck did not start it."""
        return bool(self.address.host)

    def start(self) -> None:
        """Start a server if the address names no host; then check that the server responds."""
        if not self.address.host:
            self._require_no_name()
            if self.client_package:
                import_package(*self.client_package)  # raise an error before a server is started
            from isolang.run.servers.server import Server

            self.server = Server(self.name, self.server_user)
            self.start_server(self.server)
            for node in (self.server,) if self.cluster is None else self.cluster.nodes:
                node.proxied = self.proxied
        super().start()

    def _require_no_name(self) -> None:
        """Check that the address names no database and no user: a new server has neither."""
        a = self.address
        if a.database or a.user:
            what = f"the database {a.database!r}" if a.database else f"the user {a.user!r}"
            name = f"{a.user}@" if a.user else ""
            raise TargetError(
                f"{a}: the URL has no host, so isocheck would start a new server, which does not "
                f"have {what}; hint: {a.kind}://{name}localhost/{a.database}, or {a.kind} alone"
            )

    def start_server(self, server: Server) -> None:
        """Start the server with the module of :mod:`isolang.run.servers` that supports it."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop the server and discard its data if isocheck started it; else remove the tables."""
        if self.server is None:
            super().close()
            return
        self.hang_up()  # a server waits for its clients before shutting down
        if self.cluster is not None:
            self.cluster.stop()
        self.server.stop()


class BaseClient:
    """The base class for a client without optional features whose connection stays usable.

    Attributes:
        row_version: the database's name for the version read or written last; ``None`` if the
            database reports none.
        installed: for each key written by the last COMMIT, the database's name for the new version.
        transaction_name: the database's name for the committed transaction; ``None`` if it is
            unknown.
        path: the number of the access path through which the next read finds its rows, or of the
            SQL form in which the next write is sent; 0 for the usual access path or form.
        lock: how the next read locks its row: for ``update``, for ``share``, or not at all if the
            string is empty.
    """

    path: int = 0
    lock: Lock = ""

    row_version: Any = None
    installed: Mapping[str, Any] = MappingProxyType({})
    transaction_name: Any = None

    def resolve(self) -> Outcome:
        """Return ``maybe``, because the database does not report how a transaction ended."""
        return "maybe"

    def waits(self) -> bool | None:
        """Return ``None``, because the database does not report whether a statement is blocked."""
        return None

    def usable(self) -> bool:
        """Return true, because the connection can always begin another transaction."""
        return True

    def close(self) -> None:
        """Do nothing, because there is nothing to close."""

    # The methods below are never called: isocheck skips workloads that need a feature which the
    # target ``lacks``.

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Raise an error, because the database cannot read ranges of keys."""
        raise NotImplementedError

    def select(self, low: int, high: int) -> dict[str, Any]:
        """Raise an error, because the database cannot read ranges of values."""
        raise NotImplementedError

    def within(self, low: int, high: int, first: str, last: str) -> dict[str, Any]:
        """Raise an error, because the database cannot combine a range of values and one of keys."""
        raise NotImplementedError

    def clear(self, key: str) -> bool:
        """Raise an error, because the database cannot set values to NULL."""
        raise NotImplementedError

    def where(self, where: SelectWhere) -> dict[str, Any]:
        """Raise an error, because the database cannot query for NULL."""
        raise NotImplementedError

    def change(self, low: int, high: int, value: int) -> list[str]:
        """Raise an error, because the database cannot update ranges of values."""
        raise NotImplementedError

    def take(self, low: int, high: int) -> dict[str, Any]:
        """Raise an error, because the database cannot skip locked rows."""
        raise NotImplementedError

    def insert_or_update(self, key: str, value: int, *, merge: bool = False) -> None:
        """Raise an error, because the database has no statement that inserts or updates."""
        raise NotImplementedError

    def insert_rows(self, rows: Sequence[tuple[str, int]]) -> None:
        """Raise an error, because the database cannot insert several rows in one statement."""
        raise NotImplementedError

    def remove(self, low: int, high: int) -> list[str]:
        """Raise an error, because the database cannot delete ranges of values."""
        raise NotImplementedError

    def savepoint(self) -> None:
        """Raise an error, because the database has no savepoints."""
        raise NotImplementedError

    def rollback_to_savepoint(self) -> None:
        """Raise an error, because the database has no savepoints."""
        raise NotImplementedError
