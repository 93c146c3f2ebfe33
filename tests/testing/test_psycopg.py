"""What applications do through psycopg is recorded, and they notice nothing."""

import asyncio
import json
from pathlib import Path

import pytest
from support.source_lines import assert_names_lines
from support.watched import names, operations, predicate_reads, sources, transactions

import isolang
from isolang.errors import IsolangError
from isolang.report import page
from isolang.testing.assertion import UndecidedError

psycopg = pytest.importorskip("psycopg")
LEVELS = psycopg.IsolationLevel

from isolang.observe.unseen import CONDITIONS, kind_of  # noqa: E402

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
def test_a_lost_update_is_seen_with_its_lines(url, isolation, counting):
    """At READ COMMITTED the second counter overwrites the first one; the text names both lines."""
    watch = isolation.watch_psycopg(url)
    both(counting)(url)
    history = isolation.history()
    assert watch.unseen == {}
    counted = ["r(account/a {balance: 10})", "w(account/a {balance: 10 → 11})"]
    assert list(transactions(history)) == [("committed", counted)] * 2
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
        assert f"test_psycopg.py:{number} " in text, text
    assert "site-packages" not in text
    data = page(verdict).split('id="contents">')[1].split("</script>")[0]
    shown = json.loads(data)["violation"]["transactions"]
    assert "read account/a = {balance: 10}, the initial value, " in " ".join(text.split())
    assert [op["caller"].split("/")[-1] for one in shown for op in one["operations"]] == [
        f"test_psycopg.py:{number}" for number in (numbers[0], numbers[2], numbers[1], numbers[3])
    ]


@KINDS
def test_the_update_that_the_server_refuses_is_aborted(url, isolation, counting):
    """At REPEATABLE READ nothing is lost."""
    isolation.watch_psycopg(url)
    with pytest.raises(psycopg.errors.SerializationFailure):
        both(counting)(url, level=LEVELS.REPEATABLE_READ)
    assert [status for status, _ in transactions(isolation.history())] == ["committed", "aborted"]
    isolation.assert_level("strong-si")


def test_rows_are_shown_by_what_changed(url, isolation):
    """Columns that a transaction had seen before, that it set blindly, or that a row begins with.

    What a savepoint took back is not shown.
    """
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE account ADD note text DEFAULT 'x, y', ADD \"Ü %\" bytea")
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        connection.execute(READ, ("a",)).fetchall()
        connection.execute("UPDATE account SET balance = 11, note = 'x, y' WHERE name = 'a'")
        connection.execute("UPDATE account SET balance = 12 WHERE name = 'a'")
        connection.execute("UPDATE account SET note = NULL WHERE name = 'b'")
        connection.execute("SAVEPOINT s")
        connection.execute("UPDATE account SET balance = 99 WHERE name = 'b'")
        connection.execute("ROLLBACK TO s")
        connection.execute("INSERT INTO account VALUES ('c', 1, repeat('ü', 50)) RETURNING name")
        connection.execute("DELETE FROM account WHERE name = 'c'")
    (shown,) = operations(isolation.history())
    assert shown == [
        "r(account/a {balance: 10})",
        "w(account/a {balance: 10 → 11})",
        "w(account/a {balance: 11 → 12})",
        "w(account/b {note: null})",
        f"w(account/c {{balance: 1, name: c, note: {'ü' * 39}…}})",
        "delete(account/c)",
    ]
    assert watch.unseen == {}


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
        (READ, LEVELS.SERIALIZABLE),
    ],
)
def test_correct_programs_are_not_accused(url, isolation, read, level):
    """Rows that are locked first, and SERIALIZABLE with retries: nothing is lost."""
    watch = isolation.watch_psycopg(url)
    isolation.concurrently(lambda: increment(url, read, level), times=10, clients=4)
    (verdict,) = isolation.assert_level("sser")
    assert watch.unseen == {}
    counts = verdict.history.counts()
    assert counts["committed"] == 40
    with psycopg.connect(url) as connection:
        assert connection.execute(READ, ("a",)).fetchone() == (50,)


def test_threads_that_lose_updates_are_found(url, isolation):
    """The same counters at READ COMMITTED without a lock, by the lines of both statements."""
    isolation.watch_psycopg(url)
    isolation.concurrently(lambda: increment(url, READ), times=10, clients=4)
    with pytest.raises(isolang.IsolationError, match="lost update") as error:
        isolation.assert_level("ser")
    begins = ("(balance,) = connection.execute(read", "connection.execute(SET, (balance + 1")
    assert_names_lines(str(error.value), __file__, *begins)


