"""The statements in observed histories, and the templates that follow from them."""

import psycopg
import pytest

import isolang
from isolang.foresee.decide import decide
from isolang.foresee.extract import extract, shown

TABLE = (
    "DROP TABLE IF EXISTS t",
    "CREATE TABLE t (id int PRIMARY KEY, v int)",
    "INSERT INTO t VALUES (1, 10), (2, 20)",
)


@pytest.fixture
def url(embedded):
    """A database with two rows."""
    where = f"postgresql://postgres@/postgres?host={embedded}"
    with psycopg.connect(where) as connection:
        for one in TABLE:
            connection.execute(one)
    return where


def increment(connection):
    """One statement that reads and writes."""
    connection.execute("UPDATE t SET v = v + 1 WHERE id = 1")


def two_steps(connection, lock=""):
    """Two statements, of which the second writes what the first read."""
    ((value,),) = connection.execute(f"SELECT v FROM t WHERE id = 1 {lock}").fetchall()
    connection.execute("UPDATE t SET v = %s WHERE id = 1", (value + 1,))


def of_both(connection):
    """A statement that reads two rows, and one that writes another row."""
    connection.execute("SELECT v FROM t WHERE id IN (1, 2)").fetchall()
    connection.execute("INSERT INTO t VALUES (9, 9)")


def of_subquery(connection):
    """One statement, which does not read the row again if it waits for it."""
    connection.execute("UPDATE t SET v = v + (SELECT v FROM t WHERE id = 1) WHERE id = 1")


ROWS = {
    "update": increment,
    "subquery": of_subquery,
    "select and update": two_steps,
    "for update": lambda connection: two_steps(connection, "FOR NO KEY UPDATE"),
    "for share": lambda connection: two_steps(connection, "FOR SHARE NOWAIT"),
    "for key share": lambda connection: two_steps(connection, "FOR KEY SHARE"),
    "several rows": of_both,
}
STEPS = {
    "update": "u(t[t1], 0)",
    "subquery": "r(t[t1]) w(t[t1], 0)",
    "select and update": "r(t[t1]) w(t[t1], 0)",
    "for update": "u(t[t1], 0) w(t[t1], 0)",
    "for share": "u(t[t1], 0) w(t[t1], 0)",
    "for key share": "r(t[t1]) w(t[t1], 0)",
    "several rows": "r(t[t1]) r(t[t2]) insert(t[t3])",
}
STATEMENTS = {
    "update": ["1", "1"],
    "subquery": ["None", "1"],
    "select and update": ["1", "2"],
    "for update": ["1 for no key update", "2"],
    "for share": ["1 for share", "2"],
    "for key share": ["1 for key share", "2"],
    "several rows": ["1", "1", "2"],
}


@pytest.mark.parametrize("name", ROWS)
def test_the_proxy_notes_statements(observed, name):
    """What one UPDATE read and wrote is one statement; a lock is named."""
    observed.direct(*TABLE)
    observed.start()
    with observed.connect("READ_COMMITTED") as connection:
        ROWS[name](connection)
    observed.stop()
    history = isolang.load_history(observed.path)
    last = history.columns.transactions() - 1
    assert list(map(str, history.statements_of(last))) == STATEMENTS[name]
    found = extract(history).templates
    (line,) = shown(found)
    assert line.endswith(f") {STEPS[name]}")
    # What was read may change before it is written.
    standing = decide(found, dict.fromkeys(found.programs, "mvrc")).standing
    assert standing == ("not robust" if "r(t[t1])" in line else "robust")


def test_templates_of_a_recording_with_a_rollback(observed):
    """What was rolled back has the statements of its writes; others keep theirs."""
    observed.direct(*TABLE)
    observed.start()
    with observed.connect("READ_COMMITTED") as connection:
        for end in (connection.rollback, connection.commit):
            two_steps(connection)
            connection.execute("SELECT v FROM t WHERE id = 2").fetchall()
            end()
    observed.stop()
    history = isolang.load_history(observed.path)
    sent = {
        history.status(txn): [str(one) for one in history.statements_of(txn)]
        for txn in range(history.columns.transactions())
    }
    assert sent["committed"] == ["1", "2", "3"]
    assert sent["aborted"] == ["2"]
    extracted = extract(history)
    (program,) = shown(extracted.templates)
    assert program.endswith("(t1, t2) r(t[t1]) w(t[t1], 0) r(t[t2])")
    assert extracted.ignored == 1


def test_a_watch_counts_the_statements_of_its_callers(url, isolation):
    """A statement without operations counts; a savepoint that the library sets does not."""
    isolation.watch_psycopg(url)

    def look_and_set():
        with psycopg.connect(url) as connection, connection.transaction():
            connection.execute("SELECT 1")
            with connection.transaction():
                connection.execute("SELECT v FROM t WHERE v > 15 FOR UPDATE").fetchall()
            connection.execute("UPDATE t SET v = 21 WHERE id = 2")

    isolation.call(look_and_set)
    history = isolation.history()
    (call,) = [n for n in range(history.columns.transactions()) if history.labels_of(n)]
    assert list(map(str, history.statements_of(call))) == ["2 for update", "3"]
