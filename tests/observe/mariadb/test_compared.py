"""A condition is evaluated only where it is certain how MariaDB compares."""

from types import SimpleNamespace

import pytest
from msgspec import Struct

from isolang.observe.log.tables import LoggedColumn, LoggedTable
from isolang.observe.mariadb.compared import ComparedColumn, moment_of, with_truths
from isolang.observe.mariadb.lexer import tokens
from isolang.observe.mariadb.merge import Merger
from isolang.observe.sql.predicates import CannotEvaluateError, Parameters, parse_condition
from isolang.observe.sql.values import UnknownValueError
from isolang.observe.unseen import Unseen


class Column(Struct):
    """A column of the catalogue."""

    type: str
    scale: int = 0
    collation: str = ""
    name: str = "c"
    required: bool = False


GENERAL = "utf8mb4_general_ci"


def predicate(condition, column, *values):
    """The predicate of a condition on a column c."""
    part = [*tokens(condition)]
    compared = ComparedColumn(column)
    parsed = parse_condition(part, 0, len(part), lambda names: names[-1])
    oids = [0 for _ in values]
    return with_truths(parsed.predicate({"c": compared}, part, Parameters(values, oids)))


@pytest.mark.parametrize(
    ("condition", "column", "expected"),
    [
        ("c = 1", Column("int"), ("=", "c", 1)),
        ("c = '1'", Column("int"), ("=", "c", 1)),
        ("c", Column("tinyint"), ("!=", "c", 0)),
        ("NOT c", Column("tinyint"), ("not", ("!=", "c", 0))),
        ("c = TRUE", Column("tinyint"), ("=", "c", 1)),
        ("c = -1.50", Column("decimal", 2), ("=", "c", -150)),
        ("c = TRUE", Column("decimal", 2), ("=", "c", 100)),
        ("c = 'ABC  '", Column("varchar", 0, GENERAL), ("=", "c", "abc")),
        ("c = 'ABC'", Column("varchar", 0, "utf8mb4_bin"), ("=", "c", "ABC")),
        ("c = 'É'", Column("varchar", 0, "utf8mb4_bin"), ("=", "c", "É")),
        ("c = 'a '", Column("char", 0, "utf8mb4_general_nopad_ci"), ("=", "c", "a ")),
        ("c > '1970-01-02'", Column("datetime", 3), (">", "c", 86_400_000_000)),
        ("c IN (1, 2)", Column("bigint"), ("in", "c", (1, 2))),
        ("c IS NULL", Column("enum", 0, GENERAL), ("null", "c")),
    ],
)
def test_what_is_certain(condition, column, expected):
    """The predicate says what the server does."""
    assert predicate(condition, column) == expected


@pytest.mark.parametrize(
    ("condition", "column"),
    [
        ("c = 'x'", Column("int")),
        ("c = 1.5", Column("int")),
        (f"c = 7.{'0' * 30}1", Column("int")),
        ("c = 9007199254740993", Column("bigint")),
        ("c = '1234567890.123456'", Column("decimal", 6)),
        ("c = 1", Column("varchar", 0, GENERAL)),
        ("c = 'é'", Column("varchar", 0, GENERAL)),
        ("c = 'a'", Column("varchar", 0, "utf8mb4_turkish_ci")),
        ("c = 'É'", Column("varchar", 0, "latin1_bin")),
        ("c > 'a'", Column("varchar", 0, GENERAL)),
        ("c = '2026-02-30'", Column("date")),
        ("c = '2026-02-03 01:00:00'", Column("date")),
        ("c = 20260203", Column("date")),
        ("c = 1", Column("float")),
        ("c = 26", Column("year")),
        ("c = '2'", Column("enum", 0, GENERAL)),
        ("c = '12:00:00'", Column("time")),
        ("c = '2026-02-03'", Column("timestamp")),
        ("c = 1", Column("decimal", 9)),
    ],
)
def test_what_is_not_certain(condition, column):
    """The server may convert a value, or compare it by rules that are not known here."""
    with pytest.raises(CannotEvaluateError):
        predicate(condition, column)


def test_values_in_a_history():
    """Equal values for the server are equal in the history; odd values end comparisons."""
    names = ComparedColumn(Column("varchar", 0, GENERAL))
    assert names.recorded("Ab ") == names.recorded("aB") == "ab"
    assert names.comparable
    assert names.recorded("é") == "=é"
    assert not names.comparable  # e equals é
    days = ComparedColumn(Column("date"))
    assert days.recorded(5) == 5
    assert days.recorded("0000-00-00") < days.recorded(-(10**15))
    assert days.comparable
    days.recorded("2026-00-10")
    assert not days.comparable
    assert ComparedColumn(Column("bigint")).recorded(2**64 - 1) == 2**63 - 1
    assert ComparedColumn(Column("decimal", 2)).form == "numeric 2"


@pytest.mark.parametrize("text", ["2026-02-30", "2026-13-01", "26-1-1", "", "2026-01-01 24:00:00"])
def test_moments_of_another_form(text):
    """A date that does not exist is no moment."""
    with pytest.raises(UnknownValueError):
        moment_of(text)


def test_a_condition_counts_if_its_column_has_a_text_beyond_ascii_later():
    """The history would take é and e for different texts, which the server takes for equal."""
    unseen = Unseen()
    merger = Merger(SimpleNamespace(unseen=unseen), 100)
    name = LoggedColumn(name="name", type="varchar", collation="utf8mb4_general_ci")
    columns = {"id": LoggedColumn(name="id", type="int"), "name": name}
    table = LoggedTable(schema="s", name="t", columns=columns, key=["id"])
    named = merger.tables.of(table)
    named.start((1,), {"id": 1, "name": "a"})
    merger.note_odd_columns()
    assert named.compared["name"].constant("e", 0) == "e"
    merger.note_odd_columns()
    assert dict(unseen) == {}
    named.start((2,), {"id": 2, "name": "é"})
    merger.note_odd_columns()
    assert dict(unseen.settled()) == {"conditions": 1}