def test_blocks_savepoints_and_statements_of_the_application(url, isolation):
    """What a block or a savepoint took back was never written; names are used again."""
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url, autocommit=True) as connection:
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
    history = isolation.history()
    assert operations(history) == [
        ["w(account/a {balance: 11})"],
        [
            "w(account/c {balance: 1, name: c})",
            "r(account/a {balance: 11})",
            "r(account/b {balance: 10, name: b})",
            "r(account/c {balance: 1, name: c})",
            "delete(account/c)",
        ],
    ]
    assert len(predicate_reads(history)) == 1
    assert watch.unseen == {}
    isolation.assert_level("sser")


def test_what_cannot_be_seen_is_counted_and_left_out(url, isolation):
    """Each kind has an example with its line: no guess, no accusation. All else is seen."""
    with psycopg.connect(url) as own:
        own.execute("CREATE TABLE nokey (n int)")
    watch = isolation.watch_psycopg(url)
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
    alone, several = operations(isolation.history())
    # The join; nokey.
    assert watch.unseen == {"autocommit": 1, CONDITIONS: 1, "unread": 1}
    assert all("test_psycopg.py:" in example for example in watch.unseen.examples.values())
    assert "JOIN" in watch.unseen.examples[CONDITIONS]
    assert alone == ["w(account/a {balance: 3})"]
    assert names(several) == ["r(account/a", *["r(account/b"] * 2, "r(account/a", "w(account/a"]
    assert len(predicate_reads(isolation.history())) == 1  # that of DISTINCT


def test_ends_that_are_no_commits(url, isolation):
    """A failed statement, a connection that is closed, and several statements in one text."""
    isolation.watch_psycopg(url)
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
    assert [status for status, _ in transactions(isolation.history())] == [
        "aborted",
        "aborted",
        "committed",
    ]


def test_a_transaction_that_follows_another_at_once(url, isolation):
    """COMMIT AND CHAIN begins the next one."""
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        connection.execute(SET, (1, "a"))
        connection.execute("COMMIT AND CHAIN")
        connection.execute(SET, (2, "b"))
        connection.commit()
        assert len(connection.execute("SELECT * FROM account").fetchall()) == 2
    assert [name.split(" ")[0] for shown in operations(isolation.history()) for name in shown] == [
        "w(account/a",
        "w(account/b",
        "r(account/a",
        "r(account/b",
    ]
    assert watch.unseen == {}
    isolation.assert_level("sser")


def test_two_rows_of_one_key_in_a_snapshot(url, isolation):
    """At REPEATABLE READ a row that others deleted stays beside the one that is inserted anew."""
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url) as one:
        one.isolation_level = LEVELS.REPEATABLE_READ
        one.execute(READ, ("a",))
        with psycopg.connect(url) as two:
            two.execute("DELETE FROM account WHERE name = 'a'")
        one.execute("INSERT INTO account VALUES ('a', 1) RETURNING name")
        assert len(one.execute(READ, ("a",)).fetchall()) == 2
    print(list(transactions(isolation.history())))
    print(predicate_reads(isolation.history()))
    assert watch.unseen == {}
    isolation.assert_level("pl-2")


def test_psycopg_is_as_it_was_afterwards(url, isolation):
    """Every method that was replaced is put back."""
    classes = [getattr(psycopg, a + b) for a in ("", "Async") for b in ("Cursor", "Connection")]
    classes += [psycopg, psycopg.ServerCursor, psycopg.AsyncServerCursor]
    before = [dict(vars(one)) for one in classes]
    isolation.watch_psycopg(url)
    assert vars(psycopg.Cursor)["execute"] is not before[0]["execute"]
    isolation.close()
    assert [dict(vars(one)) for one in classes] == before


def test_parameters_of_the_application(url, isolation):
    """Those that say how its rows look, or when it commits, do not disturb the watch."""
    own = {"row_factory": psycopg.rows.dict_row, "autocommit": False}
    watch = isolation.watch_psycopg(url, **own)
    with psycopg.connect(url, **own) as connection:
        assert connection.execute(READ, ("a",)).fetchall() == [{"balance": 10}]
        connection.execute("SELECT * FROM account WHERE balance > 99").fetchall()
    assert len(predicate_reads(isolation.history())) == 1
    assert watch.unseen == {}


