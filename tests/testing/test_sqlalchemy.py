"""What goes through SQLAlchemy's Core, and through asyncio, is recorded at the driver."""

import asyncio
from pathlib import Path

import pytest
from support.watched import operations, predicate_reads

import isolang

sqlalchemy = pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")

from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, select  # noqa: E402
from sqlalchemy.exc import OperationalError  # noqa: E402
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column  # noqa: E402

account = Table(
    "account",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("name", String, unique=True),
    Column("balance", Integer),
)


class Base(DeclarativeBase):
    """The application's classes."""


class Account(Base):
    """The same table for the ORM."""

    __tablename__ = "account"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    balance: Mapped[int]


def deposit(connection, between=lambda: None, *, lock=False):
    """Core: a balance is read, and written with one more."""
    found = select(account.c.balance).where(account.c.name == "a")
    balance = connection.scalar(found.with_for_update() if lock else found)
    between()
    change = account.update().where(account.c.name == "a").values(balance=balance + 1)
    assert connection.execute(change).rowcount == 1


async def deposit_awaited(session, between=None, *, lock=False):
    """The ORM with asyncio."""
    found = select(Account).where(Account.name == "a")
    one = (await session.scalars(found.with_for_update() if lock else found)).one()
    if between is not None:
        await between()
    one.balance += 1
    await session.flush()


@pytest.fixture
def url(server):
    """One account is there."""
    engine = create_engine(server)
    account.metadata.drop_all(engine)
    account.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(account.insert().values(name="a", balance=0))
    engine.dispose()
    return server


def watched(isolation, url):
    """Watch the database of an engine."""
    return isolation.watch_psycopg(url.replace("+psycopg", ""))


def lost(isolation, *statements):
    """The text of a lost update, with the line of each statement in this file."""
    with pytest.raises(isolang.IsolationError, match="lost update") as error:
        isolation.assert_level("ser")
    text, lines = str(error.value), Path(__file__).read_text().splitlines()
    for statement in statements:
        number = next(n for n, line in enumerate(lines, 1) if statement in line)
        assert f"test_sqlalchemy.py:{number} " in text, text
    assert "site-packages" not in text


def test_a_lost_update_of_core(isolation, url):
    """At READ COMMITTED, by the lines of the read and of the write."""
    watch = watched(isolation, url)
    engine = create_engine(url)

    def another():
        with engine.begin() as connection:
            deposit(connection)

    with engine.begin() as connection:
        deposit(connection, another)
    engine.dispose()
    assert watch.unseen == {}
    lost(isolation, "balance = connection.scalar(", "assert connection.execute(change)")


def test_a_lost_update_of_asyncio(isolation, url):
    """Two tasks of one loop, each with its session."""

    async def main():
        engine = create_async_engine(url)
        both = asyncio.Barrier(2)

        async def one():
            async with AsyncSession(engine) as session, session.begin():
                await deposit_awaited(session, both.wait)

        await asyncio.gather(one(), one())
        await engine.dispose()

    watch = watched(isolation, url)
    asyncio.run(main())
    assert watch.unseen == {}
    lost(isolation, "one = (await session.scalars(", "await session.flush()")


@pytest.mark.parametrize("refreshed", [True, False])
def test_a_lock_on_an_object_that_is_loaded(isolation, url, refreshed):
    """The ORM keeps its stale attributes, and loses the update, unless it is told to refresh them.

    Both programs send the same statements, so the level is undecided until the test decides.
    """
    watch = watched(isolation, url)
    engine = create_engine(url)
    with Session(engine) as first, Session(engine) as second:
        both = [(session, session.get(Account, 1)) for session in (first, second)]
        for session, one in both:
            again = select(Account).where(Account.id == 1).with_for_update()
            session.scalars(again.execution_options(populate_existing=refreshed)).one()
            one.balance += 1
            session.commit()
        first.refresh(both[0][1])
        assert both[0][1].balance == (2 if refreshed else 1)
    engine.dispose()
    assert watch.unseen == {}
    with pytest.raises(isolang.UndecidedError, match=r"read\s+it\s+again\s+under a lock") as error:
        isolation.assert_level("ser")
    assert error.value.verdict.cause == "superseded reads"
    with pytest.raises(isolang.IsolationError, match="fractured read"):
        isolation.assert_level("ser", superseded_reads="count")
    (verdict,) = isolation.assert_level("ser", superseded_reads="ignore")
    assert any("1 read of 1 transaction" in said for said in verdict.history.ignored)


