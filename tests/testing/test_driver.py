"""What applications do through psycopg, recorded by ``xmin`` without a change."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest
from support.source_lines import assert_names_lines

import isolang
from isolang.errors import IsolangError
from isolang.history.values import Keyword
from isolang.report import page
from isolang.testing.isolation import Isolation

psycopg = pytest.importorskip("psycopg")

from isolang.observe.drivers.driver import DriverWatch  # noqa: E402
from isolang.observe.drivers.through_psycopg import Psycopg  # noqa: E402
from isolang.observe.unseen import CONDITIONS, NOT_FOUND, TWO_ROWS, kind_of  # noqa: E402

READ = "SELECT balance FROM account WHERE name = %s"
SET = "UPDATE account SET balance = %s WHERE name = %s"


def counters(url, read=READ, level=None):
    """Two read the balance, then both raise it and commit."""
    with psycopg.connect(url) as one, psycopg.connect(url) as two:
        one.isolation_level = two.isolation_level = level
        (first,) = one.execute(read, ("a",)).fetchone()
        (second,) = two.execute(read, ("a",)).fetchone()
        one.execute(SET, (first + 1, "a"))
        one.commit()
        two.execute(SET, (second + 1, "a"))
        two.commit()


async def counters_awaited(url, read=READ, level=None):
    """The same with asyncio."""
    async with (
        await psycopg.AsyncConnection.connect(url) as one,
        await psycopg.AsyncConnection.connect(url) as two,
    ):
        await one.set_isolation_level(level)
        await two.set_isolation_level(level)
        (first,) = await (await one.execute(read, ("a",))).fetchone()
        (second,) = await (await two.execute(read, ("a",))).fetchone()
        await one.execute(SET, (first + 1, "a"))
        await one.commit()
        await two.execute(SET, (second + 1, "a"))
        await two.commit()


def both(function):
    """A function that may be one of coroutines, as one that is not."""

    def called(*args, **options):
        result = function(*args, **options)
        return asyncio.run(result) if asyncio.iscoroutine(result) else result

    return called


KINDS = pytest.mark.parametrize("counting", [counters, counters_awaited])


@KINDS
def test_a_lost_update_is_seen_with_its_lines(url, recorder, counting):
    """At READ COMMITTED the second counter overwrites the first one; the text names both lines."""
    with DriverWatch(url, recorder, Psycopg()) as watch:
        both(counting)(url)
    assert not watch.unseen
    history = recorder.history()
    assert [t.status for t in history.transactions()] == ["committed", "committed"]
    assert [t.ops[0] for t in history.transactions()] == [("r", "account/a", None)] * 2
    assert isolang.check(history, "pl-2").outcome == "valid"
    verdict = isolang.check(history, "si")
    assert verdict.violation.anomaly.startswith("lost update")
    text = str(verdict)
    lines = Path(__file__).read_text().splitlines()
    begin = next(n for n, line in enumerate(lines) if f"def {counting.__name__}(" in line)
    numbers = []
    for what in ("(first,) =", "(second,) =", "one.execute(SET", "two.execute(SET"):
        number = next(n for n in range(begin, len(lines)) if what in lines[n]) + 1
        numbers.append(number)
        assert f"test_driver.py:{number} " in text, text
    assert "site-packages" not in text
    data = page(verdict).split('id="contents">')[1].split("</script>")[0]
    shown = json.loads(data)["violation"]["transactions"]
    assert {op["text"] for one in shown for op in one["operations"]} == {
        "r(account/a {balance: 10})",
        "w(account/a {balance: 10 → 11})",
    }
    assert "read account/a = {balance: 10}, the initial value, " in " ".join(text.split())
    assert [op["caller"].split("/")[-1] for one in shown for op in one["operations"]] == [
        f"test_driver.py:{number}" for number in (numbers[0], numbers[2], numbers[1], numbers[3])
    ]


@KINDS
def test_the_update_that_the_server_refuses_is_aborted(url, recorder, counting):
    """At REPEATABLE READ nothing is lost."""
    level = psycopg.IsolationLevel.REPEATABLE_READ
    with DriverWatch(url, recorder, Psycopg()), pytest.raises(psycopg.errors.SerializationFailure):
        both(counting)(url, level=level)
    assert [t.status for t in recorder.history().transactions()] == ["committed", "aborted"]
    isolang.assert_level(recorder.history(), "strong-si")


def test_rows_are_shown_by_what_changed(url, recorder):
    """Columns that a transaction had seen before, that it set blindly, or that a row begins with.

    A second write of a row is one with the first, and what a savepoint took back is not shown.
    """
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE account ADD note text DEFAULT 'x, y', ADD \"Ü %\" bytea")
    with DriverWatch(url, recorder, Psycopg()) as watch, psycopg.connect(url) as connection:
        connection.execute(READ, ("a",)).fetchall()
        connection.execute("UPDATE account SET balance = 11, note = 'x, y' WHERE name = 'a'")
        connection.execute("UPDATE account SET balance = 12 WHERE name = 'a'")
        connection.execute("UPDATE account SET note = NULL WHERE name = 'b'")
        connection.execute("SAVEPOINT s")
        connection.execute("UPDATE account SET balance = 99 WHERE name = 'b'")
        connection.execute("ROLLBACK TO s")
        connection.execute("INSERT INTO account VALUES ('c', 1, repeat('ü', 50)) RETURNING name")
        connection.execute("DELETE FROM account WHERE name = 'c'")
    assert not watch.unseen
    history = recorder.history()
    assert [history.describe_op(op) for op in history.operations_of(0)] == [
        'r(account/a {balance: 10, note: "x, y", "Ü %": null})',
        "w(account/a {balance: 10 → 12})",
        "w(account/b {note: null})",
        f'w(account/c {{balance: 1, note: {"ü" * 39}…, "Ü %": null}})',
        "w(account/c, :deleted)",
    ]


def increment(url, read, level=None):
    """One counter, tried again as long as the server refuses it."""
    while True:
        try:
            with psycopg.connect(url) as connection:
                connection.isolation_level = level
                (balance,) = connection.execute(read, ("a",)).fetchone()
                connection.execute(SET, (balance + 1, "a"))
            return
        except psycopg.errors.SerializationFailure:
            continue


@pytest.mark.parametrize(
    ("read", "level"),
    [
        (f"{READ} FOR UPDATE", None),
        (READ, psycopg.IsolationLevel.SERIALIZABLE),
    ],
)
def test_correct_programs_are_not_accused(url, tmp_path, read, level):
    """Rows that are locked first, and SERIALIZABLE with retries: nothing is lost."""
    isolation = Isolation(tmp_path)
    watch = isolation.watch_psycopg(url)
    isolation.concurrently(lambda: increment(url, read, level), times=10, clients=4)
    assert not {kind_of(one) for one in watch.unseen} - {"changes"}
    (verdict,) = isolation.assert_level("sser")
    isolation.close()
    counts = verdict.history.counts()
    assert counts["committed"] == 40
    with psycopg.connect(url) as connection:
        assert connection.execute(READ, ("a",)).fetchone() == (50,)


def test_threads_that_lose_updates_are_found(url, tmp_path):
    """The same counters at READ COMMITTED without a lock, by the lines of both statements."""
    isolation = Isolation(tmp_path)
    isolation.watch_psycopg(url)
    isolation.concurrently(lambda: increment(url, READ), times=10, clients=4)
    with pytest.raises(isolang.IsolationError, match="lost update") as error:
        isolation.assert_level("ser")
    isolation.close()
    begins = ("(balance,) = connection.execute(read", "connection.execute(SET, (balance + 1")
    assert_names_lines(str(error.value), __file__, *begins)


def test_blocks_savepoints_and_statements_of_the_application(url, recorder):
    """What a block or a savepoint took back was never written; names are used again."""
    with (
        DriverWatch(url, recorder, Psycopg()) as watch,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        with connection.transaction():
            with connection.transaction():
                connection.execute(SET, (11, "a"))
            with connection.transaction(force_rollback=True):
                connection.execute(SET, (12, "b"))
            with connection.transaction() as inner:
                connection.execute(SET, (13, "b"))
                raise psycopg.Rollback(inner)
        connection.execute("BEGIN")
        connection.execute("INSERT INTO account VALUES ('c', 1)")
        connection.execute('SAVEPOINT "s"')
        connection.execute("DELETE FROM account WHERE name = 'a'")
        connection.execute("ROLLBACK TO s")
        assert len(connection.execute("SELECT * FROM account ORDER BY name").fetchall()) == 3
        connection.execute("DELETE FROM account WHERE name = 'c'")
        connection.execute("COMMIT")
    first, second = recorder.history().transactions()
    ((kind, key, version),) = first.ops
    assert (kind, key) == ("w", "account/a")
    written = next(value for kind, key, value in second.ops if key == "account/c")
    assert list(second.ops) == [
        ("w", "account/c", written),
        ("r", "account/a", version),
        ("r", "account/b", None),
        ("r", "account/c", written),
        ("w", "account/c", Keyword("deleted")),
    ]
    assert not watch.unseen
    isolang.assert_level(recorder.history(), "sser")


def test_the_application_finds_its_cursor_as_it_expects_it(url, recorder):
    """A write without RETURNING has a row count and no rows; one with it has its own rows."""
    with DriverWatch(url, recorder, Psycopg()) as watch, psycopg.connect(url) as connection:
        cursor = connection.execute(SET, (1, "a"))
        assert (cursor.rowcount, cursor.description, cursor.statusmessage) == (1, None, "UPDATE 1")
        with pytest.raises(psycopg.ProgrammingError, match="didn't produce"):
            cursor.fetchone()
        cursor = connection.execute("INSERT INTO account VALUES ('c', 2) RETURNING name, balance")
        assert cursor.fetchall() == [("c", 2)]
        cursor = connection.execute("UPDATE account SET balance = 3 RETURNING balance")
        assert cursor.fetchall() == [(3,), (3,), (3,)]
        cursor = connection.execute("SELECT count(*) FROM account")
        assert cursor.fetchone() == (3,)
    assert watch.unseen == {
        "returning": 1,
        "writers": 1,
        CONDITIONS: 1,
    }
    (only,) = recorder.history().transactions()
    assert [key for kind, key, _ in only.ops if kind == "w"] == ["account/a", "account/c"]


def test_what_cannot_be_seen_is_counted_and_left_out(url, recorder):
    """Each kind has an example with its line: no guess, no accusation."""
    with psycopg.connect(url) as own:
        own.execute("CREATE TABLE nokey (n int)")
    with DriverWatch(url, recorder, Psycopg()) as watch:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SET, (3, "a"))
        with psycopg.connect(url) as connection:
            connection.execute(READ, ("a",))
            connection.execute("SELECT 1 FROM account x JOIN account y USING (name)")
            connection.execute("SELECT DISTINCT balance FROM account")
            connection.execute("INSERT INTO nokey VALUES (1)")
            connection.cursor().executemany(SET, [(5, "a")])
            with connection.cursor("named") as cursor:
                cursor.execute("SELECT * FROM account")
            connection.execute("SELECT balance FROM account LIMIT 1")
    assert watch.unseen == {
        "autocommit": 1,
        "shapes": 1,
        "tables": 1,  # nokey
        "cursors": 1,
        "limits": 1,
        CONDITIONS: 1,  # of the join
    }
    assert all("test_driver.py:" in example for example in watch.unseen.examples.values())
    assert "DISTINCT" in watch.unseen.examples["shapes"]
    assert "JOIN" in watch.unseen.examples[CONDITIONS]
    assert watch.unseen.settled() == watch.unseen - Counter(tables=1) + Counter(unread=1)
    alone, only = recorder.history().transactions()
    assert [(kind, key) for kind, key, _ in alone.ops] == [("w", "account/a")]
    assert only.ops[0] == ("r", *alone.ops[0][1:])
    assert [op[0] + op[1][-1] for op in only.ops[1:]] == ["ra", "rb", "ra", "rb", "wa"]  # a join


def test_ends_that_are_no_commits(url, recorder):
    """A failed statement, a connection that is closed, and several statements in one text."""
    with DriverWatch(url, recorder, Psycopg()):
        failed = psycopg.connect(url)
        failed.execute(SET, (1, "a"))
        with pytest.raises(psycopg.errors.UndefinedTable):
            failed.execute("SELECT * FROM nothing")
        failed.commit()
        failed.execute(SET, (2, "a"))
        failed.close()
        unclear = psycopg.connect(url)
        unclear.execute(SET, (4, "a"))
        unclear.execute("SELECT 1; COMMIT")
        unclear.close()
    assert [t.status for t in recorder.history().transactions()] == [
        "aborted",
        "aborted",
        "maybe",
    ]


def test_transactions_that_are_not_followed_have_no_operations(url, recorder):
    """What others read of them is left out, too: it is no read of a value that nobody wrote."""
    with DriverWatch(url, recorder, Psycopg()) as watch, psycopg.connect(url) as connection:
        connection.execute(SET, (1, "a"))
        connection.execute("COMMIT AND CHAIN")
        connection.execute(SET, (2, "b"))
        connection.commit()
        assert len(connection.execute("SELECT * FROM account").fetchall()) == 2
    first, second = recorder.history().transactions()
    assert (first.status, list(first.ops)) == ("maybe", [])
    assert (second.status, list(second.ops)) == ("committed", [])
    assert watch.unseen["writers"] == 2
    isolang.assert_level(recorder.history(), "sser")


def test_two_rows_of_one_key_in_a_snapshot(url, recorder):
    """At REPEATABLE READ a row that others deleted stays beside the one that is inserted anew."""
    with DriverWatch(url, recorder, Psycopg()) as watch, psycopg.connect(url) as one:
        one.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        one.execute(READ, ("a",))
        with psycopg.connect(url) as two:
            two.execute("DELETE FROM account WHERE name = 'a'")
        one.execute("INSERT INTO account VALUES ('a', 1) RETURNING name")
        assert len(one.execute(READ, ("a",)).fetchall()) == 2
    assert {op for t in recorder.history().transactions() for op in t.ops} == {
        ("r", "account/a", None),
        ("w", "account/a", Keyword("deleted")),
    }
    assert watch.unseen == {
        "deleted": 1,
        TWO_ROWS: 1,
    }


def test_psycopg_is_as_it_was_afterwards(url, recorder):
    """Every method that was replaced is put back."""
    classes = [getattr(psycopg, a + b) for a in ("", "Async") for b in ("Cursor", "Connection")]
    before = [dict(vars(one)) for one in classes]
    with DriverWatch(url, recorder, Psycopg()):
        assert vars(psycopg.Cursor)["execute"] is not before[0]["execute"]
    assert [dict(vars(one)) for one in classes] == before


def test_parameters_of_the_application(url, recorder):
    """Those that say how its rows look, or when it commits, do not disturb the watch."""
    own = {"row_factory": psycopg.rows.dict_row, "autocommit": False}
    watch = DriverWatch(url, recorder, Psycopg(), **own)
    with watch, psycopg.connect(url, **own) as connection:
        assert connection.execute(READ, ("a",)).fetchall() == [{"balance": 10}]
        connection.execute("SELECT * FROM account WHERE balance > 99").fetchall()
    watch.close(recorder.path, recorder.path.with_name("closed.edn"))
    assert not watch.all_unseen


def test_a_database_that_is_not_there(recorder):
    """The message says what was tried."""
    with pytest.raises(IsolangError, match="watch_psycopg: cannot connect to the database"):
        DriverWatch("host=/nowhere", recorder, Psycopg()).__enter__()


LEVELS = psycopg.IsolationLevel


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        (LEVELS.READ_COMMITTED, "pl-2"),
        (LEVELS.REPEATABLE_READ, "si"),
        (LEVELS.SERIALIZABLE, "ser"),
    ],
)
def test_random_transactions_keep_the_level_of_the_server(url, tmp_path, level, kept):
    """Ranges, inserts, deletes, savepoints and failures by chance: nobody is accused."""
    isolation = Isolation(tmp_path, seed=7)
    watch = isolation.watch_psycopg(url)

    # REPEATABLE READ inserts a row again that a concurrent transaction deletes, which SI forbids.
    apart = level is LEVELS.REPEATABLE_READ
    inserted, deleted = ("cdef", "ab") if apart else ("abcdef", "abcdef")

    def statement(connection, random):
        case = random.randrange(8)
        name = random.choice({4: inserted, 5: inserted, 7: deleted}.get(case, "abcdef"))
        match case:
            case 0 | 1:
                connection.execute("SELECT * FROM account WHERE name <= %s", (name,)).fetchall()
            case 2:
                connection.execute("SELECT sum(balance) FROM account WHERE balance < 50")
            case 3:
                connection.execute(f"{READ} FOR {random.choice(['UPDATE', 'SHARE'])}", (name,))
            case 4 | 5:
                connection.execute(
                    "INSERT INTO account VALUES (%s, 1) ON CONFLICT (name) "
                    "DO UPDATE SET balance = account.balance + 1 RETURNING name",
                    (name,),
                )
            case 6:
                connection.execute("UPDATE account SET balance = 2 WHERE name > %s", (name,))
            case 7:
                connection.execute("DELETE FROM account WHERE name = %s", (name,))

    def transaction():
        random = isolation.random
        with psycopg.connect(url) as connection:
            connection.isolation_level = level
            for _ in range(random.randrange(1, 5)):
                if random.random() < 0.3:
                    with connection.transaction(force_rollback=random.random() < 0.5):
                        statement(connection, random)
                statement(connection, random)
            if random.random() < 0.1:
                connection.rollback()

    refused = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
    isolation.concurrently(transaction, times=40, clients=5, ignoring=refused)
    assert not {kind_of(one) for one in watch.unseen} - {
        "changes",
        "deleted",
        "writers",  # those of such writes
        TWO_ROWS,
        CONDITIONS,
        NOT_FOUND,
    }
    (verdict,) = isolation.assert_level(kept, allow_unseen={"absences", "changes", "conditions"})
    isolation.close()
    reads = [op for t in verdict.history.transactions() for op in t.ops if op[0] == "r"]
    assert sum(value is not None for _, _, value in reads) > 50


def test_rows_have_names_of_their_own(url, recorder):
    """Also where a part of a primary key has a comma in it; the proxy spells them so, too."""
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS pair")
        connection.execute("CREATE TABLE pair (a text, b text, PRIMARY KEY (a, b))")
    with DriverWatch(url, recorder, Psycopg()), psycopg.connect(url) as connection:
        connection.execute("INSERT INTO pair VALUES ('x,y', 'z'), ('x', 'y,z') RETURNING b, a")
    (only,) = recorder.history().transactions()
    assert [key for _, key, _ in only.ops] == ["pair/x%2Cy,z", "pair/x,y%2Cz"]


def test_what_is_not_followed_works_as_before(url, recorder):
    """Pipelines, COPY, streams and transactions in two phases: the application notices nothing."""
    with DriverWatch(url, recorder, Psycopg()) as watch:
        with psycopg.connect(url) as connection, connection.pipeline():
            connection.execute(SET, (1, "a"))
            cursor = connection.execute(READ, ("a",))
            assert cursor.fetchone() == (1,)
        with psycopg.connect(url) as connection:
            connection.execute(SET, (2, "a"))
            with connection.pipeline():
                connection.execute(SET, (2, "b"))
        with psycopg.connect(url) as connection:
            with connection.cursor().copy("COPY account FROM STDIN") as copy:
                copy.write_row(("c", 3))
            cursor = connection.cursor()
            assert list(cursor.stream("SELECT name FROM account WHERE balance = 3")) == [("c",)]
        with psycopg.connect(url) as connection:
            connection.execute("PREPARE one AS SELECT 1")
            assert connection.execute("EXECUTE one").fetchone() == (1,)
        with psycopg.connect(url) as connection:
            connection.tpc_begin(connection.xid(1, "one", "two"))
            connection.execute(READ, ("a",))
            connection.tpc_commit()
    assert watch.unseen.keys() >= {"pipelines", "copy", "cursors"}
    for one in recorder.history().transactions():
        assert not (one.status == "committed" and any(kind == "w" for kind, _, _ in one.ops))
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT * FROM account ORDER BY name").fetchall() == [
            ("a", 2),
            ("b", 2),
            ("c", 3),
        ]


def test_writes_of_many_rows(url, recorder):
    """Each row is recorded; the application finds its cursor as without the watch."""
    with DriverWatch(url, recorder, Psycopg()) as watch, psycopg.connect(url) as connection:
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO account VALUES (%s, %s)", iter([("c", 1), ("d", 2)]))
        assert (cursor.rowcount, cursor.description, cursor.nextset()) == (2, None, None)
        cursor.executemany(SET, [(5, "a"), (6, "c"), (7, "c"), (8, "nobody")])
        assert cursor.rowcount == 3
        with pytest.raises(psycopg.ProgrammingError):
            cursor.fetchall()
        connection.commit()
        with pytest.raises(psycopg.errors.UniqueViolation):
            cursor.executemany("INSERT INTO account VALUES (%s, %s)", [("e", 1), ("a", 2)])
        connection.rollback()
        cursor.executemany("INSERT INTO account VALUES (%s, 1) RETURNING name", [("f",)])
        connection.rollback()
        cursor.executemany(SET, [])
        connection.rollback()
    assert watch.unseen == {"executemany": 2}
    first = next(iter(recorder.history().transactions()))
    assert [op[1] for op in first.ops] == ["account/c", "account/d", "account/a"]
    assert {op[2] for op in first.ops} == {first.ops[0][2]}
    watch.close(recorder.path, None)
    assert watch.all_unseen == {"executemany": 2, NOT_FOUND: 1}
    isolang.assert_level(recorder.history(), "sser")