def test_a_database_that_is_not_there(isolation):
    """The message says what was tried."""
    with pytest.raises(IsolangError, match="watch_psycopg: cannot connect to the database"):
        isolation.watch_psycopg("host=/nowhere")


def test_rows_have_names_of_their_own(url, isolation):
    """Also where a part of a primary key has a comma in it."""
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS pair")
        connection.execute("CREATE TABLE pair (a text, b text, PRIMARY KEY (a, b))")
    isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO pair VALUES ('x,y', 'z'), ('x', 'y,z') RETURNING b, a")
    ((first, second),) = operations(isolation.history())
    assert first.startswith("w(pair/x%2Cy,z ")
    assert second.startswith("w(pair/x,y%2Cz ")


def test_what_many_calls_send_is_seen(url, isolation):
    """Pipelines, COPY, streams, named cursors and executemany, each with its line."""
    watch = isolation.watch_psycopg(url)
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
    assert operations(isolation.history()) == [
        ["w(account/a {balance: 1})", "r(account/a {balance: 1})"],
        ["w(account/a {balance: 2})", "w(account/b {balance: 2})"],
        ["r(account/a {balance: 2})"],
    ]
    assert {kind_of(detail) for detail in watch.unseen} == {"copy", "shapes", "writers"}
    assert sources(isolation.history()) == [
        'connection.execute(SET, (1, "a"))',
        'cursor = connection.execute(READ, ("a",))',
        'connection.execute(SET, (2, "a"))',
        'connection.execute(SET, (2, "b"))',
        'connection.execute(READ, ("a",))',
    ]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT * FROM account ORDER BY name").fetchall() == [
            ("a", 2),
            ("b", 2),
            ("c", 3),
        ]


def test_calls_that_send_nothing_leave_no_line(url, isolation):
    """A value without an adapter, in a pipeline or not, and a stream that nobody reads."""
    isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        with pytest.raises(psycopg.ProgrammingError):
            connection.execute(READ, (object(),))
        connection.cursor().stream(READ, ("a",))
        connection.execute(READ, ("a",))
        with connection.pipeline():
            with pytest.raises(psycopg.ProgrammingError):
                connection.execute(SET, (object(), "a"))
            connection.execute(SET, (1, "a"))
    assert sources(isolation.history()) == [
        'connection.execute(READ, ("a",))',
        'connection.execute(SET, (1, "a"))',
    ]


def test_writes_of_many_rows(url, isolation):
    """Each row is recorded; the application finds its cursor as without the watch."""
    watch = isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
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
    history = isolation.history()
    assert list(transactions(history)) == [
        (
            "committed",
            [
                "w(account/c {balance: 1})",
                "w(account/d {name: d, balance: 2})",
                "w(account/a {balance: 5})",
                "w(account/c {balance: 1 → 6})",
                "w(account/c {balance: 6 → 7})",
            ],
        ),
        ("aborted", ["w(account/e {name: e, balance: 1})"]),
        ("aborted", ["w(account/f {name: f, balance: 1})"]),
    ]
    (missed,) = predicate_reads(history)
    assert "nobody" in str(missed)
    assert watch.unseen == {}
    isolation.assert_level("sser")


@pytest.mark.parametrize("server_on_trial", [False])
def test_what_is_allowed_says_nothing(url, isolation):
    """The orders of unseen reads that are allowed do not make a verdict unknown."""
    isolation.watch_psycopg(url)
    one, other = (psycopg.connect(url) for _ in range(2))
    with one, other:
        for connection in (one, other):
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        one.execute("SELECT balance FROM account WHERE name LIKE 'z%' AND name <> current_user")
        other.execute("SELECT balance FROM account WHERE name = 'b'")
        one.execute("UPDATE account SET balance = 1 WHERE name = 'b'")
        other.execute("UPDATE account SET balance = 1 WHERE name = 'a'")
    with pytest.raises(UndecidedError, match="possible facts"):
        isolation.assert_level("ser")
    assert isolation.assert_level("ser", allow_unseen={"conditions"})
    isolation.allow_unseen = {"conditions"}
    assert isolang.check(isolation.history(), "ser").outcome == "valid"
    isolation.allow_unseen = False
    assert isolang.check(isolation.history(), "ser").cause == "possible facts"
