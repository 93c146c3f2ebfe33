"""What tests of observers share: an embedded PostgreSQL, where they record, and a proxy."""

import psycopg
import pytest
from support.mariadb import MariaDB
from testing.conftest import embedded, isolation  # noqa: F401 - fixtures

import isolang
from isolang.observe.observer import Observer
from isolang.observe.unseen import HARMFUL_KINDS, kind_of
from isolang.observe.wire.address import ServerAddress
from isolang.run.targets import target_named


@pytest.fixture(scope="session")
def mariadb():
    """A MariaDB server with a binary log, for all tests of a worker."""
    with MariaDB() as started:
        yield started


@pytest.fixture(scope="module")
def server():
    """The folder of the socket of an embedded PostgreSQL."""
    target = target_named("postgres")
    try:
        target.start()
        yield target.server.folder
    finally:
        target.close()


class Observed:
    """A proxy before the server, and the history that it writes.

    Commit times excuse no unseen read, so that a test of what is seen does not pass by them.
    """

    def __init__(self, folder, path, most_rows, *, server_on_trial=True, **more):
        self.folder, self.path, self._most = folder, path, most_rows
        self._more = {"server_on_trial": server_on_trial, **more}
        self.observer = None
        self.unseen = {}

    def direct(self, *statements):
        """Run statements past the proxy."""
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    @property
    def _conninfo(self):
        return f"host={self.folder} user=postgres dbname=postgres"

    def start(self):
        """Begin to observe."""
        where = ServerAddress(
            conninfo=self._conninfo, host=self.folder, port=5432, database="postgres"
        )
        self.observer = Observer(
            where, self.path, listen=("127.0.0.1", 0), most_rows=self._most, **self._more
        )
        self.observer.start()
        return self

    def conninfo(self):
        """ServerAddress to connect to the proxy."""
        where = f"host=127.0.0.1 port={self.observer.port} sslmode=disable"
        return f"{where} user=postgres dbname=postgres"

    def connect(self, level=None, **more):
        """Connect to the proxy."""
        connection = psycopg.connect(self.conninfo(), **more)
        if level is not None:
            connection.isolation_level = getattr(psycopg.IsolationLevel, level)
        return connection

    def stop(self):
        """End the observation; return what was not seen, without what is harmless."""
        if self.observer is not None:
            unseen = self.observer.stop()
            self.unseen = {kind: n for kind, n in unseen.items() if kind_of(kind) in HARMFUL_KINDS}
            self.observer = None
        return self.unseen

    def check(self, spec):
        """Judge what was recorded, as if that were all."""
        return isolang.check(isolang.load_history(self.path, allow_unseen=HARMFUL_KINDS), spec)

    def verdict(self, spec):
        """The word of the verdict."""
        return type(self.check(spec)).__name__.lower()


@pytest.fixture(scope="module")
def logging():
    """The folder of the socket of a server whose log tells which rows were changed."""
    target = target_named("postgres")
    target.reports_versions = True
    try:
        target.start()
        yield target.server.folder
    finally:
        target.close()


@pytest.fixture
def most_rows():
    """The most rows of a table to read at the start."""
    return 1000


@pytest.fixture
def server_on_trial():
    """Whether commit times excuse no unseen read, as for tests of watches."""
    return True


@pytest.fixture
def observed(server, tmp_path, most_rows, server_on_trial):
    """A proxy that has not begun yet."""
    proxy = Observed(server, tmp_path / "observed.edn", most_rows, server_on_trial=server_on_trial)
    yield proxy
    proxy.stop()
