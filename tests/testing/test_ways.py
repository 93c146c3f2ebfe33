"""Which connections a watch sees: those of before, those that go on after it, and those of others.

The libraries are those that are imported; what they send is the matter of other tests.
"""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from support.watched import operations, sources, transactions

import isolang
from isolang.errors import IsolangError
from isolang.history.not_seen import unseen_line
from isolang.observe.unseen import Unseen
from isolang.observe.ways.inside import InsideProxy
from isolang.observe.wire.address import ServerAddress
from isolang.run.targets import target_named
from isolang.testing.assertion import UndecidedError
from isolang.testing.isolation import Isolation

psycopg = pytest.importorskip("psycopg")

READ = "SELECT balance FROM account WHERE name = %s"
SET = "UPDATE account SET balance = %s WHERE name = %s"
SQLALCHEMY = pytest.mark.parametrize("driver", ["psycopg", "asyncpg", "psycopg2"])


@pytest.fixture
def again(tmp_path):
    """Another test, which records elsewhere."""
    isolation = Isolation(tmp_path / "again")
    yield isolation
    isolation.close()


# --- connections of before ---


@pytest.mark.parametrize("inside", [False, True])
def test_a_connection_of_before_is_counted(url, isolation, inside):
    """By the line of its statement, in a transaction or not; no verdict is valid."""
    with psycopg.connect(url) as before:
        if inside:
            before.execute(READ, ("a",)).fetchall()
        watch = isolation.watch_psycopg(url)
        before.execute(SET, (1, "a"))
        before.commit()
        with psycopg.connect(url) as connection:
            connection.execute(SET, (2, "b"))
    assert [*isolation.history().unseen] == ["outside"]
    assert watch.unseen == {"outside": 1}
    example = watch.unseen.examples["outside"]
    assert example.startswith(f"{SET}, ")
    number = example.rpartition("test_ways.py:")[2]
    line = open(__file__).read().splitlines()[int(number) - 1]  # noqa: SIM115
    assert line.strip() == 'before.execute(SET, (1, "a"))'
    with pytest.raises(UndecidedError, match=r"statements of\s+transactions whose begin was not"):
        isolation.assert_level("ser")
    isolation.assert_level("ser", allow_unseen={"outside"})


def test_a_row_that_a_connection_of_before_adds_is_harmful_if_it_may_be_read(url, isolation):
    """Recorded statements read its table; it is gone before the audit, which sees other rows."""
    with psycopg.connect(url) as before:
        isolation.watch_psycopg(url)
        before.execute("INSERT INTO account VALUES ('new', 1)")
        with psycopg.connect(url) as connection:
            connection.execute(READ, ("a",)).fetchall()
        before.rollback()
    assert [*isolation.history().unseen] == ["outside"]


def test_reads_of_a_connection_of_before_are_counted(url, isolation):
    """They leave no trace in the database."""
    with psycopg.connect(url) as before:
        watch = isolation.watch_psycopg(url)
        before.execute(READ, ("a",)).fetchall()
        with psycopg.connect(url) as connection:
            connection.execute(SET, (2, "b"))
    isolation.history()
    assert watch.unseen == {"outside": 1}
    with pytest.raises(UndecidedError):
        isolation.assert_level("ser")


@SQLALCHEMY
def test_an_engine_of_before_is_seen(url, isolation, driver):
    """A pool replaces its idle connections; one in a transaction is counted until it ends."""
    engine, run = an_engine(url, driver)
    text = pytest.importorskip("sqlalchemy").text

    def change(connection, number):
        connection.execute(text("UPDATE account SET balance = :n WHERE name = 'a'"), {"n": number})

    async def main():
        async with engine.begin() as idle, engine.begin() as other:
            await run(idle, change, 1)
            await run(other, lambda connection: connection.execute(text("SELECT 1")))
        async with engine.begin() as inside:
            await run(inside, change, 2)
            watch = isolation.watch(getattr(engine, "sync_engine", engine), registry())
            await run(inside, change, 3)
        for number in (4, 5):
            async with engine.begin() as seen:
                await run(seen, change, number)
        await engine.dispose()
        return watch

    watch = asyncio.run(main())
    # The version that they replace was not seen, so the row is another one in the history.
    changes = [[f"w(account/a#2 {{balance: {n}}})"] for n in (4, 5)]
    assert operations(isolation.history()) == changes
    assert watch.unseen["outside"] >= 1
    assert "test_ways.py:" in watch.unseen.examples["outside"]


