"""No verdict of invalid comes from the recording: what nobody saw proves nothing."""

import threading
from collections import Counter

import psycopg
import pytest

from isolang.observe.unseen import (
    CALLED,
    CASCADES,
    CONDITIONS,
    CONDITIONS_ON_UNSEEN_WRITES,
    COPY,
    FOREIGN,
    LARGE_TABLES,
    LIMITED,
    NO_KEY,
    NO_ROW,
    PROCEDURES,
    RECHECKED,
    SUBQUERIES,
    TRIGGERS,
    VIEWS,
)


@pytest.fixture
def rows(observed):
    """A proxy before a table with three rows."""
    observed.direct(
        "DROP TABLE IF EXISTS t, child CASCADE",
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
    )
    return observed.start()


def test_a_deletion_past_the_proxy(rows):
    """A row that somebody else deleted is missing from a scan: unseen, and not a violation."""
    with rows.connect() as one:
        assert len(one.execute("SELECT * FROM t WHERE v > 5").fetchall()) == 3
    rows.direct("DELETE FROM t WHERE id = 2")
    with rows.connect() as one:
        assert len(one.execute("SELECT * FROM t WHERE v > 5").fetchall()) == 2
    assert rows.stop() == {FOREIGN: 1, CONDITIONS_ON_UNSEEN_WRITES: 2}
    assert "[:rp" not in rows.path.read_text()
    assert rows.verdict("sser") == "valid"


def test_an_update_past_the_proxy(rows):
    """A version of a writer that nobody saw is unseen, never a thin-air read."""
    rows.direct("UPDATE t SET v = 21 WHERE id = 2")
    with rows.connect() as one:
        assert one.execute("SELECT v FROM t WHERE id = 2").fetchall() == [(21,)]
        one.execute("UPDATE t SET v = v + 1 WHERE id = 2")
    assert rows.stop()[FOREIGN] == 2
    assert rows.verdict("sser") == "valid"


def test_rows_that_a_foreign_key_deletes(rows):
    """Rows that ON DELETE CASCADE removes have no writer that was seen."""
    with rows.connect(autocommit=True) as one:
        one.execute("CREATE TABLE child (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE)")
        one.execute("INSERT INTO child VALUES (1, 1), (2, 2)")
        assert len(one.execute("SELECT * FROM child WHERE t < 5").fetchall()) == 2
        one.execute("DELETE FROM t WHERE id = 1")
        assert len(one.execute("SELECT * FROM child WHERE t < 5").fetchall()) == 1
    unseen = rows.stop()
    assert unseen[CASCADES] == 1
    assert unseen[FOREIGN] == 1
    assert unseen[CONDITIONS_ON_UNSEEN_WRITES] == 2
    assert rows.verdict("sser") == "valid"


@pytest.mark.parametrize(
    ("change", "cascades"),
    [("v = v + 1", False), ("v = 5", False), ("id = 7", True), ("id = id + 6", True)],
)
def test_only_keys_cascade(rows, change, cascades):
    """ON UPDATE CASCADE concerns statements that assign to a column to which a key can refer."""
    with rows.connect(autocommit=True) as one:
        one.execute("CREATE TABLE child (id int PRIMARY KEY, t int REFERENCES t ON UPDATE CASCADE)")
        one.execute(f"UPDATE t SET {change} WHERE id = 1")
    assert (CASCADES in rows.stop()) == cascades


def test_savepoints(rows):
    """Behind a savepoint xmin is another number, and what is rolled back is not recorded."""
    with rows.connect("SERIALIZABLE") as one:
        one.execute("SELECT v FROM t WHERE id = 1")
        with one.transaction():
            one.execute("UPDATE t SET v = 11 WHERE id = 1")
            one.execute("UPDATE t SET v = 21 WHERE id = 2")
        with one.transaction():
            one.execute("UPDATE t SET v = 31 WHERE id = 3")
            raise psycopg.Rollback
    with rows.connect("SERIALIZABLE") as one:
        found = one.execute("SELECT v FROM t WHERE id IN (1, 2, 3) ORDER BY id").fetchall()
        assert found == [(11,), (21,), (30,)]
    assert rows.stop() == {}
    assert rows.verdict("sser") == "valid"
    assert '"v" 31' not in rows.path.read_text()


