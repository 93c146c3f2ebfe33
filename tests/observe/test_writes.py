"""Writes that no statement returns come from the server's log, and belong to their statements."""

import threading

import psycopg
import pytest
from observe.random_writes import TABLES, play

import isolang
from isolang.observe.unseen import ALTERED, CALLED, CASCADES, CONDITIONS, COPY, RULES, TRIGGERS

from .conftest import Observed


@pytest.fixture
def logged(logging, tmp_path):
    """A proxy that reads the log before the tables of random writes."""
    proxy = Observed(logging, tmp_path / "observed.edn", 1000, reads_log=True)
    proxy.direct(*TABLES)
    yield proxy.start()
    proxy.stop()


@pytest.mark.server
def test_each_write_belongs_to_its_statement(logged):
    """Triggers, cascades, COPY and functions, with a savepoint that is rolled back."""
    with logged.connect("READ_COMMITTED") as session:
        session.execute("UPDATE counted SET n = 5 WHERE id = 1")
        with session.transaction(force_rollback=True):
            session.execute("SELECT bump(2)")
        assert session.execute("SELECT n FROM audit WHERE job = 1").fetchall() == [(5,)]
        session.execute("DELETE FROM parent WHERE id = 2")
        with session.cursor().copy("COPY done FROM STDIN") as copy:
            copy.write_row((77, 1))
        session.execute("SELECT bump(3)")
        assert len(session.execute("SELECT id FROM done WHERE n >= 0").fetchall()) == 1
        session.commit()
    unseen = logged.stop()
    assert not unseen.keys() & {TRIGGERS, CASCADES, COPY}
    assert unseen == {CALLED: 2}
    (line,) = [
        line
        for line in logged.path.read_text().splitlines()
        if ":type :ok" in line and "77" in line
    ]
    value, callers = line.partition(", :callers [")[::2]
    written = value.partition(":value [")[2].split("\t")
    by = callers.partition("]")[0].split("\t")
    of = {operation.split(" {")[0]: text for operation, text in zip(written, by, strict=True)}
    assert of['[:w ["counted" "1"]'] == '"UPDATE counted SET n = 5 WHERE id = 1"'
    assert of['[:insert ["done" "77"]'] == '"COPY done FROM STDIN"'
    assert of['[:w ["counted" "3"]'] == '"SELECT bump(3)"'
    assert '[:w ["counted" "2"]' not in of
    assert (
        '"DELETE FROM parent WHERE id = 2"'
        in by[by.index('"DELETE FROM parent WHERE id = 2"') + 1 :]
    )
    assert logged.verdict("ser") == "valid"


CLAIM = """CREATE FUNCTION claim(worker int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE job int;
BEGIN
  SELECT id INTO job FROM counted WHERE n = 0 ORDER BY id LIMIT 1;
  UPDATE counted SET n = worker WHERE id = job;
  RETURN job;
END $$"""


@pytest.mark.server
def test_two_claims_in_a_function(logging, tmp_path):
    """Both writes are in the history; but that a function has read the job, no answer shows."""
    logged = Observed(logging, tmp_path / "observed.edn", 1000, reads_log=True)
    logged.direct(*TABLES, CLAIM)
    logged.start()
    with logged.connect("READ_COMMITTED") as first, logged.connect("READ_COMMITTED") as second:
        jobs = [first.execute("SELECT claim(7)").fetchall()]
        waiting = threading.Thread(
            target=lambda: jobs.append(second.execute("SELECT claim(8)").fetchall())
        )
        waiting.start()
        waiting.join(0.1)
        first.commit()
        waiting.join()
    assert jobs == [[(1,)], [(1,)]]
    assert logged.stop() == {CALLED: 2}
    text = logged.path.read_text()
    assert all(f'[:w ["counted" "1"] {{"id" 1 "n" {worker} ' in text for worker in (7, 8))
    verdict = isolang.check(isolang.load_history(logged.path), "ser")
    assert (verdict.outcome, verdict.cause) == ("unknown", "unseen")
    assert "public.claim (plpgsql), in SELECT claim(7)" in verdict.reason


@pytest.mark.server
def test_a_condition_on_rows_that_only_the_log_shows(logged):
    """The server cannot evaluate it, because it has no images of these rows."""
    with logged.connect("READ_COMMITTED", autocommit=True) as one:
        one.execute("SELECT id FROM done WHERE n % 7 = 5")
        one.execute("SELECT id FROM counted WHERE n % 7 = 5")
        with one.cursor().copy("COPY done FROM STDIN") as copy:
            copy.write_row((77, 5))
        one.execute("SELECT id FROM done WHERE n % 7 = 4")
    history = logged.observer.history
    assert logged.stop() == {CONDITIONS: 2}
    why = {read.shown: read.condition.reason for read in history.evaluated_reads}
    assert [text for text, reason in why.items() if not reason] == [
        "SELECT id FROM counted WHERE n % 7 = 5"
    ]
    assert logged.verdict("ser") == "valid"


