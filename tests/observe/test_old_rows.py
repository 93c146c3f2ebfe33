"""What a write uses of the rows that it replaces is a read, and what it does not use is none."""

import psycopg
import pytest
from support.watched import operations

import isolang


@pytest.fixture
def url(embedded):
    """A database with two rows, which two transactions write."""
    where = f"postgresql://postgres@/postgres?host={embedded}"
    with psycopg.connect(where) as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE, n int, date int)")
        connection.execute("INSERT INTO t VALUES (1, 'a', 0, 0), (2, 'b', 0, 0)")
    return where


WRITES = {
    "UPDATE t SET n = 7 WHERE id = 1": "",
    "UPDATE t SET n = 7 WHERE id = 1 RETURNING id, n AS m, t.n": "",
    "UPDATE t SET n = 7 WHERE id = 1 RETURNING date": "{date, id}",
    "UPDATE t SET n = 7 WHERE id = 1 RETURNING *": "{date, id, name}",
    "UPDATE t SET n = 7 WHERE id = 1 RETURNING old.n": "{n: 5}",
    "UPDATE t SET n = date WHERE id = 1": "{n: 5}",
    "UPDATE t SET n = n + 1 WHERE id = 1": "{n: 5}",
    "DELETE FROM t WHERE id = 1": "",
    "DELETE FROM t WHERE id = 1 RETURNING id": "",
    "DELETE FROM t WHERE id = 1 RETURNING n": "{n: 5}",
    "UPDATE t SET n = 7 WHERE name = 'a'": "{name}",
    "DELETE FROM t WHERE id = 1 AND name = 'a'": "{id, name}",
}


@pytest.mark.parametrize("write", WRITES)
def test_what_a_write_reads(url, isolation, write):
    """The columns of its condition, and those that it returns; or all, if it computes with them."""
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url) as first:
        first.execute("UPDATE t SET n = 5 WHERE id = 1")
    with psycopg.connect(url) as second:
        second.execute(write)
    _, shown = operations(isolation.history())
    assert watch.unseen == {}
    columns = WRITES[write]
    assert shown[:-1] == ([f"r(t/1 {columns})"] if columns else [])
    isolation.assert_level("sser")


@pytest.mark.parametrize(
    ("write", "anomaly"),
    [
        ("UPDATE t SET n = 9 WHERE name = 'a'", "lost update"),
        ("DELETE FROM t WHERE name = 'a'", "lost update"),
        ("UPDATE t SET n = n + 1 WHERE name = 'a'", "fractured read"),
        ("UPDATE t SET n = 9 WHERE name = 'a' RETURNING date", "lost update"),
        ("UPDATE t SET n = 9 WHERE id = 1 RETURNING *", "lost update"),
        ("UPDATE t SET n = 9 WHERE id = 1 RETURNING old.n", "fractured read"),
        ("DELETE FROM t WHERE id = 1 RETURNING n", "fractured read"),
    ],
)
def test_a_row_that_was_read_before(url, isolation, write, anomaly):
    """An update is lost unless the write itself reads what it replaces."""
    isolation.watch_psycopg(url)
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        first.execute("SELECT n FROM t WHERE name = 'a'").fetchall()
        second.execute("SELECT n FROM t WHERE id = 1").fetchall()
        second.execute("UPDATE t SET n = 5 WHERE id = 1")
        second.commit()
        first.execute(write)
    with pytest.raises(isolang.IsolationError, match=anomaly):
        isolation.assert_level("ser")


def test_what_a_row_returned_shows_of_another(url, isolation):
    """Half of another transaction, by RETURNING: serializability does not hold."""
    isolation.watch_psycopg(url)
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        first.execute("SELECT n FROM t WHERE id = 2").fetchall()
        second.execute("UPDATE t SET n = 5 WHERE id IN (1, 2)")
        second.commit()
        assert first.execute("UPDATE t SET date = 1 WHERE id = 1 RETURNING n").fetchall() == [(5,)]
    with pytest.raises(isolang.IsolationError, match=r"G-single|fractured read"):
        isolation.assert_level("ser")
