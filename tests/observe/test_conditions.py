"""Conditions of SQL become predicates of isolang, or nothing."""

import pytest

from isolang.observe.conditions import (
    ComparedColumn,
    is_comparable,
    operands,
    parse_condition,
    with_values,
)
from isolang.testing.statements import parse

TYPES = {
    "id": "int4",
    "owner": "text",
    "at": "date",
    "done": "bool",
    "ts": "timestamptz",
    "price": "numeric",
}
COLUMNS = {
    name: ComparedColumn(name=name, written=name, type=kind, scale=2)
    for name, kind in TYPES.items()
}

ONE, TWO, DONE = ("=", "id", "1"), ("=", "id", "2"), ("=", "done", "true")


def predicate(condition):
    """The predicate of a condition of one table, with its values as texts."""
    statement = parse(f"DELETE FROM job WHERE {condition}")
    assert statement is not None
    found = parse_condition(statement.where, COLUMNS, [("job",)])
    if found is None:
        return None
    return with_values(found, {one: one.text for one in operands(found)})


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id = 1", ("=", "id", "1")),
        ("1 < id", (">", "id", "1")),
        ("job.id <> -3", ("!=", "id", "-3")),
        ('"job"."id" <= \'5\'', ("<=", "id", "'5'")),
        ("id = 1 OR id = 2 AND done", ("or", ONE, ("and", TWO, DONE))),
        ("(id = 1 OR id = 2) AND NOT done", ("and", ("or", ONE, TWO), ("not", DONE))),
        ("NOT id = 1 AND id = 2", ("and", ("not", ONE), TWO)),
        ("owner = 'o''x'::VARCHAR", ("=", "owner", "('o''x')::varchar")),
        ("owner IS NOT NULL", ("not", ("null", "owner"))),
        ("id BETWEEN 1 AND 2 AND done", ("and", ("between", "id", "1", "2"), DONE)),
        ("id NOT IN (1, -2)", ("not", ("in", "id", ["1", "-2"]))),
        ("at < '2027-01-01'::date::DATE", ("<", "at", "(('2027-01-01')::date)::date")),
        ("price >= 1.50", (">=", "price", "1.50")),
        ("true", "true"),
    ],
)
def test_conditions_with_a_predicate(condition, expected):
    """AND before OR, NOT before AND, values on either side."""
    assert predicate(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "owner < 'a'",  # a collation decides
        "owner LIKE 'a%'",
        "owner = 'a'::varchar(3)",
        "owner = 'a' COLLATE \"C\"",
        "owner = 5",
        "id = 1.5",
        "id = 1 + 1",
        "id = 2 -1",
        "id + 1 = 2",
        "id = id",
        "id = NULL",
        "id = ANY ('{1}')",
        "id = 1 IS TRUE",
        "id < 1 = true",
        "(id, owner) = (1, 'a')",
        "other = 1",
        "j.id = 1",
        "id IS NOT DISTINCT 1",
        "id BETWEEN SYMMETRIC 1 AND 2",
        "at = '2027-01-01'::timestamp",
        "ts = '2027-01-01'::timestamp",  # the time zone decides
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


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int8", "-9", -9),
        ("text", "x", "x"),
        ("bool", "false", False),
        ("numeric", "1.50", 150),
        ("date", "86400.000000", 86400000000),
        ("timestamp", "0.000001", 1),
        ("date", None, None),
    ],
)
def test_values(kind, text, value):
    """Integers and texts, which every database compares as isolang does."""
    assert ComparedColumn(name="c", written="c", type=kind, scale=2).value(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [("date", "Infinity"), ("text", "x" * 201), ("numeric", "NaN"), ("numeric", "0.005")],
)
def test_values_that_are_not_compared(kind, text):
    """They say so."""
    assert not is_comparable(ComparedColumn(name="c", written="c", type=kind, scale=2).value(text))
