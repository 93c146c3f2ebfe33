"""What the conditions of a watched application do not find is counted, and never silently."""

import asyncio

import pytest
from support.source_lines import assert_names_lines

import isolang
from isolang.history.values import Keyword
from isolang.observe.unseen import CONDITIONS, NOT_FOUND, TWO_ROWS

psycopg = pytest.importorskip("psycopg")

from isolang.observe.drivers.driver import DriverWatch  # noqa: E402
from isolang.observe.drivers.through_asyncpg import Asyncpg  # noqa: E402
from isolang.observe.drivers.through_psycopg import Psycopg  # noqa: E402
from isolang.testing.assertion import UndecidedError  # noqa: E402
from isolang.testing.isolation import Isolation  # noqa: E402

CHANGED = "changes"
LEFT_OUT = "limits"


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


def operations(recorder):
    """All operations, transaction by transaction."""
    return [list(one.ops) for one in recorder.history().transactions()]


@pytest.mark.parametrize(
    ("text", "values", "unseen"),
    [
        ("SELECT count(*) FROM job WHERE owner = %s", ["o1"], CONDITIONS),
        ("SELECT id FROM job WHERE owner = %s", ["nobody"], CONDITIONS),
        ("SELECT * FROM job", [], CONDITIONS),
        ("SELECT id FROM job WHERE id = %s OR owner = 'o1'", [1], CONDITIONS),
        ("SELECT id FROM job WHERE id > %s", [7], CONDITIONS),
        ("SELECT owner FROM job WHERE owner = %s FOR UPDATE", ["o1"], CONDITIONS),
        ("SELECT id FROM job WHERE state = %s ORDER BY id LIMIT 1", ["queued"], CONDITIONS),
        ("SELECT id FROM job WHERE id = %s AND owner = 'o1'", [1], ""),
        ("SELECT id FROM job WHERE id = %s AND owner = 'o2'", [1], NOT_FOUND),
        ("SELECT id FROM job WHERE id = %s", [99], NOT_FOUND),
        ("SELECT state FROM job WHERE code = %s", ["c3"], ""),
        ("SELECT state FROM job WHERE code = %s", ["c9"], NOT_FOUND),
        (
            'SELECT "job"."state" FROM "job" WHERE ("job"."id" = %s AND "job"."owner" = \'o1\')',
            [1],
            "",
        ),
        ("SELECT count(*) FROM job WHERE id = %s", [1], ""),
        ("SELECT count(*) FROM job WHERE id = %s", [99], NOT_FOUND),
        ("SELECT id FROM job WHERE id IN (%s, 2, 3)", [1], ""),
        ("SELECT id FROM job WHERE id IN (%s, 2, 99)", [1], NOT_FOUND),
        ("UPDATE job SET state = 'x' WHERE id = %s AND owner = 'o1'", [1], ""),
        ("UPDATE job SET state = 'x' WHERE id = %s AND owner = 'o2'", [1], NOT_FOUND),
        ("UPDATE job SET state = 'x' WHERE owner = %s RETURNING id", ["o1"], CONDITIONS),
        ("UPDATE job SET state = 'x' WHERE owner = %s RETURNING id", ["nobody"], CONDITIONS),
        ("DELETE FROM job WHERE state = %s", ["x"], CONDITIONS),
        ("DELETE FROM job WHERE id = %s", [99], NOT_FOUND),
        ("INSERT INTO job VALUES (%s, 'c7', '', '')", [7], ""),
        (
            "INSERT INTO job VALUES (%s) ON CONFLICT DO NOTHING",
            [1],
            "conflicts",
        ),
        (
            "UPDATE job SET id = 9 WHERE id = %s",
            [1],
            "keys",
        ),
        (
            "MERGE INTO job USING (VALUES (%s)) AS v(i) ON id = i WHEN MATCHED THEN DO NOTHING",
            [1],
            "shapes",
        ),
    ],
)
def test_what_a_statement_does_not_find_is_counted(url, recorder, tmp_path, text, values, unseen):
    """Once, with its text and line; a row that is found by a whole key leaves nothing unseen.

    With the other versions of the table a condition is a predicate read, unless READ COMMITTED
    checks the newest version of the rows again.
    """
    with DriverWatch(url, recorder, Psycopg()) as watch:
        with psycopg.connect(url) as connection:
            connection.execute(text, values)
        watch.close(recorder.path, None)  # another watch may have written versions
        assert watch.all_unseen == ({unseen: 1} if unseen else {})
        if unseen:
            said = watch.all_unseen.examples[unseen]
            assert said.startswith(text.replace("%%", "%")[:60]), said
            assert "test_conditions.py:" in said
        path = watch.close(recorder.path, tmp_path / "closed.edn")
    again = unseen == CONDITIONS and (text.startswith(("UPDATE", "DELETE")) or "FOR UPDATE" in text)
    if unseen not in (CONDITIONS, NOT_FOUND) or again:
        assert watch.all_unseen == ({unseen: 1} if unseen else {})
        assert path == recorder.path
    else:
        assert not watch.all_unseen
        assert path.read_text().count("[:rp ") == 2
        assert isolang.assert_level(path, "sser").certified


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
    assert not watch.all_unseen
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
    assert query in " ".join(str(error.value).split())
    assert 'hint: allow_unseen={"conditions"} accepts' in " ".join(str(error.value).split())
    assert isolation.assert_level("ser", allow_unseen={"conditions", "functions"})
    with pytest.raises(isolang.IsolangError, match="unknown kind"):
        isolation.assert_level("ser", allow_unseen={"functoins"})
    assert isolation.unseen()[CONDITIONS] == watch.all_unseen[CONDITIONS] == 2
    assert "test_conditions.py:" in isolation.unseen().examples[CONDITIONS]


