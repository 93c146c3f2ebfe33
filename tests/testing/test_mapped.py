"""An application's transactions through an engine of SQLAlchemy, with the lines that assign."""

import asyncio
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from uuid import UUID

import pytest
from support.source_lines import assert_names_lines
from support.watched import names, operations, predicate_reads, sources, transactions

import isolang
from isolang.errors import IsolangError

sqlalchemy = pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")

from sqlalchemy import (  # noqa: E402
    DateTime,
    ForeignKey,
    Numeric,
    create_engine,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine  # noqa: E402
from sqlalchemy.orm import (  # noqa: E402
    DeclarativeBase,
    Mapped,
    Session,
    backref,
    joinedload,
    mapped_column,
    relationship,
    selectinload,
)


class Base(DeclarativeBase):
    """The application's classes."""


class Account(Base):
    """A row."""

    __tablename__ = "account"
    name: Mapped[str] = mapped_column(primary_key=True)
    balance: Mapped[int]


class Card(Base):
    """A row that another one owns."""

    __tablename__ = "card"
    id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[str] = mapped_column(unique=True)
    owner: Mapped[str | None] = mapped_column(ForeignKey("account.name"))
    account: Mapped[Account | None] = relationship(backref=backref("cards", passive_deletes="all"))


class Kind(Enum):
    """A kind of visits, which the database has by its name."""

    SHORT = 1


class Visit(Base):
    """A row whose key has several columns, of types that are not JSON's."""

    __tablename__ = "visit"
    ticket: Mapped[UUID] = mapped_column(primary_key=True)
    day: Mapped[date] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True), primary_key=True)
    fee: Mapped[Decimal] = mapped_column(Numeric(6, 2), primary_key=True)
    paid: Mapped[bool] = mapped_column(primary_key=True)
    kind: Mapped[Kind] = mapped_column(primary_key=True)
    stars: Mapped[int]


@pytest.fixture
def connect(server):
    """Engines of the application, by isolation level; two accounts are there."""
    engines = []

    def connect(level):
        engine = create_engine(server, isolation_level=level)
        engines.append(engine)
        Base.metadata.drop_all(engine)
        Base.metadata.create_all(engine)
        with Session(engine) as session, session.begin():
            session.add_all([Account(name=name, balance=10) for name in "ab"])
        return engine

    yield connect
    for engine in engines:
        engine.dispose()


def counters(engine):
    """Two read the balance, then both raise it and commit."""
    with Session(engine) as one, Session(engine) as two:
        first, second = one.get(Account, "a"), two.get(Account, "a")
        first.balance += 1
        one.commit()
        second.balance += 1
        two.commit()


def test_a_lost_update_is_seen(connect, isolation):
    """At READ COMMITTED the second counter overwrites the first one."""
    engine = connect("READ COMMITTED")
    watch = isolation.watch(engine, Base.registry)
    counters(engine)
    history = isolation.history()
    counted = ["r(account/a {balance: 10})", "w(account/a {balance: 10 → 11})"]
    assert list(transactions(history)) == [("committed", counted)] * 2
    assert watch.unseen == {}
    assert isolang.check(history, "pl-2").outcome == "valid"
    verdict = isolang.check(history, "si")
    assert verdict.violation.anomaly.startswith("lost update")
    with Session(engine) as session:
        assert session.get(Account, "a").balance == 11


def test_the_update_that_the_server_refuses_is_aborted(connect, isolation):
    """At REPEATABLE READ nothing is lost."""
    engine = connect("REPEATABLE READ")
    isolation.watch(engine, Base.registry)
    with pytest.raises(sqlalchemy.exc.OperationalError):
        counters(engine)
    assert [status for status, _ in transactions(isolation.history())] == ["committed", "aborted"]
    isolang.assert_level(isolation.history(), "strong-si")


