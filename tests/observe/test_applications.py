"""Races of conditions in applications, through every library; mended ones are seen whole."""

import asyncio
from datetime import date

import psycopg
import pytest
from support.watched import operations

import isolang

asyncpg = pytest.importorskip("asyncpg")
pytest.importorskip("sqlalchemy")

from sqlalchemy import create_engine, func, select, update  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column  # noqa: E402

TABLES = """
DROP TABLE IF EXISTS room, booking, job;
CREATE TABLE room (id int PRIMARY KEY, name text);
CREATE TABLE booking (
  id serial PRIMARY KEY, room int REFERENCES room, start date, stop date, guest varchar(40)
);
CREATE TABLE job (id int PRIMARY KEY, state text);
INSERT INTO room VALUES (1, 'blue');
INSERT INTO booking (room, start, stop, guest) SELECT 1, day, day, 'old'
  FROM generate_series('2026-01-01'::date, '2026-01-04', '1 day') AS day;
INSERT INTO job SELECT i, 'queued' FROM generate_series(1, 6) AS i;
"""
FROM, TO = date(2027, 1, 3), date(2027, 1, 8)


class Base(DeclarativeBase):
    """The classes of the application."""


class Room(Base):
    """What is booked."""

    __tablename__ = "room"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Booking(Base):
    """Of one room, for some days."""

    __tablename__ = "booking"
    id: Mapped[int] = mapped_column(primary_key=True)
    room: Mapped[int]
    start: Mapped[date]
    stop: Mapped[date]
    guest: Mapped[str]


class Job(Base):
    """Of a queue."""

    __tablename__ = "job"
    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str]


class ThroughSqlAlchemy:
    """The application's statements, as its ORM sends them."""

    watch = "watch_psycopg"

    def __init__(self, url):
        self.engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        self.session = Session(self.engine)

    def lock(self):
        self.session.get(Room, 1, with_for_update=True)

    def advise(self):
        self.session.execute(select(func.pg_advisory_xact_lock(7)))

    def clashes(self):
        return self.session.scalars(
            select(Booking).where(Booking.room == 1, Booking.start < TO, Booking.stop > FROM)
        ).first()

    def full(self):
        count = select(func.count()).select_from(Booking).where(Booking.room == 1)
        return self.session.scalar(count) >= 5

    def named(self):
        return self.session.scalar(select(Booking.id).where(Booking.guest == "ann").limit(1))

    def add(self):
        self.session.add(Booking(room=1, start=FROM, stop=TO, guest="ann"))
        self.session.flush()

    def next_job(self, *, skip):
        query = select(Job).where(Job.state == "queued").order_by(Job.id).limit(1)
        self.job = self.session.scalars(query.with_for_update(skip_locked=True) if skip else query)
        self.job = self.job.one()

    def take(self):
        self.session.execute(update(Job).where(Job.id == self.job.id).values(state="taken"))

    def commit(self):
        self.session.commit()
        self.session.close()
        self.engine.dispose()


class ThroughPsycopg:
    """The application's statements in SQL."""

    watch = "watch_psycopg"

    def __init__(self, url):
        self.connection = psycopg.connect(url)

    def ask(self, query, *values):
        cursor = self.connection.execute(query, values)
        return cursor.fetchone() if cursor.description else None

    def lock(self):
        self.ask("SELECT name FROM room WHERE id = %s FOR UPDATE", 1)

    def advise(self):
        self.ask("SELECT pg_advisory_xact_lock(7)")

    def clashes(self):
        return self.ask(
            "SELECT * FROM booking WHERE room = %s AND start < %s AND stop > %s", 1, TO, FROM
        )

    def full(self):
        return self.ask("SELECT count(*) FROM booking WHERE room = %s", 1)[0] >= 5

    def named(self):
        return self.ask("SELECT 1 FROM booking WHERE guest = %s LIMIT 1", "ann")

    def add(self):
        insert = "INSERT INTO booking (room, start, stop, guest) VALUES (%s, %s, %s, %s)"
        self.ask(insert, 1, FROM, TO, "ann")

    def next_job(self, *, skip):
        query = "SELECT id FROM job WHERE state = 'queued' ORDER BY id LIMIT 1"
        self.job = self.ask(query + " FOR UPDATE SKIP LOCKED" * skip)[0]

    def take(self):
        self.ask("UPDATE job SET state = 'taken' WHERE id = %s", self.job)

    def commit(self):
        self.connection.commit()
        self.connection.close()