def test_a_key_that_is_inserted_again_is_another_row(rows):
    """At REPEATABLE READ an INSERT passes a concurrent DELETE of its key, which `si` allows."""
    one, two = (rows.connect("REPEATABLE_READ") for _ in range(2))
    assert one.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(10,)]
    two.execute("DELETE FROM t WHERE id = 1")
    two.commit()
    one.execute("INSERT INTO t VALUES (1, 99)")
    assert len(one.execute("SELECT v FROM t WHERE id = 1").fetchall()) == 2
    one.commit()
    assert rows.stop() == {}
    assert '"1#2"' in rows.path.read_text()
    assert rows.verdict("si") == "valid"


def test_a_blind_update_by_key_reads_nothing(rows):
    """Only an UPDATE that uses more than the key reads the version that it replaces."""
    with rows.connect() as one:
        one.execute("UPDATE t SET v = 5 WHERE id = 1")
        one.execute("UPDATE t SET v = v + 1 WHERE id = 2")
    assert rows.stop() == {}
    text = rows.path.read_text()
    assert text.count("[:r ") == 1
    assert '[:r ["t" "2"] {"id" 2 "v" 20 ' in text


@pytest.mark.parametrize("level", ["READ_COMMITTED", "REPEATABLE_READ"])
def test_conditions_of_statements_that_lock(rows, level):
    """UPDATE, DELETE and FOR UPDATE are predicate reads, although READ COMMITTED checks again."""
    with rows.connect(level) as one:
        one.execute("UPDATE t SET v = 0 WHERE v > 15")
        one.execute("SELECT * FROM t WHERE v > 5 FOR UPDATE").fetchall()
        one.execute("DELETE FROM t WHERE v = 0")
    assert rows.stop() == {}
    assert rows.path.read_text().count("[:rp ") == 3
    assert rows.verdict("sser") == "valid"


@pytest.mark.parametrize(
    ("changes", "is_serial"),
    [
        (["v = 0 WHERE id = 1"], True),
        (["v = 15 WHERE id = 1"], True),
        (["id = 9 WHERE id = 1"], True),
        # The server judged row 3 in the snapshot, and row 1 in its newest version.
        (["v = 0 WHERE id = 1", "v = 11 WHERE id = 3"], False),
        (["v = 15 WHERE id = 1", "v = 11 WHERE id = 3"], False),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET v = v + 100 WHERE v BETWEEN 5 AND 20",
        "DELETE FROM t WHERE v BETWEEN 5 AND 20",
        "SELECT id FROM t WHERE v BETWEEN 5 AND 20 FOR UPDATE",
        "SELECT id FROM t WHERE v BETWEEN 5 AND 20 FOR SHARE",
    ],
)
def test_rows_that_read_committed_checks_again(rows, text, changes, is_serial):
    """Each row is judged in one version, so the level holds; a serial order may be missing."""
    first, second = rows.connect(), rows.connect()
    for change in changes:
        second.execute(f"UPDATE t SET {change}")
    locker = threading.Thread(target=lambda: first.execute(text))
    locker.start()
    wait_for_a_lock(rows)
    second.commit()
    locker.join()
    first.commit()
    assert rows.stop() == {}
    assert rows.path.read_text().count('[:rp {:table "t"') == 1
    assert {rows.verdict("pl-2"), rows.verdict("rc")} == {"valid"}
    assert (rows.verdict("ser") == "valid") == is_serial


def test_a_limit_in_an_order_that_read_committed_checks_again(rows):
    """LIMIT chooses the rows in the order of the versions in the snapshot."""
    first, second = rows.connect(), rows.connect()
    second.execute("UPDATE t SET id = 9 WHERE id = 1")
    text = "SELECT id, v FROM t WHERE v > 5 ORDER BY id LIMIT 1 FOR UPDATE"
    answers = []
    locker = threading.Thread(target=lambda: answers.extend(first.execute(text)))
    locker.start()
    wait_for_a_lock(rows)
    second.commit()
    locker.join()
    first.commit()
    assert answers == [(9, 10)]
    assert rows.stop() == {RECHECKED: 1}
    assert {rows.verdict("pl-2"), rows.verdict("rc")} == {"valid"}


