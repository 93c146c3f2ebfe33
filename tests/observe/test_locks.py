"""The locks that statements take: of rows, of tables, and advisory ones."""

import pytest
from observe.test_cursors import ONE, connection, row, tag
from observe.test_operations import table

from isolang.observe.sql.lexer import tokens
from isolang.observe.sql.locks import lock_calls, lock_name
from isolang.observe.sql.plan import plan
from isolang.observe.sql.predicates import Parameters

__all__ = ["connection", "table"]  # fixtures
READ = "SELECT v FROM t WHERE id = 1"


@pytest.fixture
def held(connection):
    """Return what the reads of a transaction hold, one behind each of some statements."""

    def after(*texts):
        connection.run("BEGIN", tag("BEGIN"))
        for text, *answer in [text if isinstance(text, tuple) else (text,) for text in texts]:
            connection.run(text, *map(row, answer), tag("DONE"))
            connection.session.transaction.seen.clear()
            connection.run(READ, row(b"4", ONE), tag("SELECT 1"))
        operations = connection.session.transaction.operations
        connection.run("COMMIT", tag("COMMIT"), status=b"I")
        return [operation.statement.partition(" holding ")[2] for operation in operations]

    return after


LOCK, TRY = "SELECT pg_advisory_xact_lock(7)", "SELECT pg_try_advisory_lock(1, 2)"


def test_locks_are_held_to_the_end(held):
    """What a session releases before the end of its transaction was not held to the end."""
    assert held(LOCK, (TRY, b"t")) == ["advisory/7", "advisory/1,2 advisory/7"]
    assert held(LOCK, "SELECT pg_advisory_unlock(1, 2)") == ["advisory/7", "advisory/7"]
    assert held("SELECT 1", (TRY, b"\1")) == ["", "advisory/1,2"]
    assert held("SELECT 1") == ["advisory/1,2"]
    for release in ("_all()", "((SELECT 2))"):  # any lock
        assert held((TRY, b"t"), f"SELECT pg_advisory_unlock{release}") == ["", ""]
    twice = "SELECT pg_advisory_lock(7)"
    assert held(LOCK, twice, "SELECT pg_advisory_unlock(7)") == ["advisory/7"] * 3
    assert held((TRY, b"f"), (TRY, b"\0")) == ["", ""]
    assert held((TRY, b"t"), (TRY, b"t"), "SELECT pg_advisory_unlock(1, 2)")[2:] == ["advisory/1,2"]


def test_savepoints_release_locks(held):
    """ROLLBACK TO releases what was taken since, except what the session holds."""
    assert held("SAVEPOINT a", LOCK, (TRY, b"t"), "ROLLBACK TO a") == ["advisory/1,2"]
    assert held("SAVEPOINT a", "LOCK t", "RELEASE a", "SAVEPOINT b", "ROLLBACK TO b")[-1] == (
        "advisory/1,2 table/t"
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT pg_advisory_xact_lock_shared($1)", ["advisory/5"]),
        (
            "SELECT pg_catalog.pg_advisory_lock(-5) AS x, pg_advisory_lock(6)",
            ["advisory/-5", "advisory/6"],
        ),
        ("SELECT pg_advisory_xact_lock($2)", [""]),
        ("SELECT pg_advisory_xact_lock(random()::int)", [""]),
        ("SELECT pg_advisory_xact_lock(id)", [""]),
        ("SELECT pg_advisory_xact_lock(1), now()", []),
        ("SELECT pg_advisory_xact_lock(id) FROM t", []),
        ("LOCK TABLE ONLY s.\"T\" *, u IN EXCLUSIVE MODE NOWAIT", ["table/T", "table/u"]),
        ("LOCK t IN ROW EXCLUSIVE MODE", []),
        ("LOCK t IN ACCESS SHARE MODE", []),
    ],
)  # fmt: skip
def test_names_of_locks(text, names):
    """Equal names are equal locks, so a number that is not known has no name."""
    part = [*tokens(text)]
    assert [lock_name(call, part, Parameters(["5"])) for call in lock_calls(part)] == names


def test_a_name_of_other_signs_is_a_hash():
    """What stands in a history has no blanks or quotes."""
    texts = [f"SELECT pg_advisory_xact_lock(hashtext('{text}'))" for text in ("a b", "a c", "a b")]
    parts = [[*tokens(text)] for text in texts]
    name, other, again = (lock_name(*lock_calls(part), part, Parameters()) for part in parts)
    assert name == again != other
    assert " " not in name


@pytest.mark.parametrize(
    ("clauses", "lock"),
    [
        ("FOR UPDATE", "update"), ("FOR NO KEY UPDATE", "no key update"), ("FOR SHARE", "share"),
        ("FOR KEY SHARE", "key share"), ("FOR KEY SHARE FOR SHARE OF t", "share"), ("", ""),
    ],
)  # fmt: skip
def test_modes_of_row_locks(clauses, lock):
    """The strongest of several counts."""
    assert plan([*tokens(f"SELECT v FROM t WHERE id = 1 {clauses}")], ()).lock == lock


def test_rows_that_a_cursor_locks(connection):
    """FETCH locks them, so they are read then; the numbers of statements stay in order."""
    connection.run("BEGIN", tag("BEGIN"))
    connection.run(
        "DECLARE c CURSOR FOR SELECT v FROM t WHERE v > 3 FOR UPDATE", tag("DECLARE CURSOR")
    )
    written = row(b'["7", "9", "6", "(0,2)", [2], "9", "7", "(0,3)", [2], [[2, 9]], null]')
    connection.run("UPDATE t SET v = 9 WHERE id = 2", written, tag("UPDATE 1"))
    connection.run("FETCH ALL c", row(b"4", ONE), tag("FETCH 1"))
    statements = [read.statement for read in connection.session.transaction.operations]
    assert statements == ["2", "3 for update"]
