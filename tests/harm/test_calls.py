"""The harm of a violation in a test that calls an application through ``isolation.call``."""

import threading
from contextlib import nullcontext
from importlib.metadata import entry_points

import psycopg
import pytest
from support.cli import ENVIRONMENT

from isolang.harm.serial import Budget
from isolang.testing.assertion import IsolationError
from isolang.testing.isolation import Isolation

pytestmark = pytest.mark.slow
pytest_plugins = ["pytester"]


class SoldOutError(Exception):
    pass


class Shop:
    """A shop that sells more than it has if two customers buy at once."""

    def __init__(self, folder, stock):
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self.stock, self.meeting = stock, None

    def setup(self):
        with psycopg.connect(self.url, autocommit=True) as c:
            c.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            c.execute("CREATE TABLE stock (id int PRIMARY KEY, n int NOT NULL)")
            c.execute("CREATE TABLE orders (id bigserial PRIMARY KEY, who text NOT NULL)")
            c.execute("INSERT INTO stock VALUES (1, %s)", (self.stock,))

    def buy(self, who):
        with psycopg.connect(self.url) as c:
            (left,) = c.execute("SELECT n FROM stock WHERE id = 1").fetchone()
            if self.meeting is not None:
                self.meeting.wait()
            if left < 1:
                raise SoldOutError
            c.execute("UPDATE stock SET n = n - 1 WHERE id = 1")
            query = "INSERT INTO orders (who) VALUES (%s) RETURNING id"
            return c.execute(query, (who,)).fetchone()[0]

    def at_once(self, isolation, *customers):
        self.meeting = threading.Barrier(len(customers))
        calls = [lambda who=who: isolation.call(self.buy, who) for who in customers]
        isolation.concurrently(*calls, times=1)
        self.meeting = None


def refused(isolation, **options):
    with pytest.raises(IsolationError) as raised:
        isolation.assert_level("ser", **options)
    return raised.value


def begun(folder, isolation, stock):
    isolation._replays.budget = Budget(clock_step=0.0)  # waiting takes long
    shop = Shop(folder, stock)
    isolation.setup(shop.setup)
    isolation.watch_psycopg(shop.url)
    return shop


def test_too_little_stock_is_harm(embedded, isolation):
    """The first line says what no order gives; the verdict and its argument stay."""
    shop = begun(embedded, isolation, 1)
    shop.at_once(isolation, "ann", "bob", "cy")
    error = refused(isolation)
    first, second, *_ = str(error).splitlines()
    assert first == (
        "INVALID, harmful: stock/1 n -2, every order gives 0 and two refusals; orders: 3 new rows, "
        "every order gives 1; and 2 more"
    )
    assert second.endswith("history.edn  SER (serializability, with session order)")
    assert error.verdict.outcome == "invalid"
    assert "Shop.buy('ann') (test_calls.py:" in str(error)
    difference = error.harm.differences[0]
    assert (difference.table, difference.row, difference.column) == ("stock", "1", "n")
    assert (difference.value, difference.serial) == ("-2", ("0",))
    assert not error.harm.played_again  # the recorded run has no other calls
    assert error.harm.renamed == ("orders_id_seq (from 41000001)",)  # where 41000003 comes from
    with psycopg.connect(shop.url) as c:  # the test finds what its calls have left
        assert c.execute("SELECT n FROM stock").fetchone() == (-2,)


def test_enough_stock_is_no_harm(embedded, isolation):
    """The test fails all the same, and says that this outcome is one of an order."""
    begun(embedded, isolation, 1000).at_once(isolation, "ann", "bob")
    error = refused(isolation)
    assert error.harm.kind == "harmless"
    first = str(error).splitlines()[0]
    assert first.startswith("INVALID, harmless with this data: as if Shop.buy('")
    assert len(error.harm.order) == 2


def test_a_harmless_violation_can_be_a_note(embedded, tmp_path):
    """A note is no valid verdict, and a harmful violation is none."""
    for stock, notes in ((1000, 1), (1, 0)):
        isolation = Isolation(tmp_path / str(stock), harmless="note")
        begun(embedded, isolation, stock).at_once(isolation, "ann", "bob")
        if notes:
            assert isolation.assert_level("ser") == []
            assert [verdict.outcome for verdict in isolation.judged] == ["invalid"]
        else:
            refused(isolation)
        assert len(isolation.noted) == notes
        isolation.close()