def wait_for_a_lock(rows):
    """Wait until some session waits for another one."""
    with psycopg.connect(rows._conninfo, autocommit=True) as other:
        while not other.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0]:
            pass


def test_keys_that_an_insert_found(rows):
    """ON CONFLICT (key) DO NOTHING says which keys existed, in whatever version."""
    with rows.connect(autocommit=True) as session:
        for text in (
            "INSERT INTO t (v, id) VALUES (0, 1), (0, 7) ON CONFLICT (id) DO NOTHING RETURNING id",
            "INSERT INTO t VALUES (2) ON CONFLICT (id) DO NOTHING",
            "INSERT INTO t VALUES ('3', NULL), (8, 1) ON CONFLICT (id) DO NOTHING",
        ):
            session.execute(text)
        session.prepare_threshold = 0
        session.execute("INSERT INTO t VALUES (%s, 0) ON CONFLICT (id) DO NOTHING", (7,))
    assert rows.stop() == {}
    text = rows.path.read_text()
    assert [text.count(f'[:r-not-in ["t" "{key}"] [nil]]') for key in range(9)] == [
        0, 1, 1, 1, 0, 0, 0, 1, 0,
    ]  # fmt: skip
    assert rows.verdict("sser") == "valid"


def test_a_key_that_several_rows_had(rows):
    """Which of them an INSERT found is not known; a writer that was not seen may have added one."""
    with rows.connect(autocommit=True) as session:
        session.execute("SELECT id FROM t WHERE id = 9")
        session.execute("INSERT INTO t VALUES (3, 6) ON CONFLICT (id) DO NOTHING")
        rows.direct("DELETE FROM t WHERE id = 3")
        session.execute("DELETE FROM t WHERE id = 2")
        session.execute("INSERT INTO t VALUES (2, 0)")
        session.execute("INSERT INTO t VALUES (2, 6) ON CONFLICT (id) DO NOTHING")
    assert rows.stop() == {FOREIGN: 1, NO_ROW: 1, CONDITIONS_ON_UNSEEN_WRITES: 2}
    assert "[:r-not-in" not in rows.path.read_text()
    assert rows.verdict("sser") == "valid"


def test_a_skipped_insert_that_the_server_does_not_notice(rows):
    """PostgreSQL's SERIALIZABLE does not count what ON CONFLICT DO NOTHING found as read.

    The verdict is not invalid, because a writer that nobody saw may have inserted the key.
    """
    first, second = (rows.connect("SERIALIZABLE") for _ in range(2))
    assert second.execute("SELECT v FROM t WHERE id = 2").fetchall() == [(20,)]
    assert first.execute("INSERT INTO t VALUES (1) ON CONFLICT (id) DO NOTHING").rowcount == 0
    second.execute("DELETE FROM t WHERE id = 1")
    second.commit()
    first.execute("UPDATE t SET v = 5 WHERE id = 2")
    first.commit()
    assert rows.stop() == {}
    assert rows.verdict("si") == "valid"
    assert rows.verdict("ser") == "unknown"


def test_a_limit_that_was_not_reached(rows):
    """LIMIT n that returned fewer rows found all; one that returned n rows did not."""
    with rows.connect() as one:
        one.execute("SELECT 1 FROM t WHERE v = 99 LIMIT 1").fetchall()
        one.execute("SELECT id FROM t WHERE v > 0 LIMIT 5").fetchall()
        assert one.execute("SELECT id FROM t WHERE v > 0 LIMIT 1").fetchall()
    assert rows.stop() == {}
    assert rows.path.read_text().count("[:rp ") == 2


def test_a_limit_in_an_order(rows):
    """The first rows in the order of a column say that no other row comes before the last."""
    with rows.connect("REPEATABLE_READ") as one:
        found = one.execute("SELECT t.id FROM t WHERE v > 5 ORDER BY t.id LIMIT 2").fetchall()
        assert found == [(1,), (2,)]
        found = one.execute("SELECT * FROM t ORDER BY id DESC, v LIMIT 1").fetchall()
        assert found == [(3, 30)]
    assert rows.stop() == {}
    text = rows.path.read_text()
    assert '[:and [:> :v 5] [:< :id 2]]} {["t" "1"] ' in text
    assert "[:and :true [:> :id 3]]} {}" in text
    assert text.count("[:r [") == 2
    assert rows.verdict("sser") == "valid"


