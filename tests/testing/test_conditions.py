"""What the conditions of a watched application do not find is counted, and never silently."""

import asyncio

import pytest
from support.source_lines import assert_names_lines
from support.watched import names, operations, predicate_reads

import isolang
from isolang.observe.unseen import CONDITIONS, CONDITIONS_ON_UNSEEN_WRITES, DECIDED, kind_of

psycopg = pytest.importorskip("psycopg")

from isolang.testing.assertion import UndecidedError  # noqa: E402
from isolang.testing.isolation import Isolation  # noqa: E402


@pytest.fixture
def url(embedded):
    """A database with six jobs, of three owners."""
    where = f"postgresql://postgres@/postgres?host={embedded}"
    with psycopg.connect(where) as connection:
        connection.execute("DROP TABLE IF EXISTS job")
        connection.execute(
            "CREATE TABLE job (id int PRIMARY KEY, code text UNIQUE, state text, owner text)"
        )
        connection.execute(
            "INSERT INTO job SELECT i, 'c' || i, 'queued', 'o' || i % 3 "
            "FROM generate_series(1, 6) AS i"
        )
    return where


@pytest.mark.parametrize(
    ("text", "values", "seen"),
    [
        ("SELECT count(*) FROM job WHERE owner = %s", ["o1"], 1),
        ("SELECT id FROM job WHERE owner = %s", ["nobody"], 1),
        ("SELECT * FROM job", [], 1),
        ("SELECT id FROM job WHERE id = %s OR owner = 'o1'", [1], 1),
        ("SELECT id FROM job WHERE id > %s", [7], 1),
        ("SELECT owner FROM job WHERE owner = %s FOR UPDATE", ["o1"], 1),
        (
            "SELECT id FROM job WHERE state = %s ORDER BY id LIMIT 1 FOR UPDATE",
            ["queued"],
            CONDITIONS,
        ),
        ("SELECT id FROM job WHERE state = %s ORDER BY id LIMIT 1", ["queued"], 1),
        ("SELECT id FROM job WHERE id = %s AND owner = 'o1'", [1], 0),
        ("SELECT id FROM job WHERE id = %s AND owner = 'o2'", [1], 1),
        ("SELECT id FROM job WHERE id = %s", [99], 1),
        ("SELECT state FROM job WHERE code = %s", ["c3"], 0),
        ("SELECT state FROM job WHERE code = %s", ["c9"], 1),
        (
            'SELECT "job"."state" FROM "job" WHERE ("job"."id" = %s AND "job"."owner" = \'o1\')',
            [1],
            0,
        ),
        ("SELECT count(*) FROM job WHERE id = %s", [1], 0),
        ("SELECT count(*) FROM job WHERE id = %s", [99], 1),
        ("SELECT id FROM job WHERE id IN (%s, 2, 3)", [1], 0),
        ("SELECT id FROM job WHERE id IN (%s, 2, 99)", [1], 1),
        ("UPDATE job SET state = 'x' WHERE id = %s AND owner = 'o1'", [1], 0),
        ("UPDATE job SET state = 'x' WHERE id = %s AND owner = 'o2'", [1], 1),
        ("UPDATE job SET state = 'x' WHERE owner = %s RETURNING id", ["o1"], 1),
        ("UPDATE job SET state = 'x' WHERE owner = %s RETURNING id", ["nobody"], 1),
        ("DELETE FROM job WHERE state = %s", ["x"], 1),
        ("DELETE FROM job WHERE id = %s", [99], 1),
        ("INSERT INTO job VALUES (%s, 'c7', '', '')", [7], 0),
        ("INSERT INTO job VALUES (%s) ON CONFLICT DO NOTHING", [1], 0),
        ("UPDATE job SET id = 9 WHERE id = %s", [1], 0),
        (
            "MERGE INTO job USING (VALUES (%s)) AS v(i) ON id = i WHEN MATCHED THEN DO NOTHING",
            [1],
            CONDITIONS,
        ),
    ],
)
def test_what_a_statement_does_not_find_is_seen_or_counted(url, isolation, text, values, seen):
    """It is a predicate read, also where READ COMMITTED checks the newest version of a row again.

    A row that is found by a whole key needs none. Of a LIMIT, the snapshot's order is not seen.
    """
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        connection.execute(text, values)
    history = isolation.history()
    if isinstance(seen, str):
        assert {kind_of(detail) for detail in watch.unseen} == {seen}
        (said,) = watch.unseen.examples.values()
        assert said.startswith(text[: text.find("%s")]), said
        assert "test_conditions.py:" in said
        seen = 0
    else:
        assert watch.unseen == {}
    assert len(predicate_reads(history)) == seen
    assert isolation.assert_level("sser", allow_unseen=True)[0].certified