class Poll:
    """Votes that read a counter and write it; alone, they run one by one if there is a lock."""

    def __init__(self, folder, lock=None):
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self.meeting, self.lock = None, lock or nullcontext()

    def setup(self):
        with psycopg.connect(self.url, autocommit=True) as c:
            c.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            c.execute("CREATE TABLE poll (id int PRIMARY KEY, n int NOT NULL)")
            c.execute("INSERT INTO poll VALUES (1, 0)")

    def vote(self, who):
        lock = self.lock if self.meeting is None else nullcontext()
        with lock, psycopg.connect(self.url) as c:
            (votes,) = c.execute("SELECT n FROM poll WHERE id = 1").fetchone()
            if self.meeting is not None:
                self.meeting.wait()
            c.execute("UPDATE poll SET n = %s WHERE id = 1", (votes + 1,))


@pytest.mark.parametrize("locks", [False, True])
def test_the_calls_of_a_long_run_are_played_again(embedded, isolation, locks):
    """Of seven calls, the two of the violation run by themselves until they violate the level.

    If they never do, for example because they only race at another time, the harm is unknown.
    """
    poll = Poll(embedded, threading.Lock() if locks else None)
    isolation._replays.budget = Budget(clock_step=0.0)
    isolation.setup(poll.setup)
    isolation.watch_psycopg(poll.url)
    for n in range(5):
        isolation.call(poll.vote, n)
    poll.meeting = threading.Barrier(2)
    calls = [lambda who=who: isolation.call(poll.vote, who) for who in ("ann", "bob")]
    isolation.concurrently(*calls, times=1)
    poll.meeting = None
    error = refused(isolation)
    first = str(error).splitlines()[0]
    assert len(error.harm.calls) == 2
    if locks:
        assert first == (
            "INVALID, harm unknown: the violation did not occur again when its calls were played "
            "by themselves"
        )
    else:
        assert first == "INVALID, harmful: poll/1 n 1, every order gives 2"
        assert error.harm.played_again


def test_without_calls_nothing_is_said(embedded, isolation):
    """Functions that the test calls by itself cannot be called again."""
    shop = begun(embedded, isolation, 1000)
    shop.meeting = threading.Barrier(2)
    isolation.concurrently(lambda: shop.buy("ann"), lambda: shop.buy("bob"), times=1)
    error = refused(isolation)
    assert error.harm is None
    assert str(error).startswith("INVALID  /")


def test_effects_and_invariants(embedded, isolation):
    """A mail sent twice, which the rows do not show, and a condition that does not hold."""
    url = f"postgresql://postgres@/postgres?host={embedded}"
    meeting = threading.Barrier(2)

    def setup():
        with psycopg.connect(url, autocommit=True) as c:
            c.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            c.execute("CREATE TABLE o (id int PRIMARY KEY, state text)")
            c.execute("INSERT INTO o VALUES (1, 'paid')")

    def cancel():
        with psycopg.connect(url) as c:
            (state,) = c.execute("SELECT state FROM o WHERE id = 1").fetchone()
            if not meeting.broken:
                meeting.wait()
            if state != "cancelled":
                c.execute("UPDATE o SET state = 'cancelled' WHERE id = 1")
                isolation.effect(("refund", 1))
            return "done"

    def refunded_once():
        return len(isolation._replays.effects.listed()) == 1

    isolation._replays.budget = Budget(clock_step=0.0)
    isolation.setup(setup)
    isolation.invariant(refunded_once)
    isolation.watch_psycopg(url)
    isolation.concurrently(*[lambda: isolation.call(cancel)] * 2, times=1)
    meeting.abort()
    texts = [difference.text for difference in refused(isolation).harm.differences]
    assert texts[0].endswith("refunded_once holds after every order")
    assert texts[1] == "effects: [refund, 1] twice instead of once"


