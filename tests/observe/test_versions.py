"""With versions: the order of each row's versions is stated, and other writers are recorded."""

import psycopg
import pytest

import isolang

from .conftest import Observed


@pytest.fixture
def rows(logging, tmp_path):
    """A proxy with versions before a table with three rows."""
    one = Observed(logging, tmp_path / "observed.edn", 1000, versions=True)
    one.direct(
        "DROP TABLE IF EXISTS t",
        "CREATE TABLE t (id int PRIMARY KEY, v int, at timestamptz, done bool, price numeric(8,2))",
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
    )
    yield one.start()
    one.stop()


@pytest.mark.server
def test_blind_writes_have_an_order(rows):
    """Two rows, each overwritten in the other order: only the versions say so."""
    with rows.connect("READ_COMMITTED", autocommit=True) as one:
        one.execute("UPDATE t SET v = 0 WHERE id = 1")
        one.execute("UPDATE t SET v = 1 WHERE id = 1")
        one.execute("DELETE FROM t WHERE id = 1")
        one.execute("INSERT INTO t VALUES (1, 5)")
        one.execute("UPDATE t SET v = v + 1 WHERE id = 2")
    with rows.connect() as one:
        one.execute("UPDATE t SET v = 6 WHERE id = 3")
        one.rollback()
        one.execute("UPDATE t SET v = 7 WHERE id = 3")
        one.execute("SELECT * FROM t WHERE v > 0")
        one.commit()
    assert rows.stop() == {}
    verdict = rows.check("sser")
    assert verdict.outcome == "valid"
    assert verdict.certified
    columns = verdict.history.columns
    assert columns.versions_ordered
    text = rows.path.read_text()
    assert text.startswith("{:versions :ordered}\n")
    assert ":versions [3]" in text  # the deletion
    assert ":versions [0\t1]" in text
    assert ":versions [1\tnil]" in text


@pytest.mark.server
def test_another_writer_is_recorded(rows):
    """What a session past the proxy wrote is in the history, and conditions are still judged."""
    with rows.connect("REPEATABLE_READ") as one:
        assert len(one.execute("SELECT id FROM t WHERE v > 15").fetchall()) == 2
        rows.direct(
            "UPDATE t SET v = 40, at = '2026-01-02 03:04:05.25+01', done = true, price = 1.5"
            " WHERE id = 1",
            "DELETE FROM t WHERE id = 2",
            "INSERT INTO t VALUES (9, 90), (10, 100)",
            "UPDATE t SET id = 11 WHERE id = 10",
        )
        assert len(one.execute("SELECT id FROM t WHERE v > 15").fetchall()) == 2
        one.commit()
        assert len(one.execute("SELECT id FROM t WHERE v > 15").fetchall()) == 4
        one.execute("UPDATE t SET v = v + 1 WHERE id IN (9, 11)")
        one.commit()
        assert one.execute("SELECT id FROM t WHERE price = 1.5 AND done").fetchall() == [(1,)]
    assert rows.stop() == {}
    assert rows.path.read_text().count("a client that is not observed") == 6
    assert rows.verdict("si") == "valid"
    assert rows.verdict("sser") == "valid"


@pytest.mark.server
def test_a_race_with_another_writer(rows):
    """The lost update of a session that nobody observes is found."""
    with rows.connect("READ_COMMITTED") as one:
        ((value,),) = one.execute("SELECT v FROM t WHERE id = 1").fetchall()
        rows.direct("UPDATE t SET v = v + 1 WHERE id = 1")
        one.execute("UPDATE t SET v = %s WHERE id = 1", (value + 1,))
        one.commit()
    assert rows.stop() == {}
    verdict = rows.check("ser")
    assert verdict.outcome == "invalid"
    assert isolang.check(verdict.history, "pl-2").outcome == "valid"


@pytest.mark.server
def test_what_the_log_shows_of_a_recorded_transaction_is_nobody_elses(rows):
    """The rows of COPY belong to the transaction that copied them, and its reads see them."""
    with rows.connect("REPEATABLE_READ") as one:
        assert one.execute("SELECT id FROM t WHERE v = 77").fetchall() == []
        with one.cursor().copy("COPY t (id, v) FROM STDIN") as copy:
            copy.write_row((7, 77))
        assert one.execute("SELECT id FROM t WHERE v = 77").fetchall() == [(7,)]
        one.commit()
    assert rows.stop() == {}
    text = rows.path.read_text()
    assert "a client that is not observed" not in text
    assert text.count('[:insert ["t" "7"]') == 2  # the lines of its begin and end
    assert rows.verdict("sser") == "valid"


@pytest.mark.slow
@pytest.mark.server
def test_savepoints_of_another_writer_are_recorded(rows):
    """The log names another number than the row; the next write says which version it replaced."""
    with psycopg.connect(rows._conninfo) as other, other.transaction():
        other.execute("UPDATE t SET v = 11 WHERE id = 1")
        with other.transaction():
            other.execute("UPDATE t SET v = 21 WHERE id = 2")
    with rows.connect() as one:
        assert len(one.execute("SELECT id FROM t WHERE v > 0").fetchall()) == 3
        one.execute("UPDATE t SET v = v + 1 WHERE id = 2")
    assert rows.stop() == {}
    assert "a client that is not observed" in rows.path.read_text()
    assert rows.verdict("sser") == "valid"