def test_conditions_through_asyncpg(url, recorder, tmp_path):
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

    with DriverWatch(url, recorder, Asyncpg()) as watch:
        asyncio.run(main())
        assert watch.close(recorder.path, tmp_path / "closed.edn").read_text().count("[:rp ") == 6
        assert not watch.all_unseen
        watch.close(recorder.path, None)
    assert watch.all_unseen == {CONDITIONS: 1, NOT_FOUND: 2}
    (ops,) = operations(recorder)
    assert [op[:2] for op in ops] == [
        ("r", "job/2"),
        ("r", "job/1"),
        ("r", "job/3"),
        ("r", "job/4"),
        ("w", "job/5"),
        ("r", "job/5"),
    ]


# --- locks and LIMIT ---


def claims(url, query, library, *, column=None):
    """Two claim a job at the same time and commit; gives what each was given."""

    def synchronously():
        with psycopg.connect(url) as one, psycopg.connect(url) as two:
            found = [connection.execute(query).fetchone() for connection in (one, two)]
            for row, connection in zip(found, (one, two), strict=True):
                if row is not None:
                    key = row[-1]
                    connection.execute("UPDATE job SET state = 'taken' WHERE id = %s", (key,))
            return [row and row[-1] for row in found]

    async def awaited():
        import asyncpg

        one, two = await asyncpg.connect(url), await asyncpg.connect(url)
        parts = [connection.transaction() for connection in (one, two)]
        for part in parts:
            await part.start()
        if column is None:
            found = [await connection.fetchrow(query) for connection in (one, two)]
            keys = [row and row[len(row) - 1] for row in found]
        else:
            keys = [await connection.fetchval(query, column=column) for connection in (one, two)]
        for key, connection in zip(keys, (one, two), strict=True):
            if key is not None:
                await connection.execute("UPDATE job SET state = 'taken' WHERE id = $1", key)
        for part in parts:
            await part.commit()
        for connection in (one, two):
            await connection.close()
        return keys

    return synchronously() if library is Psycopg else asyncio.run(awaited())


LIBRARIES = pytest.mark.parametrize("library", [Psycopg, Asyncpg])
CLAIM = "SELECT state, id FROM job WHERE state = 'queued' ORDER BY id LIMIT 1"


@LIBRARIES
@pytest.mark.parametrize(
    "columns", ["state, id", 'state, job."id" AS job_id', "state, j.id", "owner, id"]
)
def test_rows_that_were_locked_and_returned_with_their_key_are_seen(
    url, recorder, library, columns
):
    """Of a right queue nothing is unseen: who skips locked rows says nothing of them."""
    pytest.importorskip("asyncpg")
    query = f"{CLAIM} FOR UPDATE SKIP LOCKED".replace("state, id", columns)
    if "j." in columns:
        query = query.replace("job WHERE", "job j WHERE")
    with DriverWatch(url, recorder, library()) as watch:
        assert claims(url, query, library) == [1, 2]
    assert not watch.unseen
    first, second = operations(recorder)
    assert first[0] == ("r", "job/1", None)
    assert second[0] == ("r", "job/2", None)
    assert [op[:2] for op in (first[1], second[1])] == [("w", "job/1"), ("w", "job/2")]
    isolang.assert_level(recorder.history(), "ser")


