"""Which statements of an application are recognised, and which are not."""

import pytest

from isolang.observe.drivers.statements import lookup, parse
from isolang.observe.drivers.transactions import control


@pytest.mark.parametrize(
    ("text", "source", "cut", "lock"),
    [
        ("SELECT * FROM account", "account", False, ""),
        ("select a.x from s.account AS a where a.x >= 1;", "s.account AS a where a.x >= 1", 0, ""),
        ('SELECT 1 FROM "A b" WHERE x IN (1, 2) ORDER BY x', '"A b" WHERE x IN (1, 2)', 0, ""),
        ("SELECT sum(x) FROM t t1 GROUP BY y LIMIT 3", "t t1", True, ""),
        ("SELECT x FROM t WHERE n = 'a''b' FOR UPDATE", "t WHERE n = 'a''b'", False, "update"),
        ("SELECT x FROM t FOR NO KEY UPDATE SKIP LOCKED", "t", True, "update"),
        ("SELECT x FROM t FOR KEY SHARE", "t", False, ""),
        ("SELECT x FROM t FOR SHARE NOWAIT", "t", False, "share"),
        ("SELECT x FROM t WHERE a = 'x'::VARCHAR", "t WHERE a = 'x'::VARCHAR", False, ""),
    ],
)
def test_selects_of_one_table(text, source, cut, lock):
    """Table and condition stay as they are written."""
    found = parse(text)
    assert (found.kind, found.source) == ("select", source)
    assert (found.cut, found.lock) == (bool(cut), lock)


@pytest.mark.parametrize(
    ("text", "kind", "table", "alias", "returned"),
    [
        ("INSERT INTO t (a) VALUES (1)", "insert", "t", "t", ()),
        ("insert into s.t AS u values (1) returning id, u.a", "insert", "s.t", "u", ("id", "u.a")),
        ("UPDATE t SET a = a + 1 WHERE f(a)", "update", "t", "t", ()),
        ("DELETE FROM t x WHERE a = 1", "delete", "t", "x", ()),
    ],
)
def test_writes_of_one_table(text, kind, table, alias, returned):
    """The server says which rows were written."""
    found = parse(text)
    assert (found.kind, found.table, found.alias, found.returned) == (kind, table, alias, returned)


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("UPDATE t SET a = a + 1 WHERE b = 2", ("a",)),
        ('UPDATE t SET "A" = f(x, y = 1), B = (1), c=3 WHERE d = 2', ('"A"', "b", "c")),
        ("UPDATE t SET (a, b) = (1, x = 2), d = 3 WHERE c = 2", ("a", "b", "d")),
        ("INSERT INTO t (a) VALUES (1)", ()),
    ],
)
def test_columns_that_are_set(text, sets):
    """One by one, or in a list."""
    assert parse(text).sets == sets


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT * FROM a, b",
        "SELECT * FROM a JOIN b USING (x)",
        "SELECT * FROM a NATURAL JOIN b",
        "SELECT * FROM a WHERE x IN (SELECT y FROM b)",
        "SELECT * FROM a UNION SELECT * FROM b",
        "SELECT * FROM (SELECT * FROM a) AS b",
        "SELECT * FROM f(1)",
        "SELECT * FROM a WHERE random() < 0.5",
        "SELECT * FROM a WHERE ü(x)",
        "SELECT * INTO b FROM a",
        "SELECT * FROM a; COMMIT",
        "SELECT * FROM a WHERE x = E'\\'' OR y = ''",
        "SELECT * FROM a -- WHERE",
        "SELECT * FROM ONLY a",
        "WITH b AS (SELECT 1) SELECT * FROM b",
        "UPDATE a SET x = 1 FROM b",
        "UPDATE a SET x = (SELECT max(y) FROM b)",
        "DELETE FROM a USING b",
        "INSERT INTO a SELECT * FROM b",
        "COPY a FROM STDIN",
        "",
    ],
)
def test_everything_else_is_not_recognised(text):
    """What could be misunderstood is unseen."""
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "begin", ""),
        ("start transaction;", "begin", ""),
        ("COMMIT WORK", "commit", ""),
        ("end", "commit", ""),
        (" ABORT ; ", "rollback", ""),
        ('SAVEPOINT "S one"', "savepoint", "S one"),
        ("/* app:1 */ ROLLBACK TO s -- back", "back", "s"),
        ('SAVEPOINT "S1"', "savepoint", "S1"),
        ("RELEASE SAVEPOINT S1", "release", "s1"),
        ("ROLLBACK TRANSACTION TO SAVEPOINT s1", "back", "s1"),
        ("COMMIT; SELECT 1", None, ""),
        ("COMMIT AND CHAIN", None, ""),
        ("COMMIT PREPARED 'x'", None, ""),
        ("SELECT 'commit'", None, ""),
    ],
)
def test_statements_about_the_transaction(text, kind, name):
    """Several in one text, and those that begin the next one, are not recognised."""
    found = control(text)
    assert (found and found.kind, found.name if found else "") == (kind, name)


