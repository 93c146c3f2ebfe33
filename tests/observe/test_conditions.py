"""Conditions of SQL become predicates of isolang, or nothing."""

import pytest

from isolang.observe.sql import predicates
from isolang.observe.sql.lexer import tokens
from isolang.observe.sql.predicates import CannotEvaluateError, Parameters
from isolang.observe.sql.values import RecordedColumn

TYPES = {"id": 23, "owner": 25, "at": 1082, "done": 16, "ts": 1184, "price": 1700}
COLUMNS = {name: RecordedColumn(name=name, oid=oid, scale=2) for name, oid in TYPES.items()}
DAY = 86_400_000_000

ONE, TWO, DONE = ("=", "id", 1), ("=", "id", 2), ("=", "done", True)


def column(names):
    """The column that a name means in a statement on ``app.job``."""
    return names[-1] if tuple(names[:-1]) in ((), ("job",), ("app", "job")) else None


def deletion(condition):
    """The tokens of a statement with the condition, and where the condition is."""
    part = list(tokens(f"DELETE FROM app.job WHERE {condition}"))
    return part, 6, len(part)


def predicate(condition, *values):
    """The predicate of the condition of a statement on one table."""
    where = deletion(condition)
    try:
        return predicates.parse_condition(*where, column).predicate(
            COLUMNS, where[0], Parameters(values)
        )
    except CannotEvaluateError:
        return None


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id = 1", ONE),
        ("1 < id", (">", "id", 1)),
        ("job.id <> -3", ("!=", "id", -3)),
        ('"job"."id" <= \'5\'', ("<=", "id", 5)),
        ("id = 1 OR id = 2 AND done", ("or", ONE, ("and", TWO, DONE))),
        ("(id = 1 OR id = 2) AND NOT done", ("and", ("or", ONE, TWO), ("not", DONE))),
        ("NOT id = 1 AND id = 2", ("and", ("not", ONE), TWO)),
        ("owner = 'o''x'::VARCHAR", ("=", "owner", "o'x")),
        ("Owner IS NOT NULL", ("not", ("null", "owner"))),
        ("id BETWEEN 1 AND 2 AND done", ("and", (">=", "id", 1), ("<=", "id", 2), DONE)),
        ("id NOT IN (1, -2)", ("not", ("in", "id", (1, -2)))),
        ("id = ANY ('{1,2}'::int[])", ("in", "id", (1, 2))),
        ("at < '1970-01-02'::date::DATE", ("<", "at", DAY)),
        ("price >= 1.50", (">=", "price", 150)),
        ("done = true", DONE),
    ],
)
def test_conditions_with_a_predicate(condition, expected):
    """AND before OR, NOT before AND, values on either side."""
    assert predicate(condition) == expected


def test_the_value_of_a_parameter():
    """It is the text of the execution; NULL has none."""
    assert predicate("id = $1 AND done", "7") == ("and", ("=", "id", 7), DONE)
    assert predicate("id = $1", None) is None


@pytest.mark.parametrize(
    ("condition", "equal", "among"),
    [
        ("id = 1 AND owner = 'x' AND f(id)", {"id", "owner"}, {}),
        ("id = 1 AND owner LIKE 'x%'", {"id"}, {}),
        ('((("job"."id" = 1) AND ("job"."Owner" LIKE \'x\')))', {"id"}, {}),
        ("app.job.id = '1'::bigint AND u.a = 2 AND -3 = b", {"id", "b"}, {}),
        ("id IN (1, 2, 2) AND a = b AND c = true", {"c"}, {"id": 3}),
        ("a BETWEEN 1 AND b AND c = 3", {"c"}, {}),
        ("a BETWEEN 1 AND id = 1 AND f(a)", set(), {}),
        ("id = 1 OR b = f(2)", set(), {}),
        ("(id = 1 OR b = 2) AND c = 3 AND f(c)", {"c"}, {}),
        ("(id = 1) OR (f(b))", set(), {}),
        ("(id = 1 AND b = 2) = (c = 3)", set(), {}),
        ("NOT id = 1 AND f(b)", set(), {}),
        ("NOT (id = 1 AND b = f(2))", set(), {}),
        ("CASE WHEN a AND id = 1 AND b THEN c END", set(), {}),
        ("id = '1'::int IS NULL", set(), {}),
        ("id != 1 AND a >= 2 AND b = c AND d = e", set(), {}),
        ("id NOT IN (1) AND a IN (b)", set(), {}),
        ("id = 1 + 1", set(), {}),
        ("id = f(1) AND", set(), {}),
    ],
)
def test_columns_that_a_condition_pins(condition, equal, among):
    """Those that are equal to values, if the rest has no predicate, too; nothing by halves."""
    found = predicates.parse_known_parts(*deletion(condition), column)
    assert set(found.equal) == equal
    assert {name: len(node) - 2 for name, node in found.among.items()} == among
    assert found.why
    with pytest.raises(CannotEvaluateError):
        found.predicate(COLUMNS, (), Parameters())


@pytest.mark.parametrize(
    "condition",
    [
        "owner < 'a'",  # a collation decides
        "owner LIKE 'a%'",
        "owner = 'a'::varchar(3)",
        "owner = 'a' COLLATE \"C\"",
        "owner = 5",
        "id = 2.5::int",  # 3
        "id = 1 + 1",
        "id = 2 -1",
        "id + 1 = 2",
        "id = id",
        "id = NULL",
        "id = ANY ('{1,NULL}')",
        "id = 1 IS TRUE",
        "id < 1 = true",
        "(id, owner) = (1, 'a')",
        "other = 1",
        "j.id = 1",
        "id IS NOT DISTINCT 1",
        "id BETWEEN SYMMETRIC 1 AND 2",
        "at = 'today'",
        "ts = '2027-01-01'::timestamp",  # the time zone decides
        "ts = '2027-01-01'",
        "done IS TRUE",
        "upper(owner) = 'A'",
        "id = 1 AND",
        "NOT " * 99 + "done",
        "(" * 99 + "done" + ")" * 99,
    ],
)
def test_conditions_without_one(condition):
    """What could be misunderstood has none."""
    assert predicate(condition) is None