class Awaited:
    """A synchronous engine as an asynchronous one."""

    def __init__(self, engine):
        self.sync_engine = engine

    def begin(self):
        """Begin a transaction."""
        return AwaitedBlock(self.sync_engine.begin())

    async def dispose(self):
        """Close all connections."""
        self.sync_engine.dispose()


class AwaitedBlock:
    """A block of a synchronous engine."""

    def __init__(self, block):
        self._block = block

    async def __aenter__(self):
        return self._block.__enter__()

    async def __aexit__(self, *error):
        return self._block.__exit__(*error)


def an_engine(url, driver, **options):
    """An engine to be awaited, and a function that runs another one with a connection."""
    pytest.importorskip(driver)
    sqlalchemy = pytest.importorskip("sqlalchemy")
    where = url.replace("postgresql:", f"postgresql+{driver}:")
    if driver == "asyncpg":
        from sqlalchemy.ext.asyncio import create_async_engine

        async def run(connection, function, *args):
            return await connection.run_sync(function, *args)

        return create_async_engine(where, **options), run

    async def call(connection, function, *args):
        return function(connection, *args)

    return Awaited(sqlalchemy.create_engine(where, **options)), call


def registry():
    """No classes."""
    from sqlalchemy.orm import registry

    return registry()


# --- after the watch ---


@SQLALCHEMY
def test_an_engine_goes_on_after_the_watch(url, isolation, again, driver):
    """Its connections and its prepared statements give the right rows; another watch sees it."""
    engine, run = an_engine(url, driver, pool_size=1, max_overflow=0)
    text = pytest.importorskip("sqlalchemy").text

    def read(connection):
        result = connection.execute(text("SELECT * FROM account ORDER BY name"))
        return list(result.keys()), [tuple(row) for row in result]

    def change(connection):
        query = "UPDATE account SET balance = balance + 1 WHERE name = 'a' RETURNING balance"
        return connection.execute(text(query)).scalar_one()

    async def calls(number):
        for _ in range(7):  # psycopg prepares a statement that it has sent five times
            async with engine.begin() as connection:
                names, rows = await run(connection, read)
                assert names == ["name", "balance"]
                assert dict(rows)["a"] == number
                number += 1
                assert await run(connection, change) == number
        return number

    async def main():
        below = engine.sync_engine
        watch = isolation.watch(below, registry())
        number = judged(await calls(10), isolation, watch)
        isolation.close()
        number = await calls(number)
        other = again.watch(below, registry())
        judged(await calls(number), again, other)
        await engine.dispose()

    def judged(number, isolation, watch):
        (verdict,) = isolation.assert_level("sser")
        assert len(operations(verdict.history)) == 7
        assert watch.unseen == {}
        return number

    asyncio.run(main())


def test_a_connection_goes_on_after_the_watch(url, isolation, again):
    """A cursor that it has named, its prepared statements, and its types."""
    isolation.watch_psycopg(url)
    with psycopg.connect(url, prepare_threshold=0) as connection:
        cursor = connection.cursor("named")
        cursor.execute("SELECT * FROM account ORDER BY name")
        assert cursor.fetchone() == ("a", 10)
        connection.execute(READ, ("b",))
        isolation.close()
        assert cursor.fetchall() == [("b", 10)]
        cursor = connection.execute(READ, ("b",))
        assert [column.name for column in cursor.description] == ["balance"]
        assert cursor.fetchall() == [(10,)]
        connection.commit()
        watch = again.watch_psycopg(url)
        connection.execute(SET, (1, "a"))  # it still goes through the first proxy
    again.history()
    assert watch.unseen["outside"] == 1


