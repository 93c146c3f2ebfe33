"""Conditions of SQL become predicates of isolang, or nothing."""

import pytest

from isolang.observe import predicates
from isolang.observe.drivers.statements import parse
from isolang.observe.predicates import CannotEvaluateError, Parameters
from isolang.observe.values import RecordedColumn

TYPES = {"id": 23, "owner": 25, "at": 1082, "done": 16, "ts": 1184, "price": 1700}
COLUMNS = {name: RecordedColumn(name=name, oid=oid, scale=2) for name, oid in TYPES.items()}
DAY = 86_400_000_000

ONE, TWO, DONE = ("=", "id", 1), ("=", "id", 2), ("=", "done", True)


def predicate(condition, *values):
    """The predicate of a condition of a recognised statement on one table; marks have values."""
    statement = parse(f"DELETE FROM job WHERE {condition}")
    assert statement is not None
    where = statement.where

    def column(names):
        return names[-1] if tuple(names[:-1]) in ((), ("job",)) else None

    try:
        found = predicates.parse(where, 0, len(where), column)
        return found.predicate(COLUMNS, where, Parameters(values))
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


def test_a_mark_is_a_parameter():
    """Its value is what the server reads it as."""
    assert predicate("id = 'isolang:parameter:1' AND done", "7") == ("and", ("=", "id", 7), DONE)
    assert predicate("id = 'isolang:parameter:1'", None) is None


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
