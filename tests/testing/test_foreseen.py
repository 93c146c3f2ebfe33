"""Predictions from sequential tests, played on an embedded PostgreSQL by the application itself."""

from importlib.metadata import entry_points

import pytest
from support.cli import ENVIRONMENT

from isolang.errors import IsolangError

pytest_plugins = ["pytester"]

BANK = """
import os
import threading
import psycopg
import pytest

URL = os.environ["BANK"]

def create():
    with psycopg.connect(URL, autocommit=True) as c:
        c.execute("DROP TABLE IF EXISTS savings, checking")
        for table in ("savings", "checking"):
            c.execute(f"CREATE TABLE {table} (customer int PRIMARY KEY, balance int NOT NULL)")
            c.execute(f"INSERT INTO {table} VALUES (1, 100), (2, 100)")

def balance(c, table, customer, lock=""):
    query = f"SELECT balance FROM {table} WHERE customer = %s {lock}"
    return c.execute(query, (customer,)).fetchone()[0]

def put(c, table, customer, value):
    c.execute(f"UPDATE {table} SET balance = %s WHERE customer = %s", (value, customer))

def withdraw(table, customer, amount, before=(), lock=""):
    with psycopg.connect(URL) as c:
        c.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        for one in before:
            c.execute(f"UPDATE {one} SET balance = balance WHERE customer = %s", (customer,))
        saved = balance(c, "savings", customer, lock)
        checked = balance(c, "checking", customer, lock)
        if saved + checked >= amount:
            put(c, table, customer, (saved if table == "savings" else checked) - amount)

def save(customer, amount):
    withdraw("savings", customer, -amount)

def pay(customer, amount):
    withdraw("checking", customer, amount)

def mended_save(customer, amount):
    withdraw("savings", customer, -amount, before=("checking",))

def mended_pay(customer, amount):
    withdraw("checking", customer, amount, before=("savings",))

def locked_save(customer, amount):
    withdraw("savings", customer, -amount, lock="FOR UPDATE")

def locked_pay(customer, amount):
    withdraw("checking", customer, amount, lock="FOR UPDATE")

def shared_save(customer, amount):
    withdraw("savings", customer, -amount, lock="FOR SHARE")

def shared_pay(customer, amount):
    withdraw("checking", customer, amount, lock="FOR SHARE")

def alone(table, amount):
    with psycopg.connect(URL) as c:
        c.execute("SELECT pg_advisory_xact_lock(7)")
        saved, checked = balance(c, "savings", 1), balance(c, "checking", 1)
        put(c, table, 1, (saved if table == "savings" else checked) - amount)

def alone_save(amount):
    alone("savings", -amount)

def alone_pay(amount):
    alone("checking", amount)

MUTEX = threading.Lock()

def locked_by_a_mutex(customer, amount):
    with MUTEX, psycopg.connect(URL) as c:
        put(c, "savings", customer, balance(c, "savings", customer) - amount)

def take(customer, amount, before):
    with psycopg.connect(URL) as c:
        for _ in range(before):
            c.execute("SELECT 1")
        query = "SELECT customer, balance FROM savings WHERE customer IN (1, 2, 3)"
        found = dict(c.execute(query).fetchall())
        if sum(found.values()) >= amount:
            put(c, "savings", customer, found[customer] - amount)

def take_one(amount, before):
    take(1, amount, before)

def take_three(amount, before):
    take(3, amount, before)

def look_and_add(customer, amount):
    with psycopg.connect(URL) as c:
        c.execute("SELECT count(*) FROM savings WHERE balance > 500").fetchone()
        put(c, "savings", customer, balance(c, "savings", customer) + amount)

def add_in_a_block(customer, amount):
    with psycopg.connect(URL, autocommit=True) as c, c.transaction():
        with c.transaction():
            for _ in range(3):
                c.execute("SELECT 1")
            before = balance(c, "savings", customer)
        put(c, "savings", customer, before + amount)

POOL = threading.local()

def pooled_add(customer, amount):
    if not hasattr(POOL, "c"):
        POOL.c = psycopg.connect(URL, autocommit=True)
        POOL.c.execute("SELECT set_config('TimeZone', 'UTC', false)")
    with POOL.c.transaction():
        put(POOL.c, "savings", customer, balance(POOL.c, "savings", customer) + amount)
"""


@pytest.fixture
def bank(url, monkeypatch):
    """The functions of the bank."""
    monkeypatch.setenv("BANK", url)
    functions: dict = {}
    exec(compile(BANK, "bank.py", "exec"), functions)
    return functions