@pytest.mark.parametrize(
    ("level", "outcomes"),
    [
        ("REPEATABLE READ", ["committed", "committed"]),
        ("SERIALIZABLE", ["committed", "aborted"]),
    ],
)
def test_write_skew(connect, isolation, level, outcomes):
    """Each empties the account that the other one has read."""
    engine = connect(level)
    isolation.watch(engine, Base.registry)
    with Session(engine) as one, Session(engine) as two:
        for session in (one, two):
            assert len(session.scalars(select(Account)).all()) == 2
        one.get(Account, "a").balance = 0
        two.get(Account, "b").balance = 0
        one.commit()
        try:
            two.commit()
        except sqlalchemy.exc.OperationalError:
            two.rollback()
    history = isolation.history()
    assert [status for status, _ in transactions(history)] == outcomes
    isolang.assert_level(history, "si")
    expected = "valid" if "aborted" in outcomes else "invalid"
    assert isolang.check(history, "ser").outcome == expected


def test_versions_name_their_writers(connect, isolation):
    """Reads, a row that is created, one that is deleted, and what a savepoint took back."""
    engine = connect("READ COMMITTED")
    watch = isolation.watch(engine, Base.registry)
    with Session(engine) as session, session.begin():
        session.add(Account(name="c", balance=1))
        session.flush()
        with session.begin_nested() as nested:
            session.get(Account, "a").balance = 5
            session.flush()
            nested.rollback()
        with session.begin_nested():
            session.get(Account, "b").balance = 6
    with Session(engine) as session, session.begin():
        assert session.get(Account, "a").balance == 10
        assert session.get(Account, "b").balance == 6
        session.delete(session.get(Account, "c"))
    first, second = operations(isolation.history())
    assert first == [
        "w(account/c {balance: 1, name: c})",
        "r(account/b {balance: 10})",
        "w(account/b {balance: 10 → 6})",
    ]
    assert second == [
        "r(account/a {balance: 10, name: a})",
        "r(account/b {balance: 6})",
        "r(account/c {balance: 1, name: c})",
        "delete(account/c)",
    ]
    assert watch.unseen == {}
    isolation.assert_level("sser")


def test_statements_of_all_kinds_are_seen(connect, isolation):
    """Core, text, bulk statements, sums, and several rows whose keys the database chooses."""
    engine = connect("REPEATABLE READ")
    watch = isolation.watch(engine, Base.registry)
    with engine.begin() as connection:
        connection.execute(text("update account set balance = 3 where name = 'a'"))
    with Session(engine) as session, session.begin():
        assert session.get(Account, "a").balance == 3
        assert session.scalar(select(func.sum(Account.balance))) == 13
        session.execute(update(Account).values(balance=4))
        session.execute(insert(Account), [{"name": "d", "balance": 1}])
        session.add_all([Card(number=str(n)) for n in range(3)])
        session.flush()
        assert session.get(Account, "b").balance == 4
    history = isolation.history()
    one, two = operations(history)
    assert names(one) == ["w(account/a"]
    written = sorted(name.split(" ")[0] for name in two if name.startswith("w("))
    rows = ("account/a", "account/b", "account/d", *(f"card/{n}" for n in (1, 2, 3)))
    assert written == [f"w({row}" for row in rows]
    assert len(predicate_reads(history)) == 2  # the sum and the UPDATE
    assert sources(history).count("session.add_all([Card(number=str(n)) for n in range(3)])") == 3
    assert watch.unseen == {}
    isolation.assert_level("sser")


def test_a_commit_that_rolls_back_is_no_commit(connect, isolation):
    """PostgreSQL answers ROLLBACK, and SQLAlchemy raises nothing."""
    engine = connect("READ COMMITTED")
    isolation.watch(engine, Base.registry)
    with Session(engine) as session:
        session.get(Account, "a").balance = 7
        session.flush()
        raw = session.connection().connection.dbapi_connection
        with pytest.raises(Exception, match="does not exist"):
            raw.execute("select no_such_column")
        session.commit()
    assert [status for status, _ in transactions(isolation.history())] == ["aborted"]