@pytest.mark.parametrize(
    ("level", "lock"), [("READ COMMITTED", True), ("REPEATABLE READ", False), ("SERIALIZABLE", 0)]
)
def test_correct_programs_of_core_are_not_accused(isolation, url, level, lock):
    """A lock, or retries of what the server refuses."""
    watch = watched(isolation, url)
    engine = create_engine(url, isolation_level=level)

    def one():
        while True:
            try:
                with engine.begin() as connection:
                    return deposit(connection, lock=lock)
            except OperationalError:
                continue

    isolation.concurrently(one, times=10, clients=3)
    with engine.connect() as connection:
        assert connection.scalar(select(account.c.balance).where(account.c.id == 1)) == 30
    engine.dispose()
    assert not watch.unseen.keys() - {"changes"}
    (verdict,) = isolation.assert_level("sser", allow_unseen={"changes"})
    assert verdict.history.counts()["committed"] >= 30


@pytest.mark.parametrize(("level", "lock"), [("READ COMMITTED", True), ("SERIALIZABLE", False)])
def test_correct_programs_of_asyncio_are_not_accused(isolation, url, level, lock):
    """Twelve tasks, five connections."""

    async def main():
        engine = create_async_engine(url, isolation_level=level, pool_size=5, max_overflow=0)

        async def one():
            while True:
                try:
                    async with AsyncSession(engine) as session, session.begin():
                        return await deposit_awaited(session, lock=lock)
                except OperationalError:
                    continue

        await asyncio.gather(*(one() for _ in range(12)))
        await engine.dispose()

    watch = watched(isolation, url)
    asyncio.run(main())
    assert not watch.unseen.keys() - {"changes"}
    (verdict,) = isolation.assert_level("sser", allow_unseen={"changes"})
    assert verdict.history.counts()["committed"] == 12


def test_rows_that_are_created_have_the_key_that_the_database_chose(isolation, url):
    """Of an INSERT with RETURNING; and a row that is deleted."""
    watch = watched(isolation, url)
    engine = create_engine(url)
    with engine.begin() as connection:
        key = connection.execute(account.insert().values(name="b", balance=1)).inserted_primary_key
        assert tuple(key) == (2,)
        connection.execute(account.delete().where(account.c.id == 1))
        assert connection.scalars(select(account.c.name)).all() == ["b"]
    engine.dispose()
    assert watch.unseen == {}
    (only,) = operations(isolation.history())
    assert [shown.partition(" {")[0] for shown in only] == [
        "w(account/2",
        "delete(account/1)",
        "r(account/2",
    ]
    assert len(predicate_reads(isolation.history())) == 1


def test_sessions_on_asyncpg(isolation, url):
    """Several rows at once too, and conditions; also behind a savepoint."""
    pytest.importorskip("asyncpg")
    watch = isolation.watch_asyncpg(url.replace("+psycopg", ""))

    async def main():
        engine = create_async_engine(url.replace("+psycopg", "+asyncpg"))
        async with AsyncSession(engine) as session, session.begin():
            async with session.begin_nested():
                await deposit_awaited(session)
            assert (await session.get(Account, 1)).balance == 1
            skipping = select(Account).where(Account.balance > 0).with_for_update(skip_locked=True)
            assert len((await session.scalars(skipping)).all()) == 1
            found = select(Account).where(Account.balance > 5)
            assert (await session.scalars(found)).all() == []
            assert await session.get(Account, 9) is None
        async with AsyncSession(engine) as session, session.begin():
            session.add_all([Account(name=name, balance=0) for name in "xyz"])
            await session.flush()
            for one in (await session.scalars(select(Account).where(Account.name != "a"))).all():
                one.balance = 7
        await engine.dispose()

    asyncio.run(main())
    assert watch.unseen == {}
    history = isolation.history()
    one, many = operations(history)
    assert one[:2] == ["r(account/1 {balance: 0})", "w(account/1 {balance: 0 → 1})"]
    assert many[:3] == [f"w(account/{n} {{balance: 0}})" for n in (2, 3, 4)]
    assert many[-3:] == [f"w(account/{n} {{balance: 0 → 7}})" for n in (2, 3, 4)]
    conditions = [text for _, text, _ in predicate_reads(history)]
    assert [text.partition(" :where ")[2] for text in conditions] == [
        "[:> :balance 5]}",
        "[:= :id 9]}",
        '[:!= :name "a"]}',
    ]
    isolation.assert_level("sser")