def test_one_value_of_a_locked_row(url, recorder):
    """The key alone says which row it was."""
    pytest.importorskip("asyncpg")
    query = f"{CLAIM} FOR UPDATE SKIP LOCKED"
    with DriverWatch(url, recorder, Asyncpg()) as watch:
        assert claims(url, query, Asyncpg, column=1) == [1, 2]
        with psycopg.connect(url) as own:
            own.execute("UPDATE job SET state = 'done'")
        assert claims(url, query, Asyncpg, column=1) == [None, None]
    assert not watch.unseen
    assert [ops[:1] for ops in operations(recorder)] == [
        [("r", "job/1", None)],
        [("r", "job/2", None)],
        [],
        [],
    ]


def test_rows_that_are_skipped_without_a_key_are_one_unseen(url, recorder):
    """The application did not ask which row it was given."""
    with DriverWatch(url, recorder, Psycopg()) as watch, psycopg.connect(url) as connection:
        query = "SELECT owner FROM job WHERE state = 'queued' LIMIT 1 FOR UPDATE SKIP LOCKED"
        assert connection.execute(query).fetchone()
    assert watch.unseen == {LEFT_OUT: 1}
    assert "SELECT owner" in watch.unseen.examples[LEFT_OUT]


@LIBRARIES
@pytest.mark.parametrize("star", [False, True])
def test_a_queue_without_a_lock_is_found_out(url, recorder, library, star):
    """Two take one job: the row that LIMIT chose is known by its key."""
    pytest.importorskip("asyncpg")
    query = CLAIM
    if star:  # the key is the last column
        query = CLAIM.replace("state, id", "*")
        with psycopg.connect(url) as own:
            own.execute("ALTER TABLE job DROP COLUMN id")
            own.execute("ALTER TABLE job ADD id serial PRIMARY KEY")
    with DriverWatch(url, recorder, library()) as watch:
        assert claims_apart(url, query, library) == [1, 1]
    assert not watch.unseen  # the order of LIMIT is a predicate read
    verdict = isolang.check(recorder.history(), "si")
    assert verdict.outcome == "invalid"
    assert verdict.violation.anomaly == "lost update"


def claims_apart(url, query, library):
    """Two look for a job, and take it one after the other."""
    if library is Psycopg:
        with psycopg.connect(url) as one, psycopg.connect(url) as two:
            keys = [connection.execute(query).fetchone()[-1] for connection in (one, two)]
            for key, connection in zip(keys, (one, two), strict=True):
                connection.execute("UPDATE job SET state = 'taken' WHERE id = %s", (key,))
                connection.commit()
        return keys

    async def main():
        import asyncpg

        connections = [await asyncpg.connect(url) for _ in range(2)]
        parts = [connection.transaction() for connection in connections]
        for part in parts:
            await part.start()
        rows = [await connection.fetchrow(query) for connection in connections]
        for row, connection, part in zip(rows, connections, parts, strict=True):
            await connection.execute("UPDATE job SET state = 'taken' WHERE id = $1", row["id"])
            await part.commit()
            await connection.close()
        return [row["id"] for row in rows]

    return asyncio.run(main())


# --- rows that change while they are read ---


class Between(Psycopg):
    """psycopg; before or after the statement of the application somebody else does something."""

    def __init__(self, of, before, after, *, times=99):
        self.of, self.before, self.after, self.times = of, before, after, times

    def _execute(self, watch, original, cursor, query, params=None, **options):
        def called(*args, **more):
            mine = len(args) > 1 and args[1] == self.of and self.times > 0
            self.times -= mine
            if mine:
                self.before()
            result = original(*args, **more)
            if mine:
                self.after()
            return result

        return (yield from super()._execute(watch, called, cursor, query, params, **options))