def test_functions_are_watched_while_they_run(connect, isolation):
    """Threads of an application that knows nothing of recording, judged together."""
    engine = connect("SERIALIZABLE")
    watch = isolation.watch(engine, Base.registry)

    def transfer():
        with Session(engine) as session, session.begin():
            one, two = session.get(Account, "a"), session.get(Account, "b")
            one.balance -= 1
            two.balance += 1

    def audit():
        with Session(engine) as session, session.begin():
            assert sum(account.balance for account in session.scalars(select(Account))) == 20

    refused = isolation.concurrently(
        transfer, audit, times=10, clients=2, ignoring=sqlalchemy.exc.OperationalError
    )
    (verdict,) = isolation.assert_level("ser")
    assert watch.unseen == {}
    counts = verdict.history.counts()
    assert (counts["committed"], counts["aborted"]) == (40 - refused, refused)


def test_other_engines_are_refused(isolation):
    """Only PostgreSQL has xmin."""
    engine = create_engine("sqlite://")
    with pytest.raises(IsolangError, match="expected one of postgresql"):
        isolation.watch(engine, Base.registry)


@pytest.mark.parametrize(
    ("level", "outcomes"),
    [
        ("READ COMMITTED", ["committed", "committed"]),
        ("REPEATABLE READ", ["committed", "aborted"]),
    ],
)
def test_the_engine_below_an_asynchronous_one(connect, server, isolation, level, outcomes):
    """A lost update of two tasks, or its refusal; each line that reads and assigns is named."""
    connect(level)

    async def counters(engine):
        async with AsyncSession(engine) as one, AsyncSession(engine) as two:
            first, second = await one.get(Account, "a"), await two.get(Account, "a")
            first.balance += 1
            await one.commit()
            second.balance += 1
            await two.commit()

    async def watched():
        # A pool of the two connections that the sessions hold: none is left for the watch.
        engine = create_async_engine(server, isolation_level=level, pool_size=2, max_overflow=0)
        watch = isolation.watch(engine.sync_engine, Base.registry)
        try:
            await counters(engine)
        finally:
            await engine.dispose()
        return watch

    if "aborted" in outcomes:
        with pytest.raises(sqlalchemy.exc.OperationalError):
            asyncio.run(watched())
    else:
        assert asyncio.run(watched()).unseen == {}
    history = isolation.history()
    # The engine's own first transaction asks for the server's version.
    seen = [(end, shown) for end, shown in transactions(history) if shown or end == "aborted"]
    assert [status for status, _ in seen] == outcomes
    assert seen[0][1] == ["r(account/a {balance: 10})", "w(account/a {balance: 10 → 11})"]
    lines = sources(history)
    read = 'first, second = await one.get(Account, "a"), await two.get(Account, "a")'
    assert lines[:2] == [read, "first.balance += 1"]
    verdict = isolang.check(history, "si")
    assert verdict.outcome == ("valid" if "aborted" in outcomes else "invalid")


def test_the_report_shows_where_each_operation_comes_from(connect, isolation):
    """The text names the lines that read and assign, not those of the libraries or the flush."""
    engine = connect("READ COMMITTED")
    isolation.watch(engine, Base.registry)
    counters(engine)
    text = str(isolang.check(isolation.history(), "si"))
    begins = ("first, second =", "first.balance += 1", "second.balance += 1")
    assert_names_lines(text, __file__, *begins)
    assert "(flush)" not in text
    assert "site-packages" not in text