def test_an_order_by_a_name_of_two_tables(rows):
    """A name without an alias may be the other table's, which the result names."""
    with rows.connect("REPEATABLE_READ", autocommit=True) as session:
        session.execute("CREATE TABLE child (id int PRIMARY KEY, t_id int)")
        session.execute("INSERT INTO child VALUES (1, 3), (2, 2), (3, 1)")
        join = "SELECT t.id FROM child c LEFT JOIN t ON c.t_id = t.id WHERE c.id > 0"
        assert session.execute(f"{join} ORDER BY id LIMIT 1").fetchall() == [(1,)]
    assert LIMITED in rows.stop()
    assert rows.verdict("si") == "valid"


def test_an_order_with_null(rows):
    """A constraint NOT NULL that was not validated promises nothing; the server ranks the rows."""
    with rows.connect("REPEATABLE_READ", autocommit=True) as session:
        session.execute("UPDATE t SET v = NULL WHERE id = 1")
        session.execute("ALTER TABLE t ADD CONSTRAINT required NOT NULL v NOT VALID")
        answer = session.execute("SELECT id FROM t WHERE id < 9 ORDER BY v DESC LIMIT 2").fetchall()
        assert answer == [(1,), (3,)]
    assert rows.stop() == {}
    assert '"xmin class" -1]' in rows.path.read_text()
    assert rows.verdict("si") == "valid"


def test_a_function_that_returns_no_row(rows):
    """A set in the select list that is empty removes rows; what matches is read apart from it."""
    with rows.connect("REPEATABLE_READ", autocommit=True) as session:
        assert (
            session.execute("SELECT id, generate_series(25, v) FROM t WHERE v < 99").rowcount == 6
        )
        assert (
            session.execute("SELECT id, generate_series(25, v) FROM t WHERE id = 1").rowcount == 0
        )
        session.execute("CREATE TABLE child (id int PRIMARY KEY, t int NOT NULL REFERENCES t)")
        session.execute("INSERT INTO child VALUES (1, 1)")
        text = "SELECT c.id, unnest('{}'::int[]) FROM child c JOIN t ON c.t = t.id WHERE c.id < 9"
        assert session.execute(text).rowcount == 0
    assert rows.stop() == {}
    assert rows.path.read_text().count("[:rp ") == 2
    assert rows.verdict("si") == "valid"


def test_joins_by_key(rows):
    """LEFT JOIN by a key leaves the condition on the first table a predicate read."""
    with rows.connect(autocommit=True) as one:
        one.execute("CREATE TABLE child (id int PRIMARY KEY, t_id int, k int NOT NULL)")
        one.execute("INSERT INTO child VALUES (1, 1, 5), (2, 2, 6), (3, NULL, 7)")
    left = "SELECT c.id, t.v FROM child c LEFT OUTER JOIN t ON (c.t_id = t.id) WHERE k < %s"
    inner = "SELECT c.id, t.v FROM child c INNER JOIN t ON c.t_id = t.id WHERE c.id = %s"
    with rows.connect("REPEATABLE_READ") as one:
        assert len(one.execute(left, (7,)).fetchall()) == 2
        assert one.execute(left, (2,)).fetchall() == []
        assert one.execute(inner, (1,)).fetchall() == [(1, 10)]
    assert rows.stop() == {}
    assert rows.verdict("sser") == "valid"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT c.id FROM child c LEFT JOIN t ON c.t_id = t.id"
        " JOIN generate_series(1, 0) g ON true WHERE c.k < 7",
        "SELECT c.id FROM child c LEFT JOIN t ON c.t_id = t.id"
        " JOIN (SELECT 1 AS one WHERE false) g ON true WHERE c.k < 7",
        "SELECT c.id FROM t RIGHT JOIN child c ON c.t_id = t.id WHERE t.id = 1",
        "SELECT c.id FROM child c LEFT JOIN t USING (id) WHERE c.k < 7",
    ],
)
def test_other_joins(rows, text):
    """Joins of other forms, with functions or subqueries, are counted."""
    rows.direct(
        "CREATE TABLE child (id int PRIMARY KEY, t_id int, k int NOT NULL)",
        "INSERT INTO child VALUES (1, 1, 5), (2, 2, 6), (3, NULL, 7)",
    )
    with rows.connect("REPEATABLE_READ", autocommit=True) as one:
        one.execute(text)
        assert CONDITIONS in rows.observer.history.unseen
    rows.stop()
    assert '[:rp {:table "child"' not in rows.path.read_text()