@pytest.mark.parametrize(
    ("condition", "equal", "among"),
    [
        ("id = 1 AND owner = 'x'", {"id", "owner"}, {}),
        ('(("t"."id" = 1) AND ("t"."Owner" > 2))', {"id"}, {}),
        ("s.t.id = '1'::bigint AND u.a = 2 AND -3 = b", {"id", "b"}, {}),
        ("id IN (1, 2, 2) AND a = true", {"a"}, {"id": 2}),
        ("a BETWEEN 1 AND 2 AND b = 3", {"b"}, {}),
        ("a BETWEEN 1 AND id = 1", set(), {}),
        ("id = 1 OR b = 2", set(), {}),
        ("(id = 1 OR b = 2) AND c = 3", {"c"}, {}),
        ("NOT id = 1", set(), {}),
        ("NOT (id = 1 AND b = 2)", set(), {}),
        ("CASE WHEN a AND id = 1 AND b THEN c END", set(), {}),
        ("id = '1'::int IS NULL", set(), {}),
        ("id != 1 AND a >= 2 AND b = c AND d = NULL", set(), {}),
        ("id NOT IN (1) AND a IN (b)", set(), {}),
        ("id = 1 + 1", set(), {}),
    ],
)
def test_columns_that_a_condition_pins(condition, equal, among):
    """Those that are equal to values, wherever else the condition looks; nothing by halves."""
    found = parse(f"SELECT a FROM s.t WHERE {condition}")
    assert (found.equal, found.among) == (equal, among)
    assert parse(f"DELETE FROM s.t WHERE {condition}").equal == equal


KEYS = {"booking": [frozenset({"id"}), frozenset({"ref"})], "room": [frozenset({"a", "b"})]}


@pytest.mark.parametrize(
    ("text", "asked", "skips"),
    [
        ("FROM booking WHERE booking.ref = 'x'::VARCHAR", 1, False),
        ("FROM booking WHERE booking.id IN (1, 2) FOR UPDATE SKIP LOCKED", 2, True),
        ("FROM booking WHERE booking.owner = 'x'", None, False),
        ("FROM booking", None, False),
        (
            "FROM booking LEFT OUTER JOIN room AS r ON r.a = booking.x AND r.b = booking.y "
            "WHERE booking.id = 1",
            1,
            False,
        ),
        ("FROM booking JOIN room ON room.a = booking.x WHERE booking.id = 1", None, False),
        (
            "FROM booking JOIN room ON room.a = room.b AND room.b = booking.x WHERE booking.id = 1",
            None,
            False,
        ),
        (
            "FROM booking RIGHT JOIN room ON room.a = booking.x AND room.b = booking.y "
            "WHERE booking.id = 1",
            None,
            False,
        ),
        ("FROM room JOIN booking ON booking.id = room.x WHERE room.a = 1", None, False),
        ("FROM booking, room WHERE booking.id = 1", None, False),
        ("FROM (SELECT 1) AS booking WHERE booking.id = 1", None, False),
    ],
)
def test_rows_that_are_looked_up_by_a_key(text, asked, skips):
    """Tables that are joined by a whole key of theirs add no row."""
    assert lookup(f"SELECT booking.x {text}", lambda table: KEYS.get(table, [])) == (asked, skips)
