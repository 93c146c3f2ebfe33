"""The statements in observed and watched histories, and the templates that follow from them."""

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


ROWS = {
    "update": increment,
    "select and update": two_steps,
    "for update": lambda connection: two_steps(connection, "FOR NO KEY UPDATE"),
    "for share": lambda connection: two_steps(connection, "FOR SHARE NOWAIT"),
    "for key share": lambda connection: two_steps(connection, "FOR KEY SHARE"),
    "several rows": of_both,
}
STEPS = {
    "update": "u(t[t1], 0)",
    "select and update": "r(t[t1]) w(t[t1], 0)",
    "for update": "u(t[t1], 0) w(t[t1], 0)",
    "for share": "u(t[t1], 0) w(t[t1], 0)",
    "for key share": "r(t[t1]) w(t[t1], 0)",
    "several rows": "r(t[t1]) r(t[t2]) w(t[t3], 0)",
}
STATEMENTS = {
    "update": ["1", "1"],
    "select and update": ["1", "2"],
    "for update": ["1 for update", "2"],
    "for share": ["1 for share", "2"],
    "for key share": ["1", "2"],
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


@pytest.mark.parametrize("record", ["proxy", "watch"])
def test_templates_of_a_recording_with_a_rollback(observed, url, isolation, record):
    """What was rolled back has the statements of its writes, or none; others keep theirs."""

    def rolled_back_and_repeated(connection):
        for end in (connection.rollback, connection.commit):
            two_steps(connection)
            connection.execute("SELECT v FROM t WHERE id = 2").fetchall()
            end()

    if record == "proxy":
        observed.direct(*TABLE)
        observed.start()
        with observed.connect("READ_COMMITTED") as connection:
            rolled_back_and_repeated(connection)
        observed.stop()
        history = isolang.load_history(observed.path)
    else:
        isolation.watch_psycopg(url)
        with psycopg.connect(url) as connection:
            rolled_back_and_repeated(connection)
        history = isolation.recorder.history()
    sent = {
        history.status(txn): [str(one) for one in history.statements_of(txn)]
        for txn in range(history.columns.transactions())
    }
    assert sent["committed"] == ["1", "2", "3"]
    if record == "proxy":
        assert sent["aborted"] == ["2"]
    extracted = extract(history)
    assert [*shown(extracted.templates)] == ["program P1(t1, t2) r(t[t1]) w(t[t1], 0) r(t[t2])"]
    assert extracted.ignored == 1


@pytest.mark.parametrize("name", ROWS)
def test_a_watch_notes_statements(url, isolation, name):
    """An UPDATE is recorded as a write, and otherwise the watch notes what the proxy does."""
    isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        ROWS[name](connection)
    history = isolation.recorder.history()
    texts = STATEMENTS[name]
    assert list(map(str, history.statements_of(0))) == (texts[:1] if name == "update" else texts)


@pytest.mark.slow
def test_conditions_that_found_nothing_have_statements(url, isolation):
    """A predicate read is written later, and keeps the place of its statement."""
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT 1")
        connection.execute("SELECT v FROM t WHERE v > 15 FOR UPDATE").fetchall()
        connection.execute("UPDATE t SET v = 21 WHERE id = 2")
    path = isolation.folder / "closed.edn"
    watch.close(isolation.recorder.path, path)
    history = isolang.load_history(path)
    last = history.columns.transactions() - 1
    assert [op[0] for op in history.transaction(last).ops] == ["scan", "w"]
    assert list(map(str, history.statements_of(last))) == ["2 for update", "3"]