def test_a_history_is_complete_or_none(url, isolation):
    """After the watch there is no verdict on a part of what it saw."""
    isolation.watch_psycopg(url)
    for number in range(2):
        with psycopg.connect(url) as connection:
            connection.execute(SET, (number, "a"))
        if not number:
            isolation.history()
    isolation.close()
    with pytest.raises(IsolangError, match="the history is not complete"):
        isolation.assert_level("ser")


# --- several watches ---


def test_two_libraries_on_one_server(url, isolation):
    """They have one history, in which each sees what the other wrote."""
    asyncpg = pytest.importorskip("asyncpg")
    first, second = isolation.watch_psycopg(url), isolation.watch_asyncpg(url)

    async def main(balance):
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            assert await connection.fetchval(READ.replace("%s", "$1"), "a") == balance
            await connection.execute("UPDATE account SET balance = 12 WHERE name = 'a'")
        await connection.close()

    with psycopg.connect(url) as connection:
        ((stale,),) = connection.execute(READ, ("a",)).fetchall()
        asyncio.run(main(10))
        connection.execute(SET, (stale + 1, "a"))
    assert first.unseen == {}
    assert second.unseen == {}
    with pytest.raises(isolang.IsolationError, match="lost update") as error:
        isolation.assert_level("ser")
    assert str(error.value).count("test_ways.py:") == 4


@pytest.fixture
def elsewhere():
    """The URL of another server, with the same table."""
    target = target_named("postgres")
    try:
        target.start()
        where = f"postgresql://postgres@/postgres?host={target.server.folder}"
        with psycopg.connect(where) as connection:
            connection.execute("CREATE TABLE account (name text PRIMARY KEY, balance int)")
            connection.execute("INSERT INTO account VALUES ('a', 10), ('b', 10)")
        yield where
    finally:
        target.close()


def test_two_servers(url, isolation, elsewhere):
    """Each has its history; a connection goes to its own server."""
    pytest.importorskip("asyncpg")
    first, second = isolation.watch_psycopg(url), isolation.watch_asyncpg(elsewhere)

    async def main():
        import asyncpg

        connection = await asyncpg.connect(elsewhere)
        async with connection.transaction():
            await connection.execute("UPDATE account SET balance = 21 WHERE name = 'a'")
        await connection.close()

    with psycopg.connect(url) as connection:
        connection.execute(SET, (11, "a"))
    asyncio.run(main())
    here, there = isolation.assert_level("sser")
    assert operations(here.history) == [["w(account/a {balance: 11})"]]
    assert operations(there.history) == [["w(account/a {balance: 21})"]]
    assert first.unseen == {}
    assert second.unseen == {}
    with psycopg.connect(elsewhere) as connection:  # psycopg is watched on the other server
        assert connection.execute(READ, ("a",)).fetchall() == [(21,)]
    isolation.history()
    assert set(first.unseen) == {"databases"}