def test_a_write_to_a_table_that_nobody_reads(rows):
    """A log without a primary key is harmless until some statement reads it."""
    rows.direct("DROP TABLE IF EXISTS log", "CREATE TABLE log (what text)")
    with rows.connect() as one:
        one.execute("INSERT INTO log SELECT 'x' || i FROM generate_series(1, 3) i")
        one.execute("INSERT INTO t SELECT i, 0 FROM generate_series(7, 8) i")
    assert rows.stop() == {}
    assert rows.observer is None
    assert rows.path.read_text().count('[:insert ["t" ') == 4


def test_a_write_to_a_table_that_is_read(rows):
    """Both the write and the read of a table without a primary key are counted."""
    rows.direct("DROP TABLE IF EXISTS log", "CREATE TABLE log (what text)")
    with rows.connect() as one:
        one.execute("INSERT INTO log VALUES ('x')")
        one.execute("SELECT * FROM log")
    assert rows.stop() == {NO_KEY: 2}


def test_every_statement_has_operations_or_a_count(rows):
    """What is not recorded is counted, once for each statement, with its text."""
    lost = {
        "WITH RECURSIVE x AS (SELECT 1 FROM t) SELECT * FROM x": "WITH",
        "SELECT DISTINCT t.v FROM t JOIN t b USING (v)": "SELECT DISTINCT",
        "SELECT 1 FROM seen UNION SELECT 2": "UNION, INTERSECT and EXCEPT",
        "SELECT * FROM t WHERE v > length(current_user)": CONDITIONS,
        "SELECT * FROM t a JOIN t b USING (v)": CONDITIONS,
        "SELECT * FROM (SELECT v FROM t FETCH FIRST ROW ONLY) x": "subqueries in FROM",
        "SELECT id FROM t ORDER BY v, current_user LIMIT 1": LIMITED,
        "SELECT v AS id FROM t ORDER BY id LIMIT 1": LIMITED,
        "SELECT id FROM t OFFSET 1": LIMITED,
        "INSERT INTO t SELECT 9, v FROM t WHERE id = 1 FETCH FIRST ROW ONLY": SUBQUERIES,
        "DO $$ BEGIN UPDATE t SET v = 1 WHERE id = 1; END $$": PROCEDURES,
        "INSERT INTO t VALUES (1, 1) ON CONFLICT (id) WHERE true DO NOTHING": NO_ROW,
        "INSERT INTO t VALUES (1, 1), (1, 2) ON CONFLICT (id) DO NOTHING": NO_ROW,
        "INSERT INTO t VALUES (0 + 1, 1) ON CONFLICT (id) DO NOTHING": NO_ROW,
        "INSERT INTO t VALUES (1.3, 1) ON CONFLICT (id) DO NOTHING": NO_ROW,
        "INSERT INTO t VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = 5 WHERE t.v > 99": NO_ROW,
        "INSERT INTO t SELECT 1, 1 ON CONFLICT DO NOTHING": NO_ROW,
        "COPY t TO STDOUT": COPY,
        "SELECT * FROM keyless": NO_KEY,
        "SELECT * FROM seen": VIEWS,
        "SELECT touch()": CALLED,
        "SELECT GRÖSSE()": CALLED,
        "SELECT * FROM ts_stat('SELECT to_tsvector(v::text) FROM t')": CALLED,
        "SELECT lo_from_bytea(0, 'x')": CALLED,
    }
    rows.direct(
        "DROP TABLE IF EXISTS keyless",
        "CREATE TABLE keyless (v int)",
        "CREATE VIEW seen AS SELECT * FROM t",
        "CREATE OR REPLACE FUNCTION touch() RETURNS int LANGUAGE sql AS 'SELECT 1 FROM t'",
        "CREATE OR REPLACE FUNCTION GRÖSSE() RETURNS int LANGUAGE sql AS 'SELECT 1 FROM t'",
    )
    rows.observer._refresh(psycopg.connect(rows._conninfo), rows.observer.observe("postgres"))
    for text, kind in lost.items():
        before = Counter(rows.observer.history.unseen)
        with rows.connect(autocommit=True) as one:
            if text.startswith("COPY"):
                with one.cursor().copy(text) as copy:
                    list(copy)
            else:
                one.execute(text)
        after = rows.observer.history.unseen
        assert Counter(after) - before == {kind: 1}, text
        assert after.examples[kind]