class ThroughAsyncpg(ThroughPsycopg):
    """The same through asyncpg, each session in a loop of its own."""

    watch = "watch_asyncpg"

    def __init__(self, url):
        self.loop = asyncio.new_event_loop()
        self.connection = self.loop.run_until_complete(asyncpg.connect(url))
        self.block = self.connection.transaction()
        self.loop.run_until_complete(self.block.start())

    def ask(self, query, *values):
        for number in range(1, len(values) + 1):
            query = query.replace("%s", f"${number}", 1)
        rows = self.loop.run_until_complete(self.connection.fetch(query, *values))
        return rows[0] if rows else None

    def commit(self):
        self.loop.run_until_complete(self.block.commit())
        self.loop.run_until_complete(self.connection.close())
        self.loop.close()


@pytest.fixture
def url(embedded):
    """A database with a room, four old bookings and six jobs."""
    where = f"postgresql://postgres@/postgres?host={embedded}"
    with psycopg.connect(where) as connection:
        connection.execute(TABLES)
    return where


LIBRARIES = pytest.mark.parametrize(
    "through", [ThroughSqlAlchemy, ThroughPsycopg, ThroughAsyncpg], ids=lambda one: one.__name__
)


@LIBRARIES
@pytest.mark.parametrize("condition", ["clashes", "full", "named"])
def test_what_two_sessions_did_not_find(url, isolation, through, condition):
    """Overlapping bookings, one too many, a name that is there twice: with the condition."""
    getattr(isolation, through.watch)(url)
    sessions = [through(url), through(url)]
    for session in sessions:
        assert not getattr(session, condition)()
    for session in sessions:
        session.add()
        session.commit()
    with pytest.raises(isolang.IsolationError, match="predicate write skew") as error:
        isolation.assert_level("ser")
    assert isolation.unseen() == {}
    shown = {"clashes": "start <", "full": "count(*)", "named": "guest = "}[condition]
    assert "by SELECT" in (said := " ".join(str(error.value).split()))
    assert shown in said
    assert ("(flush)" in said) == (through is ThroughSqlAlchemy)
    isolation.assert_level("si")


@LIBRARIES
@pytest.mark.parametrize(
    ("condition", "lock"), [("clashes", "lock"), ("full", "lock"), ("named", "advise")]
)
def test_what_is_asked_behind_a_lock(url, isolation, through, condition, lock):
    """The mended application is valid, with nothing unseen, at READ COMMITTED."""
    getattr(isolation, through.watch)(url)

    def book():
        session = through(url)
        getattr(session, lock)()
        if not getattr(session, condition)():
            session.add()
        session.commit()

    isolation.concurrently(book, times=2, clients=3)
    (verdict,) = isolation.assert_level("ser")
    assert verdict.certified
    assert isolation.unseen() == {}
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM booking").fetchone() == (5,)


@LIBRARIES
def test_a_queue(url, isolation, through):
    """With SKIP LOCKED each job is taken once, and nothing is unseen."""
    getattr(isolation, through.watch)(url)

    def work():
        session = through(url)
        session.next_job(skip=True)
        session.take()
        session.commit()

    isolation.concurrently(work, times=2, clients=3)
    isolation.assert_level("ser")
    assert isolation.unseen() == {}
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM job WHERE state = 'queued'").fetchone() == (
            0,
        )


@LIBRARIES
def test_a_queue_without_a_lock(url, isolation, through):
    """Two take one job."""
    getattr(isolation, through.watch)(url)
    sessions = [through(url), through(url)]
    for session in sessions:
        session.next_job(skip=False)
    for session in sessions:
        session.take()
        session.commit()
    with pytest.raises(isolang.IsolationError, match="lost update"):
        isolation.assert_level("ser")


@pytest.mark.slow
def test_an_orm_that_writes_several_rows_at_once(url, isolation):
    """Its flush is one call with several rows of values; the rows are recorded one by one."""
    isolation.watch_psycopg(url)

    def swap():
        engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        with Session(engine) as session, session.begin():
            session.get(Room, 1, with_for_update=True)
            one, other = session.get(Job, 1), session.get(Job, 2)
            one.state, other.state = other.state + "a", one.state + "b"
        engine.dispose()

    isolation.concurrently(swap, times=2, clients=2)
    (verdict,) = isolation.assert_level("ser")
    assert isolation.unseen() == {}
    ops = operations(verdict.history)
    assert len(ops) == 4
    for written in ops:
        assert [op[:9] for op in written[-2:]] == ["w(job/1 {", "w(job/2 {"]
