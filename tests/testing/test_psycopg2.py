"""What applications do through psycopg2 is recorded, and they notice nothing."""

import pytest
from support.source_lines import assert_names_lines
from support.watched import names, operations, predicate_reads, sources, transactions

import isolang
from isolang.testing.assertion import UndecidedError

psycopg2 = pytest.importorskip("psycopg2")
from psycopg2 import errors, extensions, extras, sql  # noqa: E402

READ = "SELECT balance FROM account WHERE name = %s"
SET = "UPDATE account SET balance = %s WHERE name = %s"


def asked(connection, query, values=()):
    """The rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchall()


def counters(url):
    """Two read the balance, then both raise it and commit, in blocks."""
    one, two = psycopg2.connect(url), psycopg2.connect(dsn=url)
    with one, two:
        ((first,),) = asked(one, READ, ("a",))
        with two.cursor() as cursor:
            cursor.execute(READ, ("a",))
            (second,) = cursor.fetchone()
        one.cursor().execute(SET, (first + 1, "a"))
        one.commit()
        two.cursor().execute(SET, (second + 1, "a"))
    for connection in (one, two):
        connection.close()


def test_a_lost_update_is_seen_with_its_lines(url, isolation):
    """At READ COMMITTED the second counter overwrites the first one."""
    watch = isolation.watch_psycopg2(url)
    counters(url)
    history = isolation.history()
    counted = ["r(account/a {balance: 10})", "w(account/a {balance: 10 → 11})"]
    assert list(transactions(history)) == [("committed", counted)] * 2
    assert watch.unseen == {}
    with pytest.raises(isolang.IsolationError, match="lost update") as error:
        isolation.assert_level("ser")
    begins = ("cursor.execute(query, values)", "cursor.execute(READ", "one.cursor().execute(SET",
              "two.cursor().execute(SET")  # fmt: skip
    assert_names_lines(str(error.value), __file__, *begins)


def test_a_level_and_a_failure(url, isolation):
    """What the server refuses is aborted, and so is what a block took back."""
    watch = isolation.watch_psycopg2(url)
    connections = [psycopg2.connect(url) for _ in range(2)]
    one, two = connections
    for connection in connections:
        connection.set_session(isolation_level="REPEATABLE READ")
        asked(connection, READ, ("a",))
    with one:
        one.cursor().execute(SET, (11, "a"))
    with pytest.raises(errors.SerializationFailure), two:
        two.cursor().execute(SET, (12, "a"))
    two.autocommit = True
    assert asked(two, READ, ("a",)) == [(11,)]
    with pytest.raises(errors.UndefinedTable), one:
        one.cursor().execute(f"{SET}; SELECT * FROM nothing", (13, "b"))
    outcomes = [status for status, _ in transactions(isolation.history())]
    assert sorted(outcomes) == ["aborted", "aborted", "committed", "committed"]
    assert watch.unseen == {"autocommit": 1}
    isolation.assert_level("strong-si")
    for connection in connections:
        connection.close()


class OwnCursor(extensions.cursor):
    """A cursor of the application."""

    def execute(self, query, values=None):
        """Execute a statement."""
        return super().execute(query, values)


def test_cursors_of_all_kinds(url, isolation):
    """Each with its line: of dictionaries, of an application, named ones, and many rows at once."""
    watch = isolation.watch_psycopg2(url)
    with psycopg2.connect(url, cursor_factory=extras.DictCursor) as connection:
        cursor = connection.cursor()
        cursor.execute(READ, ("a",))  # dictionaries
        assert cursor.fetchone()["balance"] == 10
        with connection.cursor(cursor_factory=extras.RealDictCursor) as cursor:
            cursor.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier("account")))
            assert [dict(row) for row in cursor] == [
                {"name": "a", "balance": 10},
                {"name": "b", "balance": 10},
            ]
        with connection.cursor(cursor_factory=OwnCursor) as cursor:
            cursor.execute(SET.encode(), (11, "b"))
            assert cursor.rowcount == 1
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO account VALUES (%s, %s)", [("c", 1), ("d", 2)])
            extras.execute_values(cursor, "INSERT INTO account VALUES %s", [("e", 3), ("f", 4)])
            extras.execute_batch(cursor, SET, [(5, "e"), (6, "f")])
    connection.close()
    history = isolation.history()
    (shown,) = operations(history)
    assert names(shown) == [
        *["r(account/a", "r(account/a", "r(account/b", "w(account/b", "w(account/c", "w(account/d"],
        *["w(account/e", "w(account/f", "w(account/e", "w(account/f"],
    ]
    assert len(predicate_reads(history)) == 1
    lines = sources(history)
    assert lines[0] == 'cursor.execute(READ, ("a",))  # dictionaries'
    assert lines[1].startswith("cursor.execute(sql.SQL(")
    assert lines[3].startswith("cursor.execute(SET.encode()")
    assert [line.split("(")[0] for line in lines[4:]] == [
        *["cursor.executemany"] * 2,
        *["extras.execute_values"] * 2,
        *["extras.execute_batch"] * 2,
    ]
    assert watch.unseen == {}


def test_a_named_cursor_is_seen(url, isolation):
    """It returns its rows as without the watch."""
    watch = isolation.watch_psycopg2(url)
    with psycopg2.connect(url) as connection:
        with connection.cursor("named") as cursor:
            cursor.itersize = 1
            cursor.execute("SELECT * FROM account WHERE balance = %s ORDER BY name", (10,))
            assert list(cursor) == [("a", 10), ("b", 10)]
        connection.cursor().execute(SET, (1, "a"))
    connection.close()
    (only,) = operations(isolation.history())
    assert watch.unseen == {}
    assert {text[:11] for text in only} >= {"r(account/a", "r(account/b", "w(account/a"}


@pytest.mark.parametrize("factory", [None, extras.DictCursor, OwnCursor])
@pytest.mark.parametrize("opened", [False, True])
def test_a_connection_of_before_is_counted(url, isolation, factory, opened):
    """Whatever cursor it uses, and if that was there before, too."""
    before = psycopg2.connect(url)
    cursor = before.cursor(cursor_factory=factory) if opened else None
    watch = isolation.watch_psycopg2(url)
    cursor = cursor or before.cursor(cursor_factory=factory)
    cursor.execute(READ, ("a",))
    before.close()
    with psycopg2.connect(url) as connection:
        connection.cursor().execute(SET, (1, "b"))
    connection.close()
    isolation.history()
    assert watch.unseen == {"outside": 1}
    assert "test_psycopg2.py:" in watch.unseen.examples["outside"]
    with pytest.raises(UndecidedError):
        isolation.assert_level("ser")


def test_psycopg2_is_as_it_was_afterwards(isolation, url):
    """Every method that was replaced is put back."""
    owners = [psycopg2, extras.DictCursor, extras.RealDictCursor, OwnCursor]
    before = [dict(vars(owner)) for owner in owners]
    isolation.watch_psycopg2(url)
    assert psycopg2.connect is not before[0]["connect"]
    isolation.close()
    assert [dict(vars(owner)) for owner in owners] == before