def test_two_databases_of_one_server(url, isolation):
    """One library is watched in both: each has its history, and its rows from the start."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS other")
        connection.execute("CREATE DATABASE other TEMPLATE template0")
    other = url.replace("/postgres?", "/other?")
    with psycopg.connect(other) as connection:
        connection.execute("CREATE TABLE account (name text PRIMARY KEY, balance int)")
        connection.execute("INSERT INTO account VALUES ('a', 20)")
    first, second = isolation.watch_psycopg(url), isolation.watch_psycopg(other)
    for where, balance in ((url, 11), (other, 21)):
        with psycopg.connect(where) as connection:
            connection.execute("SELECT name FROM account WHERE balance > 99").fetchall()
            connection.execute(SET, (balance, "a"))
    here, there = isolation.assert_level("sser")
    assert operations(here.history) == [["w(account/a {balance: 11})"]]
    assert operations(there.history) == [["w(account/a {balance: 21})"]]
    assert first.unseen == {}
    assert second.unseen == {}
    with pytest.raises(IsolangError, match="this database is already being watched"):
        isolation.watch_psycopg(other)


# --- processes and threads ---


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_connects_through_the_proxy_of_its_parent(url, isolation):
    """What it does is seen, without its lines."""
    watch = isolation.watch_psycopg(url)
    child = os.fork()
    if not child:
        try:
            with psycopg.connect(url) as connection:
                ((balance,),) = connection.execute(READ, ("a",)).fetchall()
                connection.execute(SET, (balance + 1, "a"))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    with psycopg.connect(url) as connection:
        assert connection.execute(READ, ("a",)).fetchone() == (11,)
    (verdict,) = isolation.assert_level("sser")
    assert [shown for _, shown in transactions(verdict.history)] == [
        ["r(account/a {balance: 10})", "w(account/a {balance: 10 → 11})"],
        ["r(account/a {balance: 11})"],
    ]
    assert len(sources(verdict.history)) == 1
    assert watch.unseen == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_does_not_wait_for_the_threads_of_its_parent(url, isolation):
    """Not for a lock that one of them holds, nor to name a line of an object."""
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from sqlalchemy.orm import Session, registry

    class Account:
        """A row."""

    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    columns = sqlalchemy.Column("name", sqlalchemy.String, primary_key=True)
    balance = sqlalchemy.Column("balance", sqlalchemy.Integer)
    mapped = registry()
    mapped.map_imperatively(Account, sqlalchemy.Table("account", mapped.metadata, columns, balance))
    watch = isolation.watch(engine, mapped)
    with watch.proxy.notes._lock:
        child = os.fork()
        if not child:
            signal.alarm(20)
            try:
                with Session(engine) as session, session.begin():
                    session.get(Account, "a").balance = 20
                os._exit(0)
            finally:
                os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    (changed,) = operations(isolation.history())
    assert changed == ["r(account/a {balance: 10})", "w(account/a {balance: 10 → 20})"]


@pytest.mark.parametrize("module", ["gevent", "eventlet"])
def test_threads_that_are_not_the_systems_are_refused(url, tmp_path, module):
    """Patched in, they would wait for the proxy that waits for them: the watch says why."""
    pytest.importorskip(module)
    program = f"""
        import {module}, sys
        {"from gevent import monkey; monkey.patch_all()" if module == "gevent" else ""}
        {"eventlet.monkey_patch()" if module == "eventlet" else ""}
        from isolang.errors import IsolangError
        from isolang.testing.isolation import Isolation
        try:
            Isolation({str(tmp_path)!r}).watch_psycopg({url!r})
        except IsolangError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert f"the proxy needs threads of the system (got those of {module})" in done.stdout
    assert "isocheck observe" in done.stdout


def test_a_history_is_never_without_what_happened_outside_the_proxy(tmp_path, monkeypatch):
    """Not even if the process is killed before it has written that to the file."""
    proxy = InsideProxy(ServerAddress(conninfo="", host="", port=1), tmp_path / "observed.edn")
    proxy.outside.note("copy", "COPY t FROM STDIN")

    def complete(into, accepted):
        into.write_text(unseen_line({}))
        return Unseen(), {}

    def killed(phrases):
        raise KeyboardInterrupt

    monkeypatch.setattr(proxy._observer, "complete", complete)
    monkeypatch.setattr(proxy, "transactions", lambda: 1)
    with monkeypatch.context() as context:
        context.setattr("isolang.observe.ways.inside.unseen_line", killed)
        with pytest.raises(KeyboardInterrupt):
            proxy.complete()
    assert not [*tmp_path.glob("history*.edn")]
    assert "COPY t FROM STDIN" in proxy.complete().read_text()