def test_the_marker_notes_what_is_harmless(embedded, pytester, monkeypatch):
    """The last lines count the notes; without the marker's argument, the test fails."""
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    monkeypatch.setenv("SHOP", f"postgresql://postgres@/postgres?host={embedded}")
    pytester.makepyfile("""
import os, threading
import psycopg, pytest

def setup():
    with psycopg.connect(os.environ["SHOP"], autocommit=True) as c:
        c.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        c.execute("CREATE TABLE stock (id int PRIMARY KEY, n int NOT NULL)")
        c.execute("INSERT INTO stock VALUES (1, 1000)")

def buy(meeting=threading.Barrier(2)):
    with psycopg.connect(os.environ["SHOP"]) as c:
        assert c.execute("SELECT n FROM stock WHERE id = 1").fetchone()[0] > 0
        if not meeting.broken:
            meeting.wait()
        c.execute("UPDATE stock SET n = n - 1 WHERE id = 1")

def bought(isolation):
    isolation.setup(setup)
    isolation.watch_psycopg(os.environ["SHOP"])
    meeting = threading.Barrier(2)
    isolation.concurrently(*[lambda: isolation.call(buy, meeting)] * 2, times=1)
    meeting.abort()

@pytest.mark.isolation("ser", harmless="note")
def test_noted(isolation):
    bought(isolation)

@pytest.mark.isolation("ser")
def test_failing(isolation):
    bought(isolation)

@pytest.mark.isolation("ser", harmless="pass")
def test_misspelt(isolation):
    pass
""")
    installed = any(entry.name == "isolang" for entry in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "isolang.testing.pytest_plugin")
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly", *plugin)
    done.assert_outcomes(failed=1, passed=1, errors=1)
    done.stdout.fnmatch_lines([
        "*unknown choice of harmless (got 'pass', expected 'fail' or 'note')*",
        "*INVALID, harmless with this data: as if buy*",
        "*1 violation only noted (harmless='note'), first: INVALID, harmless with this data: as*",
    ])  # fmt: skip


def test_a_second_assertion_judges_the_recorded_run(embedded, isolation):
    """Not what the serial runs of the first have left: their mails and their sequences."""
    shop = begun(embedded, isolation, 1000)
    buy, shop.meeting = shop.buy, threading.Barrier(2)

    def bought(who):
        number = buy(who)
        if shop.meeting is not None:
            isolation.effect(("mail", who))  # which only the calls that meet send
        return number

    calls = [lambda who=who: isolation.call(bought, who) for who in ("ann", "bob")]
    isolation.concurrently(*calls, times=1)
    shop.meeting = None
    first, second = (refused(isolation).harm for _ in range(2))
    assert first.kind == second.kind == "harmful"
    assert first.differences == second.differences


def test_new_tables_leave_the_verdict(embedded, isolation):
    """A call that creates a table cannot be made again, but the violation is reported."""
    shop = begun(embedded, isolation, 1000)
    shop.at_once(isolation, "ann", "bob")
    with psycopg.connect(shop.url) as c:
        c.execute("CREATE TABLE more (id int)")
    harm = refused(isolation, allow_unseen=True).harm
    assert harm.kind == "unknown"
    assert harm.why.startswith("the tables are not those of the prepared state")


def test_a_session_keeps_its_order_when_its_calls_are_played(embedded, isolation, monkeypatch):
    """Ann's second call followed her first, so playing both at once would lose an update."""
    url = f"postgresql://postgres@/postgres?host={embedded}"
    looked, raised = threading.Event(), threading.Event()

    def setup():
        with psycopg.connect(url, autocommit=True) as c:
            c.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            c.execute("CREATE TABLE poll (id int PRIMARY KEY, n int NOT NULL)")
            c.execute("INSERT INTO poll SELECT i, 0 FROM generate_series(1, 8) i")

    def raise_both(*rows):
        raised.clear()
        with psycopg.connect(url) as c:
            for row in rows:
                (n,) = c.execute("SELECT n FROM poll WHERE id = %s", (row,)).fetchone()
                c.execute("UPDATE poll SET n = %s WHERE id = %s", (n + 1, row))
        if len(rows) > 1:
            raised.set()

    def look():
        with psycopg.connect(url) as c:
            c.execute("SELECT n FROM poll WHERE id = 1").fetchone()
            looked.set()
            raised.wait(0.3)
            c.execute("SELECT n FROM poll WHERE id = 2").fetchone()

    def ann():
        looked.wait(5)
        isolation.call(raise_both, 1)
        isolation.call(raise_both, 1, 2)

    monkeypatch.setattr("isolang.harm.calls._MORE_PLAYS", 0)  # one play takes long enough
    isolation._replays.budget = Budget(clock_step=0.0)
    isolation.setup(setup)
    isolation.watch_psycopg(url)
    for row in (3, 4, 5):
        isolation.call(raise_both, row)
    isolation.concurrently(lambda: isolation.call(look), ann, times=1)
    harm = refused(isolation).harm
    assert harm.played_again
    assert (len(harm.calls), harm.kind) == (3, "harmless")