def recorded(bank, isolation, *names):
    isolation.setup(bank["create"])
    isolation.watch_psycopg(bank["URL"])
    for name in names:
        isolation.call(bank[name], 1, 30)


@pytest.mark.parametrize("level", ["repeatable read", "read committed"])
def test_a_prediction_is_confirmed_by_the_functions_themselves(bank, isolation, level):
    """Two withdrawals that ran one after the other become a write skew on the database."""
    recorded(bank, isolation, "save", "pay")
    found = isolation.foresee(level)
    skew = next(one for one in found.confirmed if len(one.prediction.path) == 1)
    assert [str(call) for call in skew.calls] == ["pay(1, 30)", "save(1, 30)"]
    assert skew.prediction.programs == ("pay", "save", "save")
    assert skew.profile == "valid"
    assert found.lines()[0] == (f"foresee {level}: 1 of 1 predictions confirmed on {found.server}")
    assert found.server.startswith("PostgreSQL ")
    where = f"(bank.py:{BANK[: BANK.index('def pay')].count(chr(10)) + 1})"
    assert f"pay(1, 30) {where} overlooks save(1, 30)" in found.lines()[1]


@pytest.mark.parametrize("name", ["look_and_add", "add_in_a_block"])
def test_other_statements_hide_no_lost_update(bank, isolation, name):
    """A condition counts as the rows that it found; a library's savepoints are no statements."""
    recorded(bank, isolation, name, name)
    (confirmed,) = isolation.foresee("read committed").confirmed
    assert confirmed.anomaly == "lost update"


def test_calls_are_requests_of_their_own_on_one_connection(bank, isolation):
    """A pool gives both calls one connection, and a new one in each played thread, as Django does:
    the calls are no session, and what prepares a connection is no step.
    """
    recorded(bank, isolation, "pooled_add", "pooled_add")
    (found,) = isolation.foresee("read committed").confirmed
    assert found.anomaly == "lost update"


def test_an_engine_is_watched(url, isolation):
    """The watch of an engine is one that plays, with the pool that the application has."""
    pytest.importorskip("sqlalchemy")
    from sqlalchemy import create_engine
    from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

    class Base(DeclarativeBase):
        pass

    class Account(Base):
        __tablename__ = "account_of_engine"
        id: Mapped[int] = mapped_column(primary_key=True)
        balance: Mapped[int]

    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1))

    def create():
        Base.metadata.drop_all(engine)
        Base.metadata.create_all(engine)
        with Session(engine) as s, s.begin():
            s.add(Account(id=1, balance=100))

    def deposit(amount):
        with Session(engine) as s, s.begin():
            s.get(Account, 1).balance += amount

    isolation.setup(create)
    isolation.watch(engine, Base.registry)
    for amount in (10, 20):
        isolation.call(deposit, amount)
    found = isolation.foresee("read committed")
    assert [one.anomaly for one in found.confirmed] == ["lost update"], found.lines()
    engine.dispose()


def test_a_test_foresees_at_two_levels(bank, isolation):
    """Each played history has a file of its own."""
    recorded(bank, isolation, "save", "pay")
    one, other = (isolation.foresee(level) for level in ("repeatable read", "read committed"))
    assert one.confirmed[0].path != other.confirmed[0].path


def test_nothing_is_found_in_the_mended_functions(bank, isolation):
    """Where each also writes what the other writes, REPEATABLE READ refuses the second one."""
    recorded(bank, isolation, "mended_save", "mended_pay")
    found = isolation.foresee("repeatable read")
    assert found.predictions.outcome == "nothing found"
    assert found.lines() == ["foresee repeatable read: found nothing, which does not prove safety"]


@pytest.mark.parametrize("level", ["repeatable read", "read committed"])
@pytest.mark.parametrize("names", [("locked_save", "locked_pay"), ("shared_save", "shared_pay")])
def test_reads_that_lock_are_not_overlooked(bank, isolation, names, level):
    """Who locks what he reads makes the others wait, so that nothing is predicted."""
    recorded(bank, isolation, *names)
    assert isolation.foresee(level).predictions.outcome == "nothing found"


def test_a_lock_that_no_recording_has_is_named(bank, isolation):
    """A prediction that the database does not show is not confirmed, and the reason is told."""
    recorded(bank, isolation, "locked_by_a_mutex", "locked_by_a_mutex")
    found = isolation.foresee("read committed")
    assert not found.confirmed
    assert [one.why for one in found.played] == ["locked_by_a_mutex(1, 30) waited for a lock"]