def test_rows_are_shown_by_what_changed(connect, isolation):
    """Of objects that were loaded, that are new, and whose values the database computes."""
    engine = connect("READ COMMITTED")
    isolation.watch(engine, Base.registry)
    with Session(engine) as session:
        one = session.get(Account, "a")
        one.balance = 11
        session.flush()
        one.balance = 12
        session.add(Account(name="c", balance=3))
        session.flush()
        session.get(Account, "b").balance = Account.balance + 1
        session.commit()
    history = isolation.history()
    assert operations(history) == [
        [
            "r(account/a {balance: 10})",
            "w(account/a {balance: 10 → 11})",
            "w(account/a {balance: 11 → 12})",
            "w(account/c {balance: 3, name: c})",
            "r(account/b {balance: 10})",
            "w(account/b {balance: 10 → 11})",
        ]
    ]
    assert sources(history) == [
        'one = session.get(Account, "a")',
        "one.balance = 11",
        "one.balance = 12",
        'session.add(Account(name="c", balance=3))',
        'session.get(Account, "b").balance = Account.balance + 1',
        'session.get(Account, "b").balance = Account.balance + 1',
    ]


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg", "psycopg2"])
def test_lines_of_objects_with_keys_of_all_types(connect, server, isolation, driver):
    """Each of several objects that one flush writes has its own line."""
    pytest.importorskip(driver)
    connect("READ COMMITTED")
    zone = timezone(timedelta(hours=2))
    key = {
        "ticket": UUID(int=7),
        "day": date(2026, 1, 2),
        "at": datetime(2026, 1, 2, 3, 4, 5, 250000, zone),
        "fee": Decimal("1.50"),
        "paid": True,
        "kind": Kind.SHORT,
    }

    def change(session):
        one, two = Visit(stars=1, **key), Visit(stars=2, **{**key, "paid": False})
        session.add_all([one, two])
        session.flush()
        two.stars = 4
        one.stars = 3
        session.commit()

    async def main():
        engine = create_async_engine(server.replace("+psycopg", f"+{driver}"))
        isolation.watch(engine.sync_engine, Base.registry)
        async with AsyncSession(engine) as session:
            await session.run_sync(change)
        await engine.dispose()

    if driver == "psycopg2":
        engine = create_engine(server.replace("+psycopg", "+psycopg2"))
        isolation.watch(engine, Base.registry)
        with Session(engine) as session:
            change(session)
        engine.dispose()
    else:
        asyncio.run(main())
    created = 'one, two = Visit(stars=1, **key), Visit(stars=2, **{**key, "paid": False})'
    # With asyncpg, a key that is cast is a condition that needs a read, by the line that awaits.
    writes = [line for line in sources(isolation.history()) if "run_sync" not in line]
    assert sorted(writes) == [created, created, "one.stars = 3", "two.stars = 4"]


@pytest.mark.parametrize(
    ("asks", "conditions"),
    [
        (lambda s: s.scalars(select(Card).where(Card.owner == "b")).all() == [], 1),
        (lambda s: s.scalars(select(Card).where(Card.id > 1)).first() is None, 1),
        (lambda s: len(s.scalars(select(Account)).all()) == 2, 1),
        (lambda s: s.scalar(select(func.count()).where(Card.owner == "b")) == 0, 1),
        (lambda s: s.scalar(text("select count(*) from card")) == 1, 1),
        (lambda s: s.get(Card, 1), 0),
        (lambda s: s.get(Card, 1, with_for_update=True), 0),
        (lambda s: s.get(Card, 9) is None, 1),
        (lambda s: s.scalars(select(Card).where(Card.number == "n1")).one(), 0),
        (lambda s: not s.scalars(select(Card).where(Card.number == "x")).all(), 1),
        (lambda s: s.scalars(select(Card).where(Card.id == 1, Card.owner == "a")).one(), 0),
        (lambda s: not s.scalars(select(Card).where(Card.id == 1, Card.owner == "b")).all(), 1),
        (lambda s: s.scalars(select(Card).where(Card.id.in_([1]))).all(), 0),
        (lambda s: s.scalars(select(Card).where(Card.id.in_([1, 9]))).all(), 1),
        (lambda s: s.get(Card, 1).account, 0),
        (lambda s: s.get(Card, 1, options=[joinedload(Card.account)]).account, 0),
        (lambda s: s.get(Card, 1, options=[selectinload(Card.account)]).account, 0),
        (lambda s: s.get(Account, "a").cards, 1),
        (
            lambda s: s.scalars(
                select(Card).where(Card.owner == "a").limit(1).with_for_update(skip_locked=True)
            ).all(),
            0,
        ),
    ],
)
def test_what_a_condition_does_not_find(connect, isolation, asks, conditions):
    """Keys that are found, and what is joined by them, are reads; conditions predicate reads."""
    engine = connect("READ COMMITTED")
    with Session(engine) as session, session.begin():
        session.add(Card(id=1, number="n1", owner="a"))
    watch = isolation.watch(engine, Base.registry)
    with Session(engine) as session:
        assert asks(session)
        session.commit()
    history = isolation.history()
    assert len(predicate_reads(history)) == conditions
    assert set(sources(history)) <= {"assert asks(session)"} or "lambda" in sources(history)[0]
    assert watch.unseen == {}


