"""Races of applications through the proxy: found with their condition, and gone when mended."""

import psycopg
import pytest

from isolang.observe.unseen import CONDITIONS, SUBQUERIES

RACES = {
    "booking": (
        "room int, start timestamp, stop timestamp",
        "SELECT id FROM booking WHERE room = %s AND start < %s AND stop > %s",
        (1, "2026-01-01 10:00", "2026-01-01 09:00"),
        "INSERT INTO booking (room, start, stop) VALUES "
        "(1, '2026-01-01 09:00', '2026-01-01 10:00')",
        "start < ",
    ),
    "seat": (
        "event int, state text",
        "SELECT count(*) FROM seat WHERE event = %s AND state <> 'cancelled' HAVING true",
        (1,),
        "INSERT INTO seat (event, state) VALUES (1, 'new')",
        "state ",
    ),
    "member": (
        "name text",
        "SELECT EXISTS (SELECT 1 FROM member WHERE name = %s)",
        ("ada",),
        "INSERT INTO member (name) VALUES ('ada')",
        "name: ada",
    ),
}  # fmt: skip


def look(table):
    """The statement that looks first."""
    return RACES[table][1].replace(" HAVING true", "")


def race(observed, table, level):
    """Two transactions that each look first, and then insert a row; how many committed."""
    columns, _, given, insert, _ = RACES[table]
    observed.direct(f"DROP TABLE IF EXISTS {table}")
    observed.direct(f"CREATE TABLE {table} (id serial PRIMARY KEY, {columns})")
    observed.start()
    both = [observed.connect(level) for _ in range(2)]
    for one in both:
        one.execute(look(table), given).fetchall()
    committed = 0
    for one in both:
        try:
            one.execute(insert)
            one.commit()
            committed += 1
        except psycopg.Error:
            one.rollback()
        one.close()
    assert observed.stop() == {}
    return committed


@pytest.mark.parametrize("table", RACES)
def test_a_race_of_absence_is_found(observed, table):
    """What a condition did not find is recorded, so that the race violates `ser`, by name."""
    assert race(observed, table, "REPEATABLE_READ") == 2
    verdict = observed.check("ser")
    assert observed.verdict("ser") == "invalid"
    assert verdict.certified
    assert RACES[table][4] in str(verdict)
    assert look(table)[:10] in str(verdict)
    assert observed.verdict("si") == "valid"


@pytest.mark.parametrize("table", RACES)
def test_the_mended_race_is_valid(observed, table):
    """At SERIALIZABLE the database refuses one of the two, and nothing is unseen."""
    assert race(observed, table, "SERIALIZABLE") == 1
    assert observed.verdict("ser") == "valid"


def test_absence_by_key(observed):
    """`if not exists: insert` by the primary key is a predicate read on its columns."""
    observed.direct("DROP TABLE IF EXISTS account", "CREATE TABLE account (id int PRIMARY KEY)")
    observed.direct("DROP TABLE IF EXISTS log", "CREATE TABLE log (id serial PRIMARY KEY, x int)")
    observed.start()
    one, two = (observed.connect("REPEATABLE_READ") for _ in range(2))
    assert one.execute("SELECT * FROM account WHERE id = %s", (7,)).fetchall() == []
    assert two.execute("SELECT * FROM log WHERE id = 1").fetchall() == []
    one.execute("INSERT INTO log VALUES (1, 1)")
    two.execute("INSERT INTO account VALUES (7)")
    one.commit()
    two.commit()
    assert observed.stop() == {}
    assert observed.verdict("si") == "valid"
    verdict = observed.check("ser")
    assert verdict.violation.anomaly == "predicate write skew"


