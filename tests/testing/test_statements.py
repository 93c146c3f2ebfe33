"""What a statement of an application does, by its text, and what the watch counts of it."""

import pytest

from isolang.observe.drivers.recording import StatementRecorder
from isolang.observe.drivers.statements import Planner, with_returning
from isolang.observe.sql.rewriting import DatabaseFacts
from isolang.observe.unseen import kind_of

FACTS = DatabaseFacts(
    version=180000,
    aggregates=frozenset({"sum", "count"}),
    functions=frozenset({"transfer"}),
    volatile=frozenset({"random", "nextval"}),
)


def parsed(text):
    """The statement."""
    return Planner(FACTS).parse(text)


@pytest.mark.parametrize(
    ("text", "returned", "sets"),
    [
        ("SELECT * FROM account", ("*",), ()),
        ("select a.x, f(a, 1) AS y FROM s.account AS a", ("a.x", "f(a, 1) AS y"), ()),
        ("insert into s.t AS u values (1) returning id, u.a", ("id", "u.a"), ()),
        ("UPDATE t SET a = a + 1 WHERE b = 2", (), ("a",)),
        ('UPDATE t SET "A" = f(x, y = 1), B = (1), c=3 WHERE d = 2', (), ("A", "b", "c")),
        ("UPDATE t SET a = 1 FROM u WHERE b = 2 RETURNING t.a", ("t.a",), ("a",)),
        ("INSERT INTO t (a) VALUES (1)", (), ()),
    ],
)
def test_what_is_returned_and_set(text, returned, sets):
    """The expressions of the list, or behind RETURNING, as written; the columns behind SET."""
    found = parsed(text)
    assert found.output_expressions() == returned or (found.plan.silent and not returned)
    assert found.plan.assigned == set(sets)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("SELECT count(*) FROM t WHERE a = 1", True),
        ('SELECT COUNT(*) AS "__count" FROM t', True),
        ("SELECT count(*) FROM t GROUP BY a", False),
        ("SELECT count(*), a FROM t", False),
        ("SELECT count(*) + 1 FROM t", False),
        ("SELECT count(a) FROM t", False),
    ],
)
def test_whether_the_result_is_the_number_of_rows(text, counts):
    """Of all rows that match, and nothing else."""
    assert parsed(text).returns_count() == counts


@pytest.mark.parametrize(
    ("text", "quiet"),
    [
        ("", True),
        ("-- ping", True),
        ("SELECT 1", True),
        ("SELECT pg_advisory_xact_lock(hashtext('x'))", True),
        ("SELECT nextval('s'), now()", True),
        ("LOCK TABLE account IN EXCLUSIVE MODE", True),
        ("SET LOCAL lock_timeout = '1s'", True),
        ("SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_type t ON true", True),
        ("CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY)", True),
        ("CREATE TABLE t AS SELECT * FROM account", False),
        ("SELECT transfer(1, 2)", False),
        ('SELECT "transfer"(1, 2)', False),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM account)", False),
        ("SELECT * FROM account WHERE oid IN (SELECT oid FROM pg_class)", False),
        ("SELECT * FROM pg_class, account", False),
        ("SELECT extract(epoch FROM at) FROM account", False),
        ("TABLE account", False),
        ("ALTER TABLE account ADD x int", False),
        ("LOCK TABLE account; DELETE FROM account", False),
        ("SELECT '", False),
    ],
)
def test_what_touches_no_row(text, quiet):
    """Locks, settings, sequences and the catalogue need not be recorded."""
    recorder = StatementRecorder(Planner(FACTS), None, None, None, None, {})
    assert recorder.is_quiet(parsed(text)) == quiet


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CALL transfer(1, 2)", "functions"),
        ("SELECT DISTINCT a FROM t JOIN u USING (b)", "shapes"),
        ("SELECT * FROM a UNION SELECT * FROM b", "shapes"),
        ("WITH b AS (SELECT a FROM t) SELECT * FROM b", "shapes"),
        ("SELECT * INTO b FROM a", "shapes"),
        ("SELECT * FROM a; COMMIT", "shapes"),
        ("COPY a FROM STDIN", "copy"),
        ("PREPARE TRANSACTION 'x'", "outside"),
    ],
)
def test_the_kind_of_a_statement_that_is_not_recognised(text, kind):
    """The watches of tests name it as the proxy does."""
    found = parsed(text)
    assert not found.plan.sources
    assert {kind_of(one) for one in found.plan.unseen} == {kind}


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "begin", "serializable"),
        ("start transaction;", "begin", ""),
        ("COMMIT WORK", "commit", ""),
        ("end", "commit", ""),
        (" ABORT ; ", "rollback", ""),
        ('SAVEPOINT "S one"', "savepoint", "S one"),
        ('ROLLBACK TO "S one"', "back", "S one"),
        ("/* app:1 */ ROLLBACK TO s -- back", "back", "s"),
        ('SAVEPOINT "S1"', "savepoint", "S1"),
        ("RELEASE SAVEPOINT S1", "release", "s1"),
        ('ROLLBACK TRANSACTION TO SAVEPOINT "s1"', "back", "s1"),
        ("COMMIT; SELECT 1", "other", ""),
        ("COMMIT AND CHAIN", "commit", "chain"),
        ("COMMIT AND NO CHAIN", "commit", ""),
        ("COMMIT PREPARED 'x'", "other", ""),
        ("SELECT 'commit'", "quiet", ""),
    ],
)
def test_statements_about_the_transaction(text, kind, name):
    """Several in one text are not recognised; a name means the same with quotes and without."""
    found = parsed(text)
    assert (found.plan.kind, found.plan.name) == (kind, name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UPDATE t SET a = %s ; ", "UPDATE t SET a = %s RETURNING id"),
        ("UPDATE t SET a = %(a)s -- all;", "UPDATE t SET a = %(a)s RETURNING id"),
        ("/* x */ DELETE FROM t; /* ; */;", "/* x */ DELETE FROM t RETURNING id"),
        ("UPDATE t SET a = '--'", "UPDATE t SET a = '--' RETURNING id"),
    ],
)
def test_a_write_that_returns_its_rows(text, expected):
    """The clause is part of the statement, whatever comments are behind it."""
    assert with_returning(text, "id") == expected