def race(url):
    """Two count first, and then both insert."""
    with psycopg.connect(url) as one, psycopg.connect(url) as two:
        for n, connection in enumerate((one, two)):
            query = "SELECT count(*) FROM job WHERE owner = 'new'"
            assert connection.execute(query).fetchone() == (0,)
            connection.execute("INSERT INTO job (id, owner) VALUES (%s, 'new')", (10 + n,))
    return query


def test_a_race_of_conditions_is_found(url, isolation):
    """The count that made them do so is in the argument, with its line."""
    watch = isolation.watch_psycopg(url)
    query = race(url)
    with pytest.raises(isolang.IsolationError, match="predicate write skew") as error:
        isolation.assert_level("ser")
    assert watch.unseen == {}
    assert f"by {query}" in " ".join(str(error.value).split())
    assert_names_lines(str(error.value), __file__, "assert connection.execute(query)")
    isolation.assert_level("si")


def test_a_race_of_conditions_is_unknown(url, isolation):
    """Where a writer of the table was not seen; the condition is named."""
    watch = isolation.watch_psycopg(url)
    query = race(url)
    with psycopg.connect(url) as connection:
        connection.execute("DO $$BEGIN UPDATE job SET state = 'x' WHERE id = 1; END$$")
    with pytest.raises(UndecidedError, match="some operations were not seen: conditions") as error:
        isolation.assert_level("ser", allow_unseen={"functions"})
    assert (error.value.verdict.outcome, error.value.verdict.cause) == ("unknown", "unseen")
    text = " ".join(str(error.value).split())
    assert query in text
    assert 'hint: allow_unseen={"conditions", "writers"} accepts' in text
    assert isolation.assert_level("ser", allow_unseen={"conditions", "functions", "writers"})
    with pytest.raises(isolang.IsolangError, match="unknown kind"):
        isolation.assert_level("ser", allow_unseen={"functoins"})
    assert isolation.unseen() == watch.unseen
    assert watch.unseen[CONDITIONS_ON_UNSEEN_WRITES] == 2
    assert "test_conditions.py:" in watch.unseen.examples[CONDITIONS_ON_UNSEEN_WRITES]


@pytest.mark.parametrize("server_on_trial", [False])
def test_a_read_that_commit_times_decide_is_harmless(url, isolation):
    with isolation.watch_psycopg(url) as watch, psycopg.connect(url) as connection:
        connection.execute("SELECT id FROM job WHERE state LIKE 'q%' AND state <> current_user")
        connection.execute("UPDATE job SET state = 'x' WHERE id = 1")
    (verdict,) = isolation.assert_level("ser")
    assert watch.unseen == isolation.unseen() == {DECIDED: 1}
    assert not isolation.unseen()
    assert "LIKE" in watch.unseen.examples[DECIDED]
    assert verdict.certified


def test_conditions_through_asyncpg(url, isolation):
    """The same statements, with parameters of the server."""
    asyncpg = pytest.importorskip("asyncpg")

    async def main():
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            assert await connection.fetchval("SELECT count(*) FROM job WHERE owner = $1", "x") == 0
            assert await connection.fetchval("SELECT code FROM job WHERE id = $1", 2) == "c2"
            query = "SELECT code FROM job WHERE id = $1 AND owner = $2"
            assert await connection.fetchrow(query, 1, "o1")
            assert not await connection.fetchrow(query, 1, "o2")
            assert len(await connection.fetch("SELECT 1 FROM job WHERE id IN ($1, $2)", 3, 4)) == 2
            await connection.execute("UPDATE job SET owner = NULL WHERE id = $1", 5)
            owner = "SELECT owner FROM job WHERE id = $1"
            assert await connection.fetchval(owner, 5) is None  # a null is no missing row
            assert await connection.fetchval(owner, 99) is None
        await connection.close()

    watch = isolation.watch_asyncpg(url)
    asyncio.run(main())
    history = isolation.history()
    (shown,) = operations(history)
    rows = ["r(job/2", "r(job/1", "r(job/3", "r(job/4", "w(job/5", "r(job/5"]
    assert names(shown) == rows
    assert len(predicate_reads(history)) == 3
    assert watch.unseen == {}