def test_a_job_queue_that_skips_locked_rows(observed):
    """SKIP LOCKED records only the rows found, and loses nothing: the queue is valid."""
    observed.direct(
        "DROP TABLE IF EXISTS job",
        "CREATE TABLE job (id int PRIMARY KEY, state text)",
        "INSERT INTO job SELECT i, 'new' FROM generate_series(1, 4) i",
    )
    observed.start()
    both = [observed.connect() for _ in range(2)]
    for _ in range(2):
        for one in both:
            (job,) = one.execute(
                "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
            ).fetchone()
            one.execute("UPDATE job SET state = 'done' WHERE id = %s", (job,))
        for one in both:
            one.commit()
    for one in both:
        one.close()
    assert observed.stop() == {}
    assert observed.verdict("ser") == "valid"


CLAIMS = [
    "UPDATE job SET state = 'done' WHERE id = (SELECT id FROM job WHERE state = 'new'"
    " ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id",
    'DELETE FROM job WHERE job.id IN (SELECT job.id FROM "job" WHERE due < now()'
    " LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)",
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_job_queue_in_one_statement(observed, claim):
    """The row that the subquery found is the row that the statement writes: it counts as read."""
    observed.direct(
        "DROP TABLE IF EXISTS job",
        "CREATE TABLE job (id int PRIMARY KEY, state text, due timestamptz)",
        "INSERT INTO job SELECT i, 'new', '2020-01-01' FROM generate_series(1, 4) i",
    )
    observed.start()
    both = [observed.connect() for _ in range(2)]
    for _ in range(2):
        assert [one.execute(claim).rowcount for one in both] == [1, 1]
        for one in both:
            one.commit()
    for one in both:
        one.close()
    assert observed.stop() == {}
    assert observed.verdict("ser") == "valid"
    assert observed.path.read_text().count('[:r ["job"') == 4


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE job SET state = 'x' WHERE kind = (SELECT kind FROM job WHERE state = 'new'"
        " LIMIT 1 FOR UPDATE SKIP LOCKED)",
        "UPDATE job SET state = 'x' WHERE id = (SELECT id FROM job WHERE state = 'new' LIMIT 1"
        " FOR UPDATE)",
        "UPDATE job SET state = 'x' WHERE id = (SELECT id FROM job j WHERE job.state = 'new'"
        " LIMIT 1 FOR UPDATE SKIP LOCKED)",
        "UPDATE job SET state = 'x' WHERE id = (SELECT id FROM other WHERE id = 1"
        " LIMIT 1 FOR UPDATE SKIP LOCKED)",
        "UPDATE job SET state = 'x' WHERE id = (SELECT id FROM other job WHERE id = 1"
        " LIMIT 1 FOR UPDATE SKIP LOCKED)",
        "UPDATE job SET kind = (SELECT max(id) FROM other) WHERE id = (SELECT id FROM job"
        " WHERE state = 'new' LIMIT 1 FOR UPDATE SKIP LOCKED)",
    ],
)
def test_other_subqueries_are_not_seen(observed, text):
    """Another column, table, alias or no SKIP LOCKED: what the subquery read is counted."""
    observed.direct(
        "DROP TABLE IF EXISTS job, other",
        "CREATE TABLE job (id int PRIMARY KEY, state text, kind int)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO other VALUES (1)",
        "INSERT INTO job SELECT i, 'new', 1 FROM generate_series(1, 4) i",
    )
    observed.start()
    with observed.connect() as one:
        one.execute(text)
    assert observed.stop().keys() & {CONDITIONS, SUBQUERIES}


@pytest.mark.slow
def test_an_atomic_update_that_finds_no_room(observed):
    """An UPDATE by key at READ COMMITTED saw one version of one row, also if it did not match."""
    observed.direct(
        "DROP TABLE IF EXISTS event",
        "CREATE TABLE event (id int PRIMARY KEY, seats int)",
        "INSERT INTO event VALUES (1, 1)",
    )
    observed.start()
    both = [observed.connect() for _ in range(2)]
    counts = []
    for one in both:
        done = one.execute("UPDATE event SET seats = seats - 1 WHERE id = 1 AND seats > 0")
        counts.append(done.rowcount)
        one.commit()
        one.close()
    assert counts == [1, 0]
    assert observed.stop() == {}
    assert "[:rp " in observed.path.read_text()
    assert observed.verdict("sser") == "valid"
