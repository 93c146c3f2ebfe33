"""What tests of watched applications share: an embedded PostgreSQL, and where they record."""

from functools import partial

import pytest

from isolang.observe.ways import inside
from isolang.run.targets import target_named
from isolang.testing.isolation import Isolation


@pytest.fixture(scope="module")
def embedded(request):
    """The folder of an embedded PostgreSQL; with ``LOGS_ROWS`` it logs which rows are changed."""
    target = target_named("postgres")
    target.reports_versions = getattr(request.module, "LOGS_ROWS", False)
    try:
        target.start()
        yield target.server.folder
    finally:
        target.close()


@pytest.fixture
def url(embedded):
    """A database with two accounts, by its URL."""
    import psycopg

    where = f"postgresql://postgres@/postgres?host={embedded}"
    with psycopg.connect(where) as connection:
        connection.execute("DROP TABLE IF EXISTS account, nokey")
        connection.execute("CREATE TABLE account (name text PRIMARY KEY, balance int)")
        connection.execute("INSERT INTO account VALUES ('a', 10), ('b', 10)")
    return where


@pytest.fixture
def server(embedded):
    """The URL of the database for SQLAlchemy."""
    return f"postgresql+psycopg://postgres@/postgres?host={embedded}"


@pytest.fixture
def server_on_trial():
    """Whether commit times excuse no unseen read, by which tests of what is seen would pass."""
    return True


@pytest.fixture
def isolation(tmp_path, monkeypatch, server_on_trial):
    """Where the test records."""
    observer = partial(inside.Observer, server_on_trial=server_on_trial)
    monkeypatch.setattr(inside, "Observer", observer)
    one = Isolation(tmp_path)
    yield one
    one.close()