SEVENTH = "INSERT INTO job VALUES (7, 'c7', 'new', 'o1') ON CONFLICT DO NOTHING"
CHANGES = pytest.mark.parametrize(
    ("before", "after", "query"),
    [
        (
            "UPDATE job SET state = 'x' WHERE id = 1",
            "SELECT 1",
            "SELECT state FROM job WHERE id = 1",
        ),
        ("SELECT 1", "UPDATE job SET owner = 'x' WHERE id = 1", "SELECT id FROM job WHERE id = 1"),
        (SEVENTH, "DELETE FROM job WHERE id = 7", "SELECT state FROM job WHERE id = 7"),
        (SEVENTH, "DELETE FROM job WHERE id = 7", "SELECT id FROM job WHERE state = 'new'"),
        (SEVENTH, "DELETE FROM job WHERE id = 7", "SELECT id FROM job WHERE state = 'new' LIMIT 1"),
    ],
)


@CHANGES
def test_rows_that_change_while_they_are_read_are_read_again(url, recorder, before, after, query):
    """The application gets the rows of one snapshot that the watch has seen, too."""
    with psycopg.connect(url, autocommit=True) as other:
        library = Between(
            query, lambda: other.execute(before), lambda: other.execute(after), times=1
        )
        with DriverWatch(url, recorder, library) as watch, psycopg.connect(url) as connection:
            rows = connection.execute(query).fetchall()
    assert not watch.unseen.keys() - {CONDITIONS, "absences", "autocommit"}
    reads = [op for ops in operations(recorder) for op in ops if op[0] == "r"]
    assert len(reads) == len(rows)


def test_a_select_that_may_change_something_is_not_sent_again(url, recorder):
    """A function that is volatile has another result the second time."""
    query = "SELECT nextval('numbers'), state FROM job WHERE id = 1"
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("CREATE SEQUENCE numbers")
        change = "UPDATE job SET state = 'x' WHERE id = 1"
        library = Between(query, lambda: other.execute(change), lambda: None)
        with DriverWatch(url, recorder, library) as watch, psycopg.connect(url) as connection:
            assert connection.execute(query).fetchall() == [(1, "x")]
        other.execute("DROP SEQUENCE numbers")
    assert watch.unseen[CHANGED] == 1


@CHANGES
def test_rows_that_change_while_they_are_read_are_counted(url, recorder, before, after, query):
    """Also a row that was there for the statement alone; nothing is read of it, and it is said."""
    with psycopg.connect(url, autocommit=True) as other:
        library = Between(query, lambda: other.execute(before), lambda: other.execute(after))
        with DriverWatch(url, recorder, library) as watch, psycopg.connect(url) as connection:
            rows = connection.execute(query).fetchall()
    assert len(rows) == 1
    assert watch.unseen.keys() - {CONDITIONS, "autocommit"} == {CHANGED}
    assert watch.unseen[CHANGED] == 1
    assert query in watch.unseen.examples[CHANGED]
    assert "test_conditions.py:" in watch.unseen.examples[CHANGED]
    assert operations(recorder).count([]) == 1  # the reader; the others wrote


# --- rows that others have deleted ---


def test_a_row_that_another_deleted_beside_the_own_one(url, recorder):
    """At REPEATABLE READ a SELECT that meets the old row alone is no read of the own one."""
    with DriverWatch(url, recorder, Psycopg()) as watch:
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
    mine = next(ops for ops in operations(recorder) if len(ops) > 1)
    written = mine[1][2]
    assert mine == [
        ("r", "job/2", None),
        ("w", "job/1", written),
        ("r", "job/1", written),
        ("w", "job/1", Keyword("deleted")),
    ]
    assert watch.unseen == {TWO_ROWS: 2}
    isolang.assert_level(recorder.history(), "pl-2")


def test_a_savepoint_takes_the_own_row_back(url, recorder):
    """After ROLLBACK TO the old row is the one that the transaction sees; RELEASE keeps the new."""
    with DriverWatch(url, recorder, Psycopg()) as watch, psycopg.connect(url) as connection:
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
    assert not watch.unseen
    ((first, gone, *rest),) = operations(recorder)
    assert (first, gone) == (("r", "job/1", None), ("w", "job/1", Keyword("deleted")))
    version = rest[0][2]
    assert rest[:2] == [("w", "job/1", version), ("r", "job/1", version)]
    isolang.assert_level(recorder.history(), "sser")


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