def test_an_advisory_lock_is_recorded(bank, isolation):
    """Nothing is predicted that such a lock prevents."""
    isolation.setup(bank["create"])
    isolation.watch_psycopg(bank["URL"])
    isolation.call(bank["alone_save"], 30)
    isolation.call(bank["alone_pay"], 30)
    assert isolation.foresee("read committed").predictions.outcome == "nothing found"


@pytest.mark.parametrize("before", [0, 5])
@pytest.mark.parametrize("level", ["repeatable read", "read committed"])
def test_statements_are_played_and_not_operations(bank, isolation, level, before):
    """One SELECT has three operations, and those before it have none."""

    def create():
        bank["create"]()
        with bank["psycopg"].connect(bank["URL"]) as c:
            c.execute("INSERT INTO savings VALUES (3, 100)")

    isolation.setup(create)
    isolation.watch_psycopg(bank["URL"])
    isolation.call(bank["take_three"], 120, before)
    isolation.call(bank["take_one"], 120, before)
    history = isolation.history()
    (call, _) = (n for n in range(history.columns.transactions()) if history.labels_of(n))
    numbers = [one.number for one in history.statements_of(call) if one is not None]
    assert numbers == [before + 1, before + 1, before + 1, before + 2]
    found = isolation.foresee(level)
    assert [one.why for one in found.played] == [""]
    assert [one.anomaly for one in found.confirmed] == ["write skew"]


def test_calls_of_several_transactions_cannot_be_arranged(bank, isolation):
    """A call is played as a whole, so that it must be one transaction."""

    def both(customer, amount):
        bank["save"](customer, amount)
        bank["save"](customer, amount)

    isolation.setup(bank["create"])
    isolation.watch_psycopg(bank["URL"])
    isolation.call(both, 1, 10)
    isolation.call(bank["pay"], 1, 30)
    found = isolation.foresee("repeatable read")
    (why,) = {one.why for one in found.played}
    assert why.startswith("both(1, 10) ran 2 transactions, and a prediction is about one; hint: ")


def test_what_is_missing_is_named(bank, isolation):
    """Without a setup, nothing can be played."""
    isolation.watch_psycopg(bank["URL"])
    isolation.call(bank["pay"], 1, 30)
    with pytest.raises(IsolangError, match=r"got no isolation.setup\(function\)"):
        isolation.foresee("read committed")


def test_a_marked_test_fails_by_what_its_calls_could_have_done(url, pytester, monkeypatch):
    """A sequential test passes at SER, and fails because of what REPEATABLE READ lets happen."""
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    monkeypatch.setenv("BANK", url)
    pytester.makepyfile(
        BANK
        + """
@pytest.mark.isolation("ser", foresee="repeatable read")
@pytest.mark.parametrize("first, second", [(save, pay), (mended_save, mended_pay)])
def test_bank(isolation, first, second):
    isolation.setup(create)
    isolation.watch_psycopg(URL)
    isolation.call(first, 1, 30)
    isolation.call(second, 1, 30)

@pytest.mark.isolation("ser", foresee="snapshot")
def test_misspelt(isolation):
    pass
"""
    )
    installed = any(one.name == "isolang" for one in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "isolang.testing.pytest_plugin")
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly", *plugin)
    done.assert_outcomes(failed=1, passed=1, errors=1)
    done.stdout.fnmatch_lines([
        "*unknown level (got 'snapshot', expected one of read committed, repeatable read)*",
        "*foresee repeatable read: 1 of 1 predictions confirmed on PostgreSQL*",
        "*write skew: pay(1, 30) (*) overlooks save(1, 30) (*)",
    ])  # fmt: skip


