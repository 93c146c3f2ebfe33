"""Servers before PostgreSQL 18 do not return the old versions of an UPDATE."""

import pytest

from isolang.observe.unseen import CONDITIONS_ON_UNSEEN_WRITES, OLD_SERVER


@pytest.fixture
def rows(observed):
    """A proxy that takes the server for an older one, before a table with two rows."""
    observed.direct(
        "DROP TABLE IF EXISTS t",
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t VALUES (1, 10), (2, 20)",
    )
    observed.start()
    observed.observer.observe("postgres").database.version = 150000
    observed.observer.history.is_old = True
    return observed


def both(rows, level, look, *writes):
    """Two transactions look, then each writes."""
    pair = [rows.connect(level) for _ in range(2)]
    for one in pair:
        one.execute(look).fetchall()
    for one, write in zip(pair, writes, strict=True):
        one.execute(write)
        one.commit()
        one.close()


def test_a_lost_update_at_read_committed(rows):
    """An UPDATE by key writes the row that was read, also if its old version is not known."""
    write = "UPDATE t SET v = 11 WHERE id = 1"
    both(rows, "READ_COMMITTED", "SELECT v FROM t WHERE id = 1", write, write)
    assert rows.stop() == {}
    assert rows.check("ser").violation.anomaly == "lost update"
    assert rows.verdict("pl-2") == "valid"


def test_snapshots_know_the_old_version(rows):
    """From REPEATABLE READ on, it is that of the snapshot, so that conditions are judged."""
    look = "SELECT id FROM t WHERE v > 99"
    both(rows, "REPEATABLE_READ", look, *(f"UPDATE t SET v = 100 WHERE id = {n}" for n in (1, 2)))
    with rows.connect("REPEATABLE_READ") as one:
        one.execute("UPDATE t SET v = v + 1 WHERE v = 100")
        one.execute("UPDATE t SET v = v + 1 WHERE v = 101")
        one.execute("DELETE FROM t WHERE v = 102")
    assert rows.stop() == {}
    assert rows.check("ser").violation.anomaly == "predicate write skew"
    assert rows.verdict("si") == "valid"


@pytest.mark.parametrize(
    ("level", "text", "unseen"),
    [
        ("READ_COMMITTED", "UPDATE t SET v = v + 1 WHERE id = 1", {OLD_SERVER}),
        ("READ_COMMITTED", "UPDATE t SET v = 5 WHERE id = 1 AND v > 0", {OLD_SERVER}),
        ("READ_COMMITTED", "UPDATE t SET v = 5 WHERE v > 15", {OLD_SERVER}),
        ("REPEATABLE_READ", "UPDATE t SET id = 3 WHERE id = 1", {OLD_SERVER}),
        (
            "REPEATABLE_READ",
            "INSERT INTO t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET v = t.v + 1",
            {OLD_SERVER},
        ),
    ],
)
def test_what_is_lost_is_counted(rows, level, text, unseen):
    """What such a write read is unseen, and conditions on its table are taken out."""
    with rows.connect(level) as one:
        one.execute("SELECT id FROM t WHERE v > 70").fetchall()
        one.execute(text)
    with rows.connect(level) as one:
        one.execute("SELECT * FROM t WHERE id = 1").fetchall()
    assert set(rows.stop()) == {*unseen, CONDITIONS_ON_UNSEEN_WRITES}
    assert "[:rp " not in rows.path.read_text()
    assert rows.verdict("sser") == "valid"


@pytest.mark.slow
def test_a_key_that_was_deleted(rows):
    """Which row an UPDATE wrote is not known if its key had two rows."""
    with rows.connect("READ_COMMITTED", autocommit=True) as one:
        one.execute("DELETE FROM t WHERE id = 1")
        one.execute("INSERT INTO t VALUES (1, 5)")
        one.execute("UPDATE t SET v = 6 WHERE id = 1")
        assert one.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(6,)]
    assert set(rows.stop()) == {OLD_SERVER}
    assert rows.verdict("sser") == "valid"
    assert '[:w ["t" "1#3"]' in rows.path.read_text()