def test_a_row_that_was_locked_and_returned_without_its_key(url, isolation):
    """Who skips locked rows says nothing of them; the row that it was given is seen."""
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        query = "SELECT owner FROM job WHERE state = 'queued' LIMIT 1 FOR UPDATE SKIP LOCKED"
        assert connection.execute(query).fetchone() == ("o1",)
    (shown,) = operations(isolation.history())
    assert names(shown) == ["r(job/1"]
    assert watch.unseen == {}


# --- rows that others have deleted ---


def test_a_row_that_another_deleted_beside_the_own_one(url, isolation):
    """At REPEATABLE READ a SELECT that meets the old row alone is no read of the own one."""
    watch = isolation.watch_psycopg(url)
    one, two = psycopg.connect(url), psycopg.connect(url)
    one.isolation_level = two.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    one.execute("SELECT state FROM job WHERE id = 2").fetchall()
    two.execute("DELETE FROM job WHERE id = 1")
    two.commit()
    with one.transaction():
        one.execute("INSERT INTO job VALUES (1, 'd1', 'mine')")
        query = "SELECT state FROM job WHERE id = 1 AND state = %s"
        assert one.execute(query, ("queued",)).fetchall() == [("queued",)]
        assert one.execute(query, ("mine",)).fetchall() == [("mine",)]
        one.execute("DELETE FROM job WHERE id = 1 AND state = 'mine'")
        assert one.execute(query, ("queued",)).fetchall() == [("queued",)]
    one.commit()
    one.close()
    two.close()
    mine = max(operations(isolation.history()), key=len)
    assert names(mine) == [
        "r(job/2",
        "w(job/1#2",  # another row in the history
        "r(job/1",
        "r(job/1#2",
        "delete(job/1#2)",
    ]
    assert watch.unseen == {}
    isolation.assert_level("si")


def test_a_savepoint_takes_the_own_row_back(url, isolation):
    """After ROLLBACK TO the old row is the one that the transaction sees; RELEASE keeps the new."""
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        query = "SELECT state FROM job WHERE id = 1"
        connection.execute("SAVEPOINT s")
        connection.execute("DELETE FROM job WHERE id = 1")
        connection.execute("INSERT INTO job VALUES (1, 'd1', 'mine')")
        connection.execute("ROLLBACK TO s")
        assert connection.execute(query).fetchone() == ("queued",)
        connection.execute("DELETE FROM job WHERE id = 1")
        connection.execute("INSERT INTO job VALUES (1, 'd1', 'mine')")
        connection.execute("RELEASE s")
        assert connection.execute(query).fetchone() == ("mine",)
        connection.execute(
            "INSERT INTO job VALUES (1, 'd1', '') ON CONFLICT (id) DO UPDATE SET state = 'twice'"
        )
        assert connection.execute(query).fetchone() == ("twice",)
    (shown,) = operations(isolation.history())
    assert names(shown) == [
        "r(job/1",
        "delete(job/1)",
        *["w(job/1#2", "r(job/1#2"] * 2,
    ]
    assert watch.unseen == {}
    isolation.assert_level("sser")


# --- for those who write tests ---


@pytest.mark.server
def test_a_server_of_the_test(tmp_path):
    """It starts empty, and is gone with the test; other databases are refused."""
    isolation = Isolation(tmp_path)
    url = isolation.server("postgres")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
    with pytest.raises(isolang.IsolangError, match="unknown server"):
        isolation.server("oracle")
    isolation.close()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_predicate_reads_that_a_test_records(isolation):
    """Two find no booking of the days, and both insert one."""
    free = {
        "table": "booking",
        "where": ("and", ("=", "room", 1), ("<", "start", 8), (">", "stop", 1)),
    }
    with isolation.transaction(session="one") as one, isolation.transaction(session="two") as two:
        for number, t in enumerate((one, two)):
            t.scan(free, {})
            t.insert(("booking", number), {"room": 1, "start": 1, "stop": 8})
    with pytest.raises(isolang.IsolationError, match="predicate write skew") as error:
        isolation.assert_level("ser")
    isolation.assert_level("si")
    assert_names_lines(str(error.value), __file__, "t.scan(free, {})")
    with isolation.transaction() as t:
        t.scan(free, {("booking", 0): {"room": 1, "start": 1, "stop": 8}})
        t.delete(("booking", 0))
    with pytest.raises(isolang.IsolationError):
        isolation.assert_level("sser")  # it missed the other one
    with (
        pytest.raises(isolang.HistoryError, match="scan: not a predicate"),
        isolation.transaction() as t,
    ):
        t.scan(5, {})