def test_a_join_that_finds_several_rows(connect, isolation):
    """Its rows are read, and conditions say that there are no others."""
    engine = connect("READ COMMITTED")
    with Session(engine) as session, session.begin():
        session.add_all([Card(id=n, number=f"n{n}", owner="a") for n in (1, 2)])
    watch = isolation.watch(engine, Base.registry)
    with Session(engine) as session:
        one = session.get(Account, "a", options=[joinedload(Account.cards)])
        assert len(one.cards) == 2
        session.commit()
    history = isolation.history()
    (only,) = operations(history)
    assert watch.unseen == {}
    assert {*names(only)} >= {"r(account/a", "r(card/1", "r(card/2"}
    assert len(predicate_reads(history)) == 2


RACES = {
    "at most two": lambda s: s.scalar(select(func.count()).where(Card.owner == "a")) < 2,
    "the first": lambda s: (
        s.scalars(select(Card).where(Card.owner == "a").limit(1)).first() is None
    ),
    "nobody yet": lambda s: not s.scalar(select(select(Card).where(Card.owner == "a").exists())),
}


@pytest.mark.parametrize("asks", RACES)
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_races_of_conditions(connect, server, isolation, asks, level, driver):
    """Two look first, and then add a row: found at REPEATABLE READ, and refused above."""
    connect(level)

    def add(session):
        if RACES[asks](session):
            session.add(Card(number=str(id(session)), owner="a"))

    async def race(engine):
        async with AsyncSession(engine) as one, AsyncSession(engine) as two:
            for session in (one, two):
                await session.run_sync(add)
            await one.commit()
            await two.commit()

    async def watched():
        engine = create_async_engine(server.replace("psycopg", driver), isolation_level=level)
        isolation.watch(engine.sync_engine, Base.registry)
        try:
            await race(engine)
        finally:
            await engine.dispose()

    if level == "SERIALIZABLE":
        with pytest.raises(sqlalchemy.exc.DBAPIError):
            asyncio.run(watched())
        assert isolation.assert_level("ser")
    else:
        asyncio.run(watched())
        isolation.assert_level("si")
        with pytest.raises(isolang.IsolationError, match="predicate write skew"):
            isolation.assert_level("ser")
    assert isolation.unseen() == {}


@pytest.mark.parametrize(
    ("level", "lock"), [("READ COMMITTED", True), ("REPEATABLE READ", False), ("SERIALIZABLE", 0)]
)
def test_who_is_refused_is_evidence(connect, isolation, level, lock):
    """The losers of a right booking roll back; they saw, or missed, who won."""
    engine = connect(level)
    watch = isolation.watch(engine, Base.registry)

    def book():
        with Session(engine) as session, session.begin():
            account = session.get(Account, "a", with_for_update=bool(lock))
            if account.balance != 10:
                raise LookupError("taken")
            account.balance = 11

    refused = (LookupError, sqlalchemy.exc.OperationalError)
    assert isolation.concurrently(book, times=1, clients=3, ignoring=refused) == 2
    assert watch.unseen == {}
    (verdict,) = isolation.assert_level("ser")
    assert verdict.history.counts()["committed"] == 1
    assert not verdict.nothing_observed
    assert not isolation.judged[0].nothing_observed


def test_who_is_refused_and_alone_is_no_evidence(connect, isolation):
    """Nobody else wrote what it read."""
    engine = connect("SERIALIZABLE")
    isolation.watch(engine, Base.registry)
    with Session(engine) as session:
        session.get(Account, "a").balance = 3
        session.commit()
        session.get(Account, "a")
        session.get(Account, "b")
        session.rollback()
    (verdict,) = isolation.assert_level("ser")
    assert verdict.nothing_observed