CHECKS = """
import os
import psycopg
import pytest

URL = os.environ["BANK"]

def create():
    with psycopg.connect(URL, autocommit=True) as c:
        c.execute("DROP TABLE IF EXISTS guest, booking, account, node, parent")
        c.execute("CREATE TABLE guest (id serial PRIMARY KEY, room int NOT NULL)")
        c.execute("CREATE TABLE booking (id serial PRIMARY KEY, room int, first int, last int)")
        c.execute("CREATE TABLE account (id serial PRIMARY KEY, name text)")
        c.execute("CREATE TABLE node (id serial PRIMARY KEY, tree int)")
        c.execute("CREATE TABLE parent (id int PRIMARY KEY)")
        c.execute("INSERT INTO parent VALUES (7)")

def create_unique():
    create()
    with psycopg.connect(URL, autocommit=True) as c:
        c.execute("CREATE UNIQUE INDEX ON account (name)")

def check_in(room, lock=""):
    with psycopg.connect(URL) as c:
        if lock:
            c.execute(f"SELECT id FROM parent WHERE id = %s {lock}", (room,)).fetchone()
        (taken,) = c.execute("SELECT count(*) FROM guest WHERE room = %s", (room,)).fetchone()
        if taken < 5:
            c.execute("INSERT INTO guest (room) VALUES (%s)", (room,))

def book(room, first, last):
    with psycopg.connect(URL) as c:
        query = "SELECT id FROM booking WHERE room = %s AND first < %s AND last > %s"
        if not c.execute(query, (room, last, first)).fetchall():
            c.execute("INSERT INTO booking (room, first, last) VALUES (%s, %s, %s)",
                      (room, first, last))

def cancel(room):
    with psycopg.connect(URL) as c:
        for (number,) in c.execute("SELECT id FROM booking WHERE room = %s", (room,)).fetchall():
            c.execute("DELETE FROM booking WHERE id = %s", (number,))

def sign_up(name):
    with psycopg.connect(URL) as c:
        if not c.execute("SELECT id FROM account WHERE name = %s", (name,)).fetchall():
            c.execute("INSERT INTO account (name) VALUES (%s)", (name,))

def leave(name):
    with psycopg.connect(URL) as c:
        for (number,) in c.execute("SELECT id FROM account WHERE name = %s", (name,)).fetchall():
            c.execute("DELETE FROM account WHERE id = %s", (number,))

def plant():
    with psycopg.connect(URL) as c:
        last = c.execute("SELECT tree FROM node ORDER BY tree DESC LIMIT 1").fetchone()
        c.execute("INSERT INTO node (tree) VALUES (%s)", (last[0] + 1 if last else 1,))

UP, OUT = (sign_up, "ann"), (leave, "ann")
BOOK, CANCEL = (book, 7, 1, 4), (cancel, 7)

@pytest.mark.isolation("ser", foresee="read committed")
@pytest.mark.parametrize("setup, calls", [
    pytest.param(create, [(check_in, 7), (check_in, 7)], id="five"),
    pytest.param(create, [BOOK, CANCEL, BOOK], id="booking"),
    pytest.param(create, [UP, OUT, UP], id="unique"),
    pytest.param(create, [(plant,), (plant,)], id="next"),
    pytest.param(create, [UP, UP], id="branch"),
    pytest.param(create, [(check_in, 7, "FOR UPDATE")] * 2, id="lock"),
    pytest.param(create_unique, [UP, OUT, UP], id="index"),
])
def test_calls(isolation, setup, calls):
    isolation.setup(setup)
    isolation.watch_psycopg(URL)
    for function, *arguments in calls:
        isolation.call(function, *arguments)
"""


def test_a_test_that_checks_rows_fails_by_what_its_calls_could_have_done(
    url, pytester, monkeypatch
):
    """At most five, no overlap, unique names, the next number; a lock or an index mends it.

    If a function executes other statements in the run, it is not decided.
    """
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    monkeypatch.setenv("BANK", url)
    pytester.makepyfile(CHECKS)
    installed = any(one.name == "isolang" for one in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "isolang.testing.pytest_plugin")
    options = ("-p", "no:cacheprovider", "-p", "no:randomly", "--isolation-unknown=skip", "-rA")
    done = pytester.runpytest_subprocess(*options, *plugin)
    done.stdout.fnmatch_lines([
        "*predicate write skew: check_in(7) (*) overlooks check_in(7) (*)",
        "*predicate write skew: book(7, 1, 4) (*) overlooks book(7, 1, 4) (*)",
        "*predicate write skew: sign_up('ann') (*) overlooks sign_up('ann') (*)",
        "*plant() (*) overlooks plant() (*)",
    ], consecutive=False)  # fmt: skip
    done.stdout.fnmatch_lines(
        ["*not decided: sign_up: the run shows other statements after a *", "*`isocheck court` *"]
    )
    failed = dict.fromkeys(("five", "booking", "unique", "next"), "FAILED")
    for name, outcome in {**failed, "lock": "PASSED", "index": "PASSED"}.items():
        done.stdout.re_match_lines([rf"{outcome} .*test_calls\[{name}\].*"])
    done.assert_outcomes(failed=4, passed=2, skipped=1)
