"""Unseen reads that cannot matter, from an embedded server to the verdict."""

import pytest

import isolang
from isolang.observe.unseen import CALLED, CONDITIONS


@pytest.fixture
def server_on_trial():
    """Whether commit times excuse no unseen read."""
    return False


@pytest.fixture
def tables(observed):
    """A proxy in front of two tables with one row each."""
    observed.direct(
        "DROP SCHEMA public CASCADE", "CREATE SCHEMA public",
        "CREATE TABLE x (id int PRIMARY KEY, v int, name text)",
        "CREATE TABLE y (id int PRIMARY KEY, v int)",
        "INSERT INTO x VALUES (1, 0, 'one')", "INSERT INTO y VALUES (1, 0)",
        "CREATE FUNCTION f() RETURNS int STABLE LANGUAGE plpgsql AS "
        "'BEGIN RETURN (SELECT v FROM x WHERE id = 1); END'",
    )  # fmt: skip
    return observed.start()


_LIKE = "SELECT v FROM x WHERE name LIKE 'o%' AND name <> current_user"


def test_a_read_is_decided_by_the_commits_before_and_after_it(tables):
    a, b, c = (tables.connect("READ_COMMITTED") for _ in range(3))
    with a, b, c:
        a.execute("UPDATE x SET v = 1 WHERE id = 1")
        a.commit()
        assert b.execute(_LIKE).fetchall() == [(1,)]
        a.execute("UPDATE x SET v = 2 WHERE id = 1")
        a.execute("UPDATE y SET v = 2 WHERE id = 1")
        a.commit()
        b.commit()
        c.execute("UPDATE x SET v = 3 WHERE id = 1")
        c.rollback()
    assert tables.stop() == {}
    history = isolang.load_history(tables.path)
    assert history.counts()["committed"] == 3
    assert history.possible_facts
    verdict = isolang.check(history, "ser")
    assert verdict.outcome == "valid"
    assert verdict.certified
    assert verdict.history.counts()["operations"] > history.counts()["operations"]
    assert verdict.history.options == {"possible_facts": "count"}


def test_a_read_that_closes_a_cycle_is_named(tables):
    with tables.connect("REPEATABLE_READ") as a, tables.connect("REPEATABLE_READ") as b:
        assert not a.execute(_LIKE.replace("o%", "z%")).fetchall()
        b.execute("SELECT v FROM y WHERE id = 1")
        a.execute("UPDATE y SET v = 1 WHERE id = 1")
        b.execute("UPDATE x SET name = 'zero' WHERE id = 1")
        a.commit()
        b.commit()
    assert tables.stop() == {}
    verdict = tables.check("ser")
    assert (verdict.outcome, verdict.cause) == ("unknown", "possible facts")
    assert "LIKE" in verdict.reason
    assert tables.check("si").outcome == "valid"


@pytest.mark.parametrize("text", ["SELECT f()", "SELECT f() FROM y WHERE id = 1"])
def test_a_function_is_never_harmless(tables, text):
    """Its read of x closes a write skew, although x is in no recorded conflict."""
    with tables.connect("REPEATABLE_READ") as a, tables.connect("REPEATABLE_READ") as b:
        a.execute(text)
        b.execute("SELECT v FROM y WHERE id = 1")
        a.execute("UPDATE y SET v = 1 WHERE id = 1")
        b.execute("UPDATE x SET v = 1 WHERE id = 1")
        a.commit()
        b.commit()
    assert [*tables.stop()] == [CALLED]
    assert tables.check("ser").outcome == "valid"  # of what was recorded
    verdict = isolang.check(isolang.load_history(tables.path), "ser")
    assert (verdict.outcome, verdict.cause) == ("unknown", "unseen")
    assert "public.f (plpgsql), in SELECT f()" in verdict.reason


def test_what_prevents_a_decision(tables):
    """A savepoint that was rolled back, a writer past the proxy, and definitions that follow."""
    like = "SELECT v FROM %s WHERE v::text LIKE 'a%%' AND current_user <> 'a'"
    with tables.connect() as a:
        a.execute("SAVEPOINT s")
        a.execute(like % "x")
        a.execute("ROLLBACK TO s")
        a.commit()
        a.execute(like % "y")
        tables.direct("UPDATE y SET v = 2 WHERE id = 1")
        a.commit()
        a.execute(like % "x")
        a.commit()
        a.execute("ALTER TABLE x ADD COLUMN more int")
        a.commit()
        a.execute(like % "x")
        a.commit()
    unseen = tables.stop()
    assert unseen[CONDITIONS] == 3
    verdict = isolang.check(isolang.load_history(tables.path), "ser")
    assert (verdict.outcome, verdict.cause) == ("unknown", "unseen")
