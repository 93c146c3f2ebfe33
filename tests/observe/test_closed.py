"""Observed conditions are right at the database's level, and recorded only of closed tables."""

import psycopg
import pytest
from observe.random_items import TABLE, play
from psycopg import IsolationLevel

import isolang
from isolang.observe.unseen import CONDITIONS
from isolang.testing.assertion import UndecidedError


@pytest.fixture
def url(embedded):
    """A database with six items."""
    where = f"postgresql://postgres@/postgres?host={embedded}"
    with psycopg.connect(where) as connection:
        connection.execute(TABLE)
    return where


def unwatched(url, text):
    """Run a statement that no watch sees."""
    connection = psycopg.pq.PGconn.connect(url.encode())
    assert connection.exec_(text.encode()).status in (1, 2)
    connection.finish()


@pytest.mark.parametrize(
    ("level", "spec"),
    [
        (IsolationLevel.SERIALIZABLE, "ser"),
        (IsolationLevel.REPEATABLE_READ, "si"),
        (IsolationLevel.READ_COMMITTED, "pl-2"),
    ],
)
def test_random_transactions_keep_the_level_of_the_server(url, isolation, level, spec):
    """With predicate reads, whole rows, savepoints, upserts, and keys that are inserted again."""
    isolation.watch_psycopg(url)
    play(url, level, isolation.seed, transactions=20)
    (verdict,) = isolation.assert_level(spec, allow_unseen=True)
    assert verdict.certified
    path = isolation.folder / "history.conditions.edn"
    if level is IsolationLevel.READ_COMMITTED or path.exists():
        assert path.read_text().count("[:rp ") > 40
    else:  # two rows of one key: a write that was not recorded
        assert isolation.unseen().keys() >= {"deleted", CONDITIONS}


def ask(url, condition="owner = 'x'"):
    """A transaction that finds nothing, and adds something."""
    with psycopg.connect(url) as connection:
        query = f"SELECT count(*) FROM item WHERE {condition}"
        connection.execute(query).fetchone()
        connection.execute("UPDATE item SET n = 9 WHERE id = 1")


@pytest.mark.parametrize(
    "steps",
    [
        ["INSERT INTO item VALUES (7, 'x')"],
        ["UPDATE item SET owner = 'x' WHERE id = 2"],
        ["DELETE FROM item WHERE id = 1"],
        ["UPDATE item SET owner = 'x' WHERE id = 1", None],
        ["DELETE FROM item WHERE id = 1", "INSERT INTO item VALUES (1, 'x')", None],
    ],
)
def test_a_writer_that_was_not_seen_keeps_conditions_unseen(url, isolation, steps):
    """Its version is the last one, or was replaced, or a recorded one is gone without a trace."""
    isolation.watch_psycopg(url)
    ask(url)
    isolation.assert_level("ser")
    for step in steps:
        if step is None:
            ask(url)
        else:
            unwatched(url, step)
    with pytest.raises(UndecidedError, match="some operations were not seen: conditions"):
        isolation.assert_level("ser")
    assert isolation.unseen()[CONDITIONS] == 1 + (None in steps)


def test_rows_that_are_gone_again_are_no_gap(url, isolation):
    """Nobody saw them, and they are the versions of no other row."""
    isolation.watch_psycopg(url)
    ask(url)
    unwatched(url, "INSERT INTO item VALUES (7, 'x'); DELETE FROM item WHERE id = 7")
    ask(url)
    isolation.assert_level("ser")


def test_a_key_that_is_inserted_again_is_another_row(url, isolation):
    """At REPEATABLE READ an INSERT passes a concurrent DELETE, which is no violation of SI."""
    isolation.watch_psycopg(url)
    with psycopg.connect(url) as one, psycopg.connect(url) as two:
        one.isolation_level = two.isolation_level = IsolationLevel.REPEATABLE_READ
        two.execute("SELECT count(*) FROM item WHERE owner = 'x'")
        one.execute("DELETE FROM item WHERE id = 1")
        one.commit()
        two.execute("INSERT INTO item (id, owner) VALUES (1, 'x')")
    isolation.assert_level("si")
    assert '["item" "1#2"]' in (isolation.folder / "history.conditions.edn").read_text()


@pytest.mark.parametrize("level", [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ])
def test_writes_that_find_rows_by_a_condition(url, isolation, level):
    """At READ COMMITTED they check the newest rows again, so they are no reads of a snapshot."""
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        connection.isolation_level = level
        connection.execute("UPDATE item SET done = true WHERE owner = 'o1'")
        connection.execute("DELETE FROM item WHERE owner = 'nobody'")
        connection.execute("SELECT n FROM item WHERE owner = 'o2' FOR UPDATE")
        connection.execute("UPDATE item SET done = true WHERE id = 99")
    watch.close(isolation.recorder.path, isolation.folder / "closed.edn")
    expected = {CONDITIONS: 3} if level is IsolationLevel.READ_COMMITTED else {}
    assert watch.all_unseen == expected
    text = (isolation.folder / "closed.edn").read_text()
    assert text.count("[:rp ") == (2 if expected else 8)
    assert isolang.assert_level(isolation.folder / "closed.edn", "sser").certified


def test_values_that_no_constant_has(url, isolation):
    """A long text and an infinite date are rows like others; LIKE is not seen."""
    with psycopg.connect(url) as own:
        own.execute("UPDATE item SET owner = repeat('x', 300), at = 'infinity' WHERE id = 1")
    isolation.watch_psycopg(url)
    ask(url)
    ask(url, "owner = '" + "x" * 300 + "'")
    ask(url, "at > '2028-01-01'")
    ask(url, "owner LIKE 'x'")
    with pytest.raises(UndecidedError):
        isolation.assert_level("ser")
    assert isolation.unseen() == {CONDITIONS: 1}
    assert (isolation.folder / "history.conditions.edn").read_text().count("[:rp ") == 6


def test_a_table_that_is_altered_keeps_its_conditions_unseen(url, isolation):
    """Versions keep their number, but a new column is not known of those that were recorded."""
    isolation.watch_psycopg(url)
    ask(url, "n = 9")
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE item ADD COLUMN m int DEFAULT 5")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM item WHERE m = 5").fetchone() == (6,)
    (verdict,) = isolation.assert_level("ser", allow_unseen={CONDITIONS, "shapes"})
    assert verdict.outcome == "valid"
    assert isolation.unseen()[CONDITIONS] == 2


@pytest.mark.slow
def test_a_float_is_compared_as_the_server_does(url, isolation):
    """It rounds the decimals of the column, so that it finds one that is not equal to it."""
    with psycopg.connect(url) as own:
        own.execute("DROP TABLE IF EXISTS fund")
        own.execute("CREATE TABLE fund (id int PRIMARY KEY, total numeric(20, 2), n int)")
        own.execute("INSERT INTO fund VALUES (1, 99999999999999.99, 2)")
    isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        query = "SELECT id FROM fund WHERE total = %s"
        assert connection.execute(query, (99999999999999.98,)).fetchall() == [(1,)]
        assert connection.execute("SELECT id FROM fund WHERE n < %s", (1.5,)).fetchall() == []
    (verdict,) = isolation.assert_level("ser", allow_unseen={CONDITIONS})
    assert verdict.outcome == "valid"
    assert isolation.unseen() == {CONDITIONS: 1}
    path = isolation.folder / "history.conditions.edn"
    assert "[:< :n 1.5]" in path.read_text()
