"""Which statements of an application are recognised, and which are not."""

import pytest

from isolang.testing.statements import parse
from isolang.testing.transactions import control


@pytest.mark.parametrize(
    ("text", "source", "cut", "locks"),
    [
        ("SELECT * FROM account", "account", False, False),
        ("select a.x from s.account AS a where a.x >= 1;", "s.account AS a where a.x >= 1", 0, 0),
        ('SELECT 1 FROM "A b" WHERE x IN (1, 2) ORDER BY x', '"A b" WHERE x IN (1, 2)', 0, 0),
        ("SELECT sum(x) FROM t t1 GROUP BY y LIMIT 3", "t t1", True, False),
        ("SELECT x FROM t WHERE n = 'a''b' FOR UPDATE", "t WHERE n = 'a''b'", False, True),
        ("SELECT x FROM t FOR NO KEY UPDATE SKIP LOCKED", "t", True, True),
        ("SELECT x FROM t FOR KEY SHARE", "t", False, False),
        ("SELECT x FROM t WHERE a = 'x'::VARCHAR", "t WHERE a = 'x'::VARCHAR", False, False),
    ],
)
def test_selects_of_one_table(text, source, cut, locks):
    """Table and condition stay as they are written."""
    found = parse(text)
    assert (found.kind, found.source) == ("select", source)
    assert (found.cut, found.locks) == (bool(cut), bool(locks))


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