@pytest.mark.server
@pytest.mark.parametrize(
    ("level", "spec"),
    [("SERIALIZABLE", "ser"), ("REPEATABLE_READ", "si"), ("READ_COMMITTED", "pl-2")],
)
def test_random_writes_keep_the_level_of_the_server(logged, level, spec):
    """No shape of write accuses the server."""
    play(logged.connect, getattr(psycopg.IsolationLevel, level), "small", transactions=10)
    unseen = logged.stop()
    assert not unseen.keys() & {TRIGGERS, CASCADES, COPY}
    assert logged.verdict(spec) == "valid"


@pytest.mark.server
def test_writes_of_a_trigger_between_statements(logged):
    """They follow the rows of their own statement, whose condition shows what they contain."""
    with logged.connect("READ_COMMITTED") as connection:
        connection.execute("UPDATE counted SET n = 6 WHERE n >= 0")
        connection.execute("UPDATE counted SET n = 7 WHERE id = 1")
    logged.stop()
    history = isolang.load_history(logged.path)
    last = history.columns.transactions() - 1
    statements = [str(statement).partition(" ")[0] for statement in history.statements_of(last)]
    assert statements == sorted(statements)
    assert "None" not in statements
    assert logged.verdict("ser") == "valid"


@pytest.mark.server
def test_an_insert_into_a_partition_behind_a_savepoint(logged):
    """Its version has the number of the savepoint, which only the log can do without."""
    with logged.connect("READ_COMMITTED") as connection:
        connection.execute("INSERT INTO part VALUES (50, 0, 1)")
        with connection.transaction():
            connection.execute("INSERT INTO part VALUES (51, 0, 1)")
        connection.execute("INSERT INTO part VALUES (52, 0, 1)")
    with logged.connect("READ_COMMITTED") as connection:
        assert len(connection.execute("SELECT id FROM part WHERE n = 1").fetchall()) == 4
    assert logged.stop() == {}
    assert logged.path.read_text().count('[:insert ["part" "5') == 2 * 3
    assert logged.verdict("ser") == "valid"


@pytest.mark.server
@pytest.mark.parametrize("sets", [True, False])
def test_a_trigger_that_runs_later(logging, tmp_path, sets):
    """What it writes precedes the first read that shows it; a read before that accuses nobody."""
    logged = Observed(logging, tmp_path / "later.edn", 1000, reads_log=True, server_on_trial=True)
    logged.direct(
        "DROP TABLE IF EXISTS first, second",
        "CREATE TABLE first (id int PRIMARY KEY, n int)",
        "CREATE TABLE second (id int PRIMARY KEY, n int)",
        "INSERT INTO first VALUES (1, 1), (2, 2)",
        "INSERT INTO second VALUES (1, 1), (2, 2), (3, 3)",
        "CREATE OR REPLACE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN DELETE FROM second WHERE id = NEW.id; "
        "UPDATE second SET n = 9 WHERE id = 3; RETURN NULL; END'",
        "CREATE CONSTRAINT TRIGGER later AFTER UPDATE ON first DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION later()",
    )
    logged.start()
    query = "SELECT id FROM second WHERE n > 0 ORDER BY id"
    with logged.connect("READ_COMMITTED") as connection:
        connection.execute("UPDATE first SET n = 5 WHERE id = 1")
        assert connection.execute(query).fetchall() == [(1,), (2,), (3,)]
        if sets:
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            assert connection.execute(query).fetchall() == [(2,), (3,)]
            assert connection.execute("SELECT n FROM second WHERE id = 3").fetchall() == [(9,)]
        connection.execute("UPDATE second SET n = 7 WHERE id = 2")
    assert logged.stop() == {CALLED: 1}
    assert logged.path.read_text().count("[:rp ") == 1 + sets
    assert logged.verdict("ser") == "valid"
    logged.direct("DROP TABLE first, second")


@pytest.mark.server
def test_a_role_that_policies_apply_to(logged):
    """The owner sees all rows; once a session has changed its role, it may not."""
    logged.direct(
        "DROP ROLE IF EXISTS guest", "CREATE ROLE guest", "GRANT USAGE ON SCHEMA public TO guest",
        "GRANT SELECT ON job TO guest",
        "ALTER TABLE job ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY few ON job USING (id < 3)",
    )  # fmt: skip
    with logged.connect("READ_COMMITTED") as session:
        assert len(session.execute("SELECT id FROM job WHERE n > 0").fetchall()) == 8
        session.execute("SET ROLE guest")
        session.commit()
        session.execute("SET LOCAL ROLE postgres")
        assert len(session.execute("SELECT id FROM job WHERE n > 0").fetchall()) == 8
        session.commit()
        assert len(session.execute("SELECT id FROM job WHERE n > 0").fetchall()) == 2
    assert logged.stop()[RULES] == 2
    assert logged.path.read_text().count("[:rp ") == 1
    logged.direct("DROP OWNED BY guest", "DROP ROLE guest")


@pytest.mark.server
def test_a_text_that_alters_a_table_and_writes_it(logged):
    """The server executes it as without the proxy, although a column is gone that was known."""
    with logged.connect("READ_COMMITTED", autocommit=True) as session:
        session.execute("UPDATE job SET n = 1 WHERE id = 1")
        session.execute("ALTER TABLE job DROP COLUMN state; UPDATE job SET n = 2 WHERE id = 1")
        assert session.execute("SELECT n FROM job WHERE id = 1").fetchall() == [(2,)]
    assert logged.stop()[ALTERED] == 1
