"""Random transactions keep the level of their database, and writers that are not seen are found."""

import psycopg
import pytest
from observe.random_items import TABLE, play
from psycopg import IsolationLevel
from support.watched import predicate_reads

from isolang.observe.unseen import CONDITIONS, FOREIGN, LIMITED
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
    watch = isolation.watch_psycopg(url)
    play(url, level, isolation.seed, transactions=20)
    (verdict,) = isolation.assert_level(spec, allow_unseen={CONDITIONS, LIMITED})
    assert verdict.certified
    assert watch.unseen.keys() <= {LIMITED}
    assert len(predicate_reads(verdict.history)) > 40


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
def test_a_writer_that_was_not_seen_is_counted(url, isolation, steps):
    """Its version is the last one, or was replaced, or a recorded one is gone without a trace."""
    isolation.watch_psycopg(url)
    ask(url)
    isolation.assert_level("ser")
    for step in steps:
        if step is None:
            ask(url)
        else:
            unwatched(url, step)
    with pytest.raises(UndecidedError, match="some operations were not seen: "):
        isolation.assert_level("ser")
    assert isolation.unseen()[FOREIGN]


def test_rows_that_are_gone_again_are_no_gap(url, isolation):
    """Nobody saw them, and they are the versions of no other row."""
    isolation.watch_psycopg(url)
    ask(url)
    unwatched(url, "INSERT INTO item VALUES (7, 'x'); DELETE FROM item WHERE id = 7")
    ask(url)
    isolation.assert_level("ser")


def test_a_table_that_is_altered_has_rows_that_nobody_wrote(url, isolation):
    """Versions keep their number, but a new column is not known of those that were recorded."""
    isolation.watch_psycopg(url)
    ask(url, "n = 9")
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE item ADD COLUMN m int DEFAULT 5")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM item WHERE m = 5").fetchone() == (6,)
    (verdict,) = isolation.assert_level("ser", allow_unseen={FOREIGN})
    assert verdict.outcome == "valid"
    assert isolation.unseen()[FOREIGN]


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
    (verdict,) = isolation.assert_level("ser")
    assert verdict.outcome == "valid"
    assert isolation.unseen() == {}
    (_, (_, predicate, _)) = predicate_reads(verdict.history)
    assert "[:< :n 1.5]" in predicate