def test_functions_that_a_statement_calls_without_their_names(rows):
    """A CHECK that counts rows is a read that nobody sees, and lets races through."""
    called = {
        "SELECT 1 @#@ 2 FROM t WHERE id = 1": {CALLED: 1},
        "SELECT '5'::checked FROM t WHERE id = 1": {CALLED: 1},
        "SELECT v FROM t WHERE id = 1": {},
        "SELECT a FROM atmost WHERE id = 1": {},
        "SELECT pg_catalog.abs(a) FROM atmost WHERE id = 1": {},
        "INSERT INTO atmost VALUES (3, 3)": {TRIGGERS: 1, CALLED: 1},
        "INSERT INTO coded (id) VALUES (3)": {TRIGGERS: 1, CALLED: 1},
        "INSERT INTO domained VALUES (3, 3)": {TRIGGERS: 1, CALLED: 1},
        "INSERT INTO quiet (id) VALUES (3)": {},
    }
    rows.direct(
        "DROP TABLE IF EXISTS atmost, coded, domained, quiet",
        "DROP FUNCTION IF EXISTS counts(int, int), pure() CASCADE",
        "CREATE FUNCTION counts(int, int DEFAULT 1) RETURNS bool LANGUAGE sql AS "
        "'SELECT count(*) < 9 FROM t'",
        "CREATE FUNCTION pure() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 5; END'",
        "CREATE OPERATOR @#@ (LEFTARG = int, RIGHTARG = int, FUNCTION = counts)",
        "CREATE DOMAIN checked AS int CHECK (counts(VALUE))",
        "CREATE TABLE atmost (id int PRIMARY KEY, a int CHECK (counts(a)))",
        "CREATE TABLE coded (id int PRIMARY KEY, a bool DEFAULT counts(5))",
        "CREATE TABLE domained (id int PRIMARY KEY, a checked)",
        "CREATE TABLE quiet (id int PRIMARY KEY, a int DEFAULT pure(), b int CHECK (abs(b) > 1))",
    )  # fmt: skip
    rows.observer._refresh(psycopg.connect(rows._conninfo), rows.observer.observe("postgres"))
    for text, kinds in called.items():
        before = Counter(rows.observer.history.unseen)
        with rows.connect(autocommit=True) as one:
            one.execute(text)
        assert Counter(rows.observer.history.unseen) - before == kinds, text
    rows.direct(
        "DROP TABLE atmost, coded, domained, quiet", "DROP FUNCTION counts, pure CASCADE",
        "DROP DOMAIN checked",
    )  # fmt: skip


@pytest.mark.parametrize("most_rows", [2])
def test_a_large_table(rows, most_rows):
    """Of a table with more rows than --most-rows, only the primary key is used in conditions."""
    with rows.connect() as one:
        assert one.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(10,)]
        one.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        assert one.execute("SELECT v FROM t WHERE id = 9").fetchall() == []
    with rows.connect() as one:
        assert one.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(11,)]
        assert one.execute("SELECT v FROM t WHERE v = 11").fetchall() == [(11,)]
    assert rows.stop() == {LARGE_TABLES: 1}
    assert rows.verdict("sser") == "valid"


@pytest.mark.slow
def test_a_lost_connection(rows):
    """A transaction whose COMMIT was not answered is indeterminate; one without it is aborted."""
    one = rows.connect()
    one.execute("UPDATE t SET v = 0 WHERE id = 1")
    pid = one.info.backend_pid
    rows.direct(f"SELECT pg_terminate_backend({pid})")
    with pytest.raises(psycopg.Error):
        one.commit()
    assert rows.stop() == {}
    assert rows.verdict("sser") == "valid"
